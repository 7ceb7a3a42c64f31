/* The page of one model. Besides names, `DATA` holds:
   heads: one entry per head (type, layer, head from 1; functions, relations, relations_certain; scores by column of the
   heads table, whatever columns it has);
   order: per type, [layer, head] of each map; layers, perLayer: how many there were before pruning;
   sentences: text, subwords of both sides, words (form, head, relation, pieces), and per type the maps of all heads, as
   base64 of one byte per weight, (heads, queries, keys);
   sourceTags: how many language tags every source begins with;
   sameRelation: names of Stanford Dependencies to those of Universal Dependencies, for relations that differ in name only.
   Text always enters the page as text, never as HTML. */
"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const TYPES = { encoder: "encoder self-attention", decoder: "decoder self-attention", cross: "cross-attention" };
const DIRECTIONS = { head_to_dependent: "head → dependent", dependent_to_head: "dependent → head" };
// The colours of the figures; other functions take the remaining ones in turn.
const COLOURS = { positional: "#A65CCA", syntactic: "#4CBE86", "rare words": "#FFB961", diagonal: "#5AA2E0" };
const MORE_COLOURS = ["#D58FC9", "#A9B665", "#B59A83"];
const MARGIN = "best relation"; // computed here: the largest margin over the best fixed offset
const NAMES = {
  relevance: "Relevance (share of its layer)",
  relevance_error: "… its standard error",
  confidence: "Confidence",
  entropy: "Entropy of its attention",
  output_norm: "Norm of its output",
  eos_weight: "Attention on </s>",
  positional_share: "Largest weights at one offset",
  positional_share_raw: "Largest weights at that offset, of all tokens",
  positional_chance: "… if a token were drawn at random",
  "share_-1": "… on the previous token",
  "share_+0": "… on the token itself",
  "share_+1": "… on the next token",
  rarest: "Largest weights on the rarest subword",
  two_rarest: "… on one of the two rarest",
};
const COLUMNS = ["relevance", "confidence", "positional_share", "positional_offset", MARGIN, "rarest", "entropy", "eos_weight"];
const END = "</s>";
const FAINT = 0.02; // a lighter line is not drawn

const byId = (id) => document.getElementById(id);
const name = (head) => `${head.type}-${head.layer}-${head.head}`;
const same = (a, b) => a && b && name(a) === name(b);
const plain = (text) => text.replaceAll("_", " ");

/* The state follows the address, except for the selected query. */
const state = { address: null, head: null, sentence: 0, query: null };

