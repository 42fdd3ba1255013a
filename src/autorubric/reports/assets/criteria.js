function criteriaView(parts) {
  if (parts.length) return criterionView(Number(parts[0]));
  const rows = criteria.map((one, at) => ({ ...one, at }));
  const v = (pick) => (row) => { const figure = pick(row); return defined(figure) ? figure.v : null; };
  const labelled = rows.some((row) => row.labelled);
  const explained = labelled ? data.metrics.criteria.filter((one) => one.about).map((one) => ` ${one.about}.`).join("") : "";
  const between = (row) => row.reliability && row.reliability[data.metrics.reliability.key];
  const columns = [
    { name: "Criterion", key: (row) => row.name, cell: (row) => link(address("criteria", [row.at]), nameOf(row.name)) },
    { name: "Level", key: (row) => row.level, cell: (row) => row.level },
    { name: "Weight", key: (row) => row.weight ?? null, number: true, cell: (row) => num(row.weight, Number.isInteger(row.weight) ? 0 : 2) },
    { name: "Pass rate or mean", key: v((row) => row.mean), high: true, cell: (row) => figureText(row.mean) },
    ...(labelled ? metricColumns("criteria") : []),
    rows.some((row) => row.reliability) ? { name: data.metrics.reliability.name, key: v(between), cell: (row) => figureText(between(row)) } : null,
    { name: "Discrimination", key: v((row) => row.discrimination), cell: (row) => figureText(row.discrimination) },
    { name: "Open", key: (row) => row.given.abstained + row.given.failed, high: true, number: true, cell: (row) => count(row.given.abstained + row.given.failed) },
  ].filter(Boolean);
  return [
    h("div", { class: "title" }, h("h1", {}, "Criteria"), h("p", { class: "soft" }, `${plural(rows.length, "criterion", "criteria")}; intervals at ${percent(run.level)}.${explained} Open: abstained or failed.`)),
    pages(rows, (part) => sortable({ columns, rows: part, caption: "Criteria" })),
  ];
}
/* A long table in parts, so that one rubric per item does not make the page slow. */
function pages(rows, make, most = 400) {
  if (rows.length <= most) return make(rows);
  const host = h("div", {}, make(rows.slice(0, most)));
  return [host, h("p", {}, h("button", { type: "button", class: "chip", onclick: (event) => { host.replaceChildren(make(rows)); event.target.remove(); } }, `Show all ${count(rows.length)}`))];
}
function criterionView(at) {
  const one = criteria[at];
  if (!one) return [h("h1", {}, "No such criterion")];
  const facts = [one.level, one.weight !== undefined ? `weight ${num(one.weight, Number.isInteger(one.weight) ? 0 : 2)}` : null, one.bonus ? "bonus" : null, one.gate ? `gate: ${one.gate}` : null, one.when ? `only when ${one.when}` : null, (one.groups || []).join(" › ") || null, one.part_of ? `part of ${one.part_of}` : null].filter(Boolean);
  const figures = [["pass rate or mean value", one.mean], ...Object.entries(one.figures || {}), ["discrimination", one.discrimination], ["best minus worst 27% of items", one.upper_lower]].filter(([, figure]) => figure);
  return [
    h("div", { class: "title" }, h("p", { class: "steps" }, link(address("criteria"), "All criteria")), h("h1", {}, said(one.name)), one.requirement ? said(one.requirement, "p", "lead") : null, said(facts.join(" · "), "p", "soft")),
    h("div", { class: "two" }, answersGiven(one), confusionOf(one)),
    h("div", { class: "two" }, figuresOf("Compared with the labels", one.labelled ? `${plural(one.n || 0, "pair")} of answer and label` : "no labels; only metrics that do not need labels are shown", figures),
      one.reliability ? figuresOf("Agreement between judges", null, Object.entries(one.reliability)) : h("div")),
    one.comparisons ? comparisonsOf(one.comparisons) : null,
    confusing(one, at),
  ];
}
function answersGiven(one) {
  const open = ["abstained", "failed", "not_applicable"].filter((key) => one.given[key]).map((key) => `${count(one.given[key])} ${key.replace("_", " ")}`);
  const note = [plural(one.given.answered, "answer"), ...open].join(", ");
  if (one.spread) return section("Answers", note, histogram(one.spread.edges, [{ counts: one.spread.counts }], `Histogram of ${plural(one.given.answered, "answer")}`));
  if (!one.answers.length) return section("Answers", note, h("p", { class: "soft" }, "This criterion has no fixed list of answers."));
  const total = Math.max(1, one.given.counts.reduce((a, b) => a + b, 0));
  const truths = one.labelled ? Math.max(1, one.labelled.counts.reduce((a, b) => a + b, 0)) : 0;
  return section("Answers", note, h("table", { class: "shares" }, h("caption", { class: "hidden" }, "How often each answer was given"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Answer"), h("th", { scope: "col", class: "wide" }, "Judges"), truths ? h("th", { scope: "col", class: "wide" }, "Labels") : null)),
    h("tbody", {}, one.answers.map(([label, value], k) => h("tr", {},
      h("th", { scope: "row" }, said(label), h("span", { class: "soft small num" }, value === null ? " no value" : ` ${num(value)}`)),
      h("td", { class: "wide" }, bar(one.given.counts[k] / total, ""), h("span", { class: "num" }, `${count(one.given.counts[k])}`)),
      truths ? h("td", { class: "wide" }, bar(one.labelled.counts[k] / truths, ""), h("span", { class: "num" }, `${count(one.labelled.counts[k])}`)) : null)))));
}
function confusionOf(one) {
  if (!one.confusion) return section("Confusion", null, h("p", { class: "none" }, one.labelled ? "No table: the criterion has no fixed list of answers, or no answer has a label." : "No labels."));
  const { labels, counts: table } = one.confusion;
  const sums = table.map((row) => row.reduce((a, b) => a + b, 0));
  return section("Confusion", "rows: labels, columns: decisions of the judges",
    matrix({ rows: labels, columns: labels, corner: "label ↓ judges →", caption: `Confusion matrix of ${one.name}`, value: (i, j) => (sums[i] ? table[i][j] / sums[i] : 0), tell: (i, j) => h("span", { class: i === j ? "strong" : null }, count(table[i][j])) }));
}
function figuresOf(title, note, figures) {
  return section(title, note, h("table", { class: "pairs" }, h("caption", { class: "hidden" }, title), h("tbody", {}, figures.map(([name, figure]) => h("tr", {}, h("th", { scope: "row" }, nameOfMetric(name)), h("td", {}, figureText(figure)))))));
}
function comparisonsOf(rows) {
  return section("Order of the candidates", "position consistency: proportion of samples judged in both orders that have the same outcome in both",
    h("div", { class: "scroll-x" }, h("table", { class: "figures" }, h("caption", { class: "hidden" }, "Ties and position consistency"),
      h("thead", {}, h("tr", {}, ["Judge", "Ties", "Position consistency", "Judged in both orders"].map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, h("th", { scope: "row" }, said(row.name)), h("td", { "data-label": "Ties" }, figureText(row.ties, { share: true })), h("td", { "data-label": "Position consistency" }, figureText(row.consistency, { share: true })), h("td", { "data-label": "Judged in both orders" }, count(row.consistency.n || 0))))))));
}
function confusing(one, at) {
  const rows = one.confusing.map((item) => {
    const cell = cellAt(item, at);
    return h("li", {}, h("span", { class: "badges" }, KINDS.map(([kind, flag]) => (cells.flags[cell] & flag ? badge(kind) : null))),
      h("a", { href: address("item", [item], { c: at }) }, h("span", { class: "look-id" }, said(items.id[item])), said(cellWords(cell), "span", "look-why")));
  });
  return section("Most confusing items", "items furthest from their labels, then items on which votes differ", rows.length ? h("ol", { class: "looks" }, rows) : h("p", { class: "soft" }, "No item has differing votes, failed votes or wrong answers."),
    h("p", { class: "more" }, link(address("items", [], { c: at, f: run.has_truth ? "wrong" : "split" }), run.has_truth ? "All wrong answers" : "All split votes")));
}
