function itemColumns() {
  const flags = (i) => KINDS.map(([kind]) => (counts[kind][i] ? badge(kind, counts[kind][i]) : null));
  return [
    { key: "id", name: "Item", cls: "c-id", cell: (i) => [said(items.id[i], "span", "item-id"), said(items.excerpt[i], "span", "item-excerpt")] },
    { key: "score", name: "Score", cls: "c-score", cell: (i) => scoreCell(items.score[i]) },
    items.truth ? { key: "difference", name: "− label", title: "Score minus the score computed from the labels, on the labelled criteria", cls: "c-num", cell: (i) => (difference(i) === null ? "–" : signed(difference(i))) } : null,
    compare ? { key: "change", name: "Change", title: "Score minus the baseline score", cls: "c-num", cell: (i) => (change(i) === null ? "–" : signed(change(i))) } : null,
    { key: "agreement", name: "Agreement", title: "Mean proportion of votes that equal the decision", cls: "c-num", cell: (i) => percent(items.agreement[i]) },
    run.has_truth ? { key: "wrong", name: "Wrong", cls: "c-num c-few", cell: (i) => counts.wrong[i] || "" } : null,
    { key: "split", name: "Split", cls: "c-num c-few", cell: (i) => counts.split[i] || "" },
    { key: "abstained", name: "Abst.", title: "Criteria with an abstention", cls: "c-num c-few", cell: (i) => counts.abstained[i] || "" },
    { key: "failed", name: "Failed", cls: "c-num c-few", cell: (i) => counts.failed[i] || "" },
    run.cost !== null ? { key: "cost", name: "Cost", cls: "c-num c-few", cell: (i) => money(items.cost[i]) } : null,
    { key: "seconds", name: "Time", cls: "c-num c-few", cell: (i) => duration(items.seconds[i]) },
    { key: "flags", name: "", cls: "c-flags", cell: flags },
  ].filter(Boolean);
}
function itemsView(query) {
  const columns = itemColumns();
  const found = itemsFor(query);
  const by = query.get("s") || "", down = query.get("d") === "desc";
  const asked = Object.fromEntries(query);
  const sortTo = (key, way) => { location.hash = address("items", [], { ...asked, s: key, d: way }); };
  const heads = columns.map((one) =>
    h("div", { role: "columnheader", class: one.cls, title: one.title, "aria-sort": by === one.key ? (down ? "descending" : "ascending") : null },
      one.name ? h("button", { type: "button", "data-sort": one.key, onclick: () => sortTo(one.key, by === one.key && !down ? "desc" : "") }, one.name) : null));
  const head = h("div", { class: "v-head v-row", role: "row", "aria-rowindex": 1 }, heads);
  const grid = virtualGrid({
    label: "Items", rows: found.length, columns: columns.length, height: narrow() ? 68 : 48, head,
    draw: (at) => {
      const item = found[at];
      const row = h("div", { class: "v-row", "data-item": item, onclick: () => openItem(item, query) }, columns.map((one) => h("div", { role: "gridcell", class: one.cls }, one.cell(item))));
      return row;
    },
    open: (at) => openItem(found[at], query),
  });
  const sort = h("label", { class: "sort-phone" }, h("span", { class: "soft" }, "Sort by "),
    h("select", { onchange: (event) => { const [key, way] = event.target.value.split(" "); sortTo(key, way || ""); } }, h("option", { value: "" }, "dataset order"),
      columns.filter((one) => one.name).flatMap((one) => ["", "desc"].map((way) => h("option", { value: `${one.key} ${way}`, selected: by === one.key && down === Boolean(way) }, `${one.name}${way ? ", highest first" : ", lowest first"}`)))));
  return [
    h("div", { class: "title" }, h("h1", {}, "Items"), h("p", { class: "soft", id: "found" }, told(found.length, query))),
    h("div", { class: "filter-row" }, filters("items", query), h("span", {}, csvButton("items", () => itemRows(found)))), sort,
    found.length ? grid.host : h("p", { class: "empty" }, "No item matches."),
  ];
}
/* The table as rows of values: a column each for the id, the score and the answers on all criteria. */
function itemRows(found) {
  const answer = (i, at) => { const cell = cellAt(i, at); return cell < 0 ? "" : word(cells.label[cell]) ?? STATUS[cells.status[cell]]; };
  const more = [items.truth ? ["label_score", (i) => items.truth[i]] : null, ["agreement", (i) => items.agreement[i]], ...KINDS.map(([kind]) => [kind, (i) => counts[kind][i]]), ["cost", (i) => items.cost[i]], ["seconds", (i) => items.seconds[i]]].filter(Boolean);
  return [
    ["id", "score", ...more.map(([name]) => name), ...criteria.map((one) => one.name)],
    ...found.map((i) => [items.id[i], items.score[i], ...more.map(([, value]) => value(i)), ...criteria.map((_, at) => answer(i, at))]),
  ];
}
function told(n, query) {
  const text = (query.get("q") || "").trim();
  return [n === size ? plural(n, "item") : `${count(n)} of ${plural(size, "item")}`, text ? [" with ", said(`“${text}”`)] : null];
}
function openItem(item, query, criterion = null) {
  // Previous and next step through the list that the item was opened from.
  const kept = {};
  for (const key of ["f", "q", "s", "d"]) if (query.get(key)) kept[key] = query.get(key);
  if (criterion !== null) kept.c = criterion;
  location.hash = address("item", [item], kept);
}