function element(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "path", "line", "rect", "text", "title"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

function colour(label) {
  if (COLOURS[label]) return COLOURS[label];
  const unknown = [...new Set(DATA.heads.flatMap((head) => head.functions))].filter((one) => !COLOURS[one]).sort();
  return MORE_COLOURS[unknown.indexOf(label) % MORE_COLOURS.length];
}

function swatch(label) {
  return element("b", { style: `background:${colour(label)}` });
}

/* "nsubj_head_to_dependent" as ["nsubj", "head → dependent"]; null for other columns. */
function relationOf(column) {
  for (const [ending, words] of Object.entries(DIRECTIONS)) {
    if (column.endsWith(`_${ending}`)) return [column.slice(0, -ending.length - 1), words];
  }
  return null;
}

/* A relation that a head is labelled with; "✓" marks a certain one. */
function labelOf(head, column) {
  return (relationOf(column) || [plain(column)]).join(", ") + (head.relations_certain.includes(column) ? " ✓" : "");
}

function number(value, digits = 2) {
  return value === null || value === undefined ? "–" : value.toFixed(digits).replace("-", "−");
}

function signed(value) {
  return (value > 0 ? "+" : "") + number(value);
}

function shown(column, value) {
  if (column === MARGIN) return signed(value);
  if (column === "positional_offset") return value > 0 ? `+${value}` : number(value, 0);
  return Number.isInteger(value) && Math.abs(value) > 1 ? String(value) : number(value, 3);
}

/* A piece without SentencePiece's mark for a space; "·" before one that continues a word. */
function piece(token) {
  if (token === END || token === "<s>") return token;
  return token.startsWith("▁") ? token.slice(1).replaceAll("▁", " ") || "␣" : `·${token.replaceAll("▁", " ")}`;
}

const decoded = new Map();

/* The map of one head on one sentence, with its queries and keys; null where the sentence has none. */
function attention(head, index) {
  const sentence = DATA.sentences[index];
  if (!sentence || !sentence.maps[head.type]) return null;
  const queries = head.type === "encoder" ? sentence.source : sentence.target;
  const keys = head.type === "decoder" ? sentence.target : sentence.source;
  const at = `${index} ${head.type}`;
  if (!decoded.has(at)) decoded.set(at, Uint8Array.from(atob(sentence.maps[head.type]), (c) => c.charCodeAt(0)));
  const size = queries.length * keys.length;
  const place = DATA.order[head.type].findIndex(([layer, one]) => layer === head.layer && one === head.head);
  const bytes = decoded.get(at).subarray(place * size, (place + 1) * size);
  const tags = { queries: head.type === "encoder" ? DATA.sourceTags : 0, keys: head.type === "decoder" ? 0 : DATA.sourceTags };
  return { queries, keys, tags, weight: (query, key) => bytes[query * keys.length + key] / 255 };
}

/* The key with the largest weight, as in the scores: </s> and the tags of a source are excluded as query and as key. -1 for
   ties, because the steps in which weights are stored do not tell which was the largest. */
function most(map, query) {
  if (map.queries[query] === END || query < map.tags.queries) return -1;
  const weights = map.keys.map((key, position) => (key === END || position < map.tags.keys ? -1 : map.weight(query, position)));
  const largest = Math.max(...weights);
  const best = weights.indexOf(largest);
  return best === weights.lastIndexOf(largest) ? best : -1;
}

function address(head, sentence) {
  return `#${name(head)}-sentence-${sentence + 1}`;
}

function go(head, sentence = state.sentence) {
  if (!head) {
    // A model without heads has no address, but its sentences can still be read.
    state.sentence = sentence;
    return draw();
  }
  location.hash = address(head, sentence);
  follow(); // the event for the new address comes later
}

/* Read the address. If it names something that does not exist, say so and show the nearest thing. */
function follow() {
  if (location.hash === state.address) return;
  state.address = location.hash;
  const wanted = /^#(encoder|decoder|cross)-(\d+)-(\d+)(?:-sentence-(\d+))?$/.exec(location.hash);
  const head = wanted && DATA.heads.find((one) => name(one) === wanted.slice(1, 4).join("-"));
  const sentence = wanted && wanted[4] ? Number(wanted[4]) - 1 : state.sentence;
  const last = DATA.sentences.length - 1;
  state.problem = wanted && !head ? `This model has no head ${wanted.slice(1, 4).join("-")}. ` : "";
  if (last >= 0 && (sentence < 0 || sentence > last)) {
    state.problem += `This page has ${last + 1} sentences and no sentence ${sentence + 1}. `;
  }
  if (head && !same(head, state.head)) state.query = null;
  if (sentence !== state.sentence) state.query = null;
  state.head = head || state.head || sorted()[0] || null;
  state.sentence = Math.max(0, Math.min(sentence, last));
  draw();
}

function draw() {
  drawChoices();
  drawGrid();
  drawMaps();
  drawScores();
  drawTable();
}

function drawChoices() {
  byId("sentence").value = String(state.sentence);
  const sentence = DATA.sentences[state.sentence];
  byId("translation").textContent = sentence ? sentence.translation : "";
  byId("previous").disabled = state.sentence === 0;
  byId("next").disabled = state.sentence >= DATA.sentences.length - 1;
  for (const input of document.querySelectorAll("#types input")) {
    input.checked = Boolean(state.head) && input.value === state.head.type;
  }
}

function drawGrid() {
  const grid = byId("grid");
  const focused = grid.contains(document.activeElement);
  grid.replaceChildren();
  if (!state.head) return;
  const type = state.head.type;
  grid.style.gridTemplateColumns = `1.2rem repeat(${DATA.perLayer}, 33px)`;
  grid.append(element("span"));
  for (let one = 1; one <= DATA.perLayer; one++) grid.append(element("span", { "aria-hidden": "true" }, String(one)));
  for (let layer = 1; layer <= DATA.layers[type]; layer++) {
    grid.append(element("span", { "aria-hidden": "true", title: `layer ${layer}` }, String(layer)));
    for (let one = 1; one <= DATA.perLayer; one++) {
      const head = DATA.heads.find((other) => name(other) === `${type}-${layer}-${one}`);
      if (!head) {
        grid.append(element("span", { class: "pruned", title: `layer ${layer}, head ${one}: pruned` }, "×"));
        continue;
      }
      const chosen = same(head, state.head);
      const labels = head.functions.join(", ");
      const button = element("button", {
        type: "button",
        role: "radio",
        class: labels && "labelled",
        "aria-checked": String(chosen),
        "aria-label": `layer ${layer}, head ${one}${labels && `: ${labels}`}`,
        title: `layer ${layer}, head ${one}${labels && `: ${labels}`}`,
        tabindex: chosen ? "0" : "-1",
        "data-head": name(head),
        onclick: () => go(head),
      });
      button.append(thumbnail(head));
      if (labels) button.append(element("i", {}, ...head.functions.map(swatch)));
      grid.append(button);
      if (chosen && focused) button.focus();
    }
  }
}

function thumbnail(head) {
  const canvas = element("canvas", { "aria-hidden": "true" });
  const map = attention(head, state.sentence);
  canvas.width = map ? map.keys.length : 1;
  canvas.height = map ? map.queries.length : 1;
  if (!map) return canvas;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(canvas.width, canvas.height);
  for (let at = 0; at < canvas.width * canvas.height; at++) {
    const weight = map.weight(Math.floor(at / canvas.width), at % canvas.width);
    pixels.data.set([51, 34, 136, 255 * Math.sqrt(weight)], 4 * at);
  }
  context.putImageData(pixels, 0, 0);
  return canvas;
}

/* Arrow keys in the grid, skipping pruned heads. */
function step(event) {
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  const move = steps[event.key];
  if (!move || !state.head) return;
  event.preventDefault();
  let { layer, head } = state.head;
  for (;;) {
    [layer, head] = [layer + move[0], head + move[1]];
    if (layer < 1 || head < 1 || layer > DATA.layers[state.head.type] || head > DATA.perLayer) return;
    const next = DATA.heads.find((one) => name(one) === `${state.head.type}-${layer}-${head}`);
    if (next) return go(next);
  }
}

function drawMaps() {
  const head = state.head;
  const map = head && attention(head, state.sentence);
  byId("shown").textContent =
    (state.problem || "") +
    (head ? `${TYPES[head.type]}, layer ${head.layer}, head ${head.head}` : "This model has no heads.");
  byId("lines").replaceChildren();
  byId("weights").replaceChildren();
  byId("reading").textContent = "";
  if (!head) return;
  if (!map) {
    byId("reading").textContent = DATA.sentences.length
      ? "This sentence has no translation, so the decoder has no maps."
      : "No sentence of the analysis set is parsed, aligned with its subwords and of a length that can be shown.";
    return;
  }
  drawLines(head, map);
  drawWeights(map);
  const below = head.type === "encoder" ? "below" : "of the translation, below,";
  const tree = head.type === "decoder" ? "" : " Arcs lead from a word to its dependents" +
    (head.relations.length ? "; those of this head's relations are coloured." : ".");
  byId("reading").textContent =
    `Lines lead from each subword ${below} to those it attends to; darker lines have more weight. ` +
    `Select a subword to see it alone. “·” marks a subword without a space before it.${tree}`;
}

function drawWeights(map) {
  const top = element("tr", {}, element("td"));
  for (const key of map.keys) {
    top.append(element("th", { scope: "col", class: key === END && "end" }, element("span", {}, piece(key))));
  }
  const body = map.queries.map((query, row) => {
    const best = most(map, row);
    const line = element("tr", { class: row === state.query && "chosen" });
    line.append(element("th", { scope: "row", class: query === END && "end" }, piece(query)));
    map.keys.forEach((key, column) => {
      const weight = map.weight(row, column);
      line.append(
        element(
          "td",
          {
            class: column === best && "most",
            style: `background:rgba(51,34,136,${weight.toFixed(3)});color:${weight > 0.5 ? "#fff" : "inherit"}`,
            title: `${piece(query)} attends to ${piece(key)}: ${number(weight)}`,
          },
          weight >= 0.05 ? number(weight).replace(/^0/, "") : "",
        ),
      );
    });
    return line;
  });
  byId("weights").append(element("thead", {}, top), element("tbody", {}, ...body));
}

function drawScores() {
  const head = state.head;
  const [labels, list, syntax] = ["labels", "scores", "syntax"].map(byId);
  [labels, list, syntax].forEach((part) => part.replaceChildren());
  if (!head) return;
  for (const label of head.functions) labels.append(element("span", { class: "chip" }, swatch(label), label));
  for (const relation of head.relations) {
    labels.append(element("span", { class: "chip" }, labelOf(head, relation)));
  }
  if (!head.functions.length) labels.append("No function by the thresholds of this experiment.");
  const relations = new Map();
  for (const [column, value] of Object.entries(head.scores)) {
    const relation = relationOf(column);
    if (relation && !relations.has(relation[0])) relations.set(relation[0], []);
    if (relation) relations.get(relation[0]).push(column);
  }
  const part = (column) => [...relations.keys()].some((one) => column.startsWith(`${one}_`));
  for (const [column, value] of Object.entries(head.scores)) {
    if (value === null || part(column) || column === "positional_offset" || column === MARGIN) continue;
    const offset = head.scores.positional_offset ?? null;
    const where = column === "positional_share" && offset !== null ? ` (${shown("positional_offset", offset)})` : "";
    list.append(element("dt", {}, (NAMES[column] || plain(column)) + where), element("dd", {}, shown(column, value)));
  }
  if (head.type !== "encoder" || !relations.size) return;
  syntax.append(
    element("caption", {}, "How often its largest weight is on the other word of a relation, with interval, the accuracy of the best fixed offset, " +
      "and the margin over it. ✓ marks syntactic heads whose margin has an interval above zero."),
    element("thead", {}, element("tr", {}, element("td"), ...Object.values(DIRECTIONS).map((one) => element("th", { scope: "col" }, one)))),
  );
  for (const [relation, columns] of relations) {
    const arcs = head.scores[`${relation}_arcs`] ?? null;
    const row = element("tr", {}, element("th", { scope: "row" }, relation));
    if (arcs !== null) row.firstChild.append(element("small", {}, `${arcs} arcs`));
    for (const ending of Object.keys(DIRECTIONS)) {
      const column = columns.find((one) => one.endsWith(ending));
      const score = (end) => head.scores[`${column}${end}`] ?? null; // null also where the table has no such column
      const interval = (start, show) =>
        score(`${start}_low`) === null ? "" : `${show(score(`${start}_low`))} to ${show(score(`${start}_high`))}`;
      const mark = head.relations_certain.includes(column) ? " ✓" : "";
      const cell = element("td", { class: head.relations.includes(column) && "strong" }, number(score("")) + mark);
      const offset = score("_baseline") === null ? "" : `offset ${number(score("_baseline"))}`;
      const margin = score("_margin") === null ? [] : [signed(score("_margin")), interval("_margin", signed)];
      for (const line of [interval("", number), offset, margin.filter(Boolean).join(", ")]) {
        if (line) cell.append(element("small", {}, line));
      }
      row.append(cell);
    }
    syntax.append(row);
  }
}

function start() {
  addMargins();
  const counts = (type) => DATA.heads.filter((head) => head.type === type).length;
  const all = (type) => DATA.layers[type] * DATA.perLayer;
  const labelled = DATA.heads.filter((head) => head.functions.length).length;
  document.title = `${DATA.model}, ${DATA.title}: attention heads`;
  if (DATA.index) byId("index").href = DATA.index;
  else byId("index").remove();
  byId("title").textContent = `${DATA.title}: ${DATA.model}`;
  byId("summary").textContent =
    `Seed ${DATA.seed}. ${DATA.heads.length} heads, ${labelled} of them with a function. ` +
    `Sentences shown: ${DATA.sentences.length}` + (DATA.sentences.length < DATA.wanted ? ` of ${DATA.wanted} requested` : "") +
    ", the first of the analysis set that are parsed, aligned and of readable length.";
  DATA.sentences.forEach((sentence, position) => {
    byId("sentence").append(element("option", { value: position }, `${position + 1}. ${sentence.text}`));
  });
  byId("sentence").addEventListener("change", (event) => go(state.head, Number(event.target.value)));
  byId("previous").addEventListener("click", () => go(state.head, state.sentence - 1));
  byId("next").addEventListener("click", () => go(state.head, state.sentence + 1));
  for (const type of Object.keys(TYPES)) {
    const input = element("input", { type: "radio", name: "type", value: type, disabled: !counts(type) });
    input.addEventListener("change", () => go(sorted().find((head) => head.type === type)));
    byId("types").append(element("label", {}, input, `${type} `, element("small", {}, `${counts(type)}/${all(type)}`)));
  }
  for (const label of [...new Set(DATA.heads.flatMap((head) => head.functions))].sort()) {
    byId("key").append(element("li", {}, swatch(label), label));
  }
  byId("grid").addEventListener("keydown", step);
  window.addEventListener("hashchange", follow);
  follow();
}
