/* The picture: queries below, keys above, lines between them, and the dependency tree over the source. */

const ROW = { gap: 6, height: 24, between: 120, level: 19 };

const measuring = document.createElement("canvas").getContext("2d");

/* Widths and middles of a row of subwords. */
function laidOut(tokens) {
  measuring.font = `13px ${getComputedStyle(document.body).fontFamily}`;
  let left = 0;
  const places = tokens.map((token) => {
    const width = Math.max(28, measuring.measureText(piece(token)).width + 12);
    const place = { left, width, middle: left + width / 2 };
    left += width + ROW.gap;
    return place;
  });
  return { places, width: left - ROW.gap };
}

/* The height of each arc, above all arcs that it spans. */
function levels(words) {
  const arcs = words
    .map((word, position) => ({ dependent: position, head: word.head - 1, relation: word.relation }))
    .filter((arc) => arc.head >= 0)
    .sort((a, b) => Math.abs(a.head - a.dependent) - Math.abs(b.head - b.dependent) || a.dependent - b.dependent);
  const done = [];
  for (const arc of arcs) {
    const [from, to] = [Math.min(arc.head, arc.dependent), Math.max(arc.head, arc.dependent)];
    const under = done.filter((one) => one.from < to && one.to > from);
    done.push({ ...arc, from, to, level: 1 + Math.max(0, ...under.map((one) => one.level)) });
  }
  return done;
}

function drawLines(head, map) {
  const picture = byId("lines");
  const words = head.type === "decoder" ? [] : DATA.sentences[state.sentence].words;
  const arcs = levels(words);
  const over = words.length ? ROW.level * Math.max(1, ...arcs.map((arc) => arc.level)) + 24 : 6;
  const rows = [laidOut(map.keys), laidOut(map.queries)];
  const width = Math.max(rows[0].width, rows[1].width) + 8;
  const shift = rows.map((row) => (width - row.width) / 2);
  const tops = [over, over + ROW.height + 14 + ROW.between];
  const height = tops[1] + ROW.height + 6;
  picture.setAttribute("width", width);
  picture.setAttribute("height", height);
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.setAttribute("aria-label", `attention of ${name(head)} from each subword`);
  drawTree(picture, head, words, arcs, rows[0].places, shift[0], over);

  const lines = element("g");
  map.queries.forEach((_, query) => {
    if (state.query !== null && state.query !== query) return;
    map.keys.forEach((_, key) => {
      const weight = map.weight(query, key);
      if (weight < FAINT) return;
      const [x, y] = [shift[1] + rows[1].places[query].middle, tops[1]];
      const [u, v] = [shift[0] + rows[0].places[key].middle, tops[0] + ROW.height + (state.query === null ? 0 : 14)];
      const bend = (y - v) / 2;
      lines.append(
        element("path", {
          class: "attention",
          d: `M${x},${y} C${x},${y - bend} ${u},${v + bend} ${u},${v}`,
          "stroke-opacity": (state.query === null ? weight : 0.2 + 0.8 * weight).toFixed(2),
          "stroke-width": (0.8 + (state.query === null ? 2.6 : 4) * weight).toFixed(2),
        }),
      );
    });
  });
  picture.append(lines);
  map.keys.forEach((key, position) => {
    const place = rows[0].places[position];
    const weight = state.query === null ? 0 : map.weight(state.query, position);
    const group = token(key, shift[0] + place.left, tops[0], place.width);
    group.querySelector("rect").setAttribute("style", `fill:rgba(51,34,136,${weight.toFixed(2)})`);
    if (weight > 0.5) group.querySelector("text").setAttribute("style", "fill:#fff");
    if (weight >= FAINT) {
      group.append(element("text", { class: "share", x: shift[0] + place.middle, y: tops[0] + ROW.height + 11 }, number(weight).replace(/^0/, "")));
    }
    picture.append(group);
  });
  map.queries.forEach((query, position) => {
    const place = rows[1].places[position];
    const group = token(query, shift[1] + place.left, tops[1], place.width);
    const pressed = position === state.query;
    const choose = () => {
      state.query = pressed ? null : position;
      drawMaps();
      document.querySelector(`#lines [data-query="${position}"]`).focus();
    };
    group.classList.add("query");
    for (const [key, value] of Object.entries({ role: "button", tabindex: "0", "aria-pressed": pressed, "data-query": position })) {
      group.setAttribute(key, value);
    }
    group.setAttribute("aria-label", `from ${piece(query)}`);
    group.addEventListener("click", choose);
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose();
    });
    picture.append(group);
  });
}

function token(text, left, top, width) {
  const group = element("g", { class: text === END ? "token end" : "token" });
  group.append(element("rect", { x: left, y: top, width, height: ROW.height }));
  group.append(element("text", { x: left + width / 2, y: top + 16.5 }, piece(text)));
  return group;
}

/* Arcs from heads to dependents over the first row; a word is in the middle of its pieces. */
function drawTree(picture, head, words, arcs, places, shift, bottom) {
  const canonical = (relation) => DATA.sameRelation[relation] || relation;
  const wanted = head.relations.map((one) => canonical((relationOf(one) || [one])[0]));
  const within = (name, main) => name === main || name.startsWith(`${main}:`) || name.startsWith(`${main}@`);
  const matters = (relation) => wanted.some((main) => within(canonical(relation), main));
  const middles = words.map(({ pieces }) => {
    const [first, last] = [places[pieces[0]], places[pieces.at(-1)]];
    if (pieces.length > 1) {
      picture.append(
        element("line", { class: "word", x1: shift + first.left + 3, x2: shift + last.left + last.width - 3, y1: bottom - 2, y2: bottom - 2 }),
      );
    }
    return shift + (first.left + last.left + last.width) / 2;
  });
  for (const arc of arcs) {
    // Arcs of one word leave and arrive side by side.
    const side = Math.sign(arc.head - arc.dependent);
    const [x, u] = [middles[arc.head] - 4 * side, middles[arc.dependent] + 4 * side];
    const [base, peak] = [bottom - 5, bottom - 8 - ROW.level * arc.level];
    const bend = Math.min(12, Math.abs(x - u) / 2) * Math.sign(u - x);
    const group = element("g", { class: matters(arc.relation) ? "strong" : "" });
    group.append(
      element("title", {}, `${words[arc.dependent].form} is ${arc.relation} of ${words[arc.head].form}`),
      element("path", {
        class: "arc",
        d: `M${x},${base} V${peak + 8} Q${x},${peak} ${x + bend},${peak} H${u - bend} Q${u},${peak} ${u},${peak + 8} V${base - 3}`,
      }),
      element("path", { class: "tip", d: `M${u - 3},${base - 5} h6 l-3,6 z` }),
      element("text", { class: "relation", x: (x + u) / 2, y: peak + 3.5 }, arc.relation),
    );
    picture.append(group);
  }
}

start();
