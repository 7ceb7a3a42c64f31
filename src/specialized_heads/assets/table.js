/* The table of all heads. */

const table = { column: null, ascending: false };

/* The heads in the order of the table: labelled ones first, until the reader sorts by a column. */
function sorted() {
  const order = Object.keys(TYPES);
  const sortable = { head: (head) => order.indexOf(head.type) * 1e6 + head.layer * 1e3 + head.head, labels: (head) => head.functions.length + head.relations.length / 100 };
  const natural = (a, b) => sortable.head(a) - sortable.head(b);
  const column = table.column || "labels";
  const value = sortable[column] || ((head) => head.scores[column] ?? null);
  return [...DATA.heads].sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    if (left === null || right === null) return (left === null) - (right === null) || natural(a, b);
    return (table.ascending ? left - right : right - left) || natural(a, b);
  });
}

function drawTable() {
  const present = COLUMNS.filter((column) => DATA.heads.some((head) => (head.scores[column] ?? null) !== null));
  const columns = [["head", "Head"], ["labels", "Labels"], ...present.map((column) => [column, plain(column)])];
  const top = element("tr");
  for (const [column, title] of columns) {
    const active = table.column === column;
    const button = element("button", { type: "button", "data-column": column, onclick: () => sortBy(column) }, title);
    const sort = active ? (table.ascending ? "ascending" : "descending") : null;
    top.append(element("th", { scope: "col", class: present.includes(column) && "number", "aria-sort": sort }, button));
  }
  const body = sorted().map((head) => {
    const link = element("a", { href: address(head, state.sentence), onclick: () => leadTo(head) },
      `${head.type} ${head.layer}-${head.head}`);
    const labels = element("td");
    for (const label of head.functions) labels.append(element("span", { class: "chip" }, swatch(label), label));
    for (const one of head.relations) labels.append(element("small", {}, labelOf(head, one)));
    const cells = present.map((column) => {
      const value = head.scores[column] ?? null;
      const cell = element("td", { class: "number" }, value === null ? "–" : shown(column, value));
      if (column === MARGIN && value !== null) cell.append(element("small", {}, head.best.join(", ")));
      return cell;
    });
    return element("tr", { class: same(head, state.head) && "chosen" }, element("td", {}, link), labels, ...cells);
  });
  byId("heads").replaceChildren(element("thead", {}, top), element("tbody", {}, ...body));
}

function leadTo(head) {
  go(head);
  byId("view").scrollIntoView();
}

function sortBy(column) {
  table.ascending = table.column === column ? !table.ascending : column === "head";
  table.column = column;
  drawTable();
  document.querySelector(`#heads [data-column="${column}"]`).focus();
}

/* The relation that each head finds best, by its margin over the best fixed offset. */
function addMargins() {
  for (const head of DATA.heads) {
    for (const [column, value] of Object.entries(head.scores)) {
      const relation = column.endsWith("_margin") ? relationOf(column.slice(0, -7)) : null;
      if (!relation || value === null || value <= (head.scores[MARGIN] ?? -Infinity)) continue;
      head.scores[MARGIN] = value;
      head.best = relation;
    }
  }
}
