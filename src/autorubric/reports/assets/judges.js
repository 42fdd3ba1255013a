function judgesView() {
  const { rows, matrix: agreeing, pairs, stat, ties, same_cells: sameCells, ceiling, tied_labels: tiedLabels, notes } = data.judges;
  const v = (key) => (row) => (defined(row[key]) ? row[key].v : null);
  const columns = [
    { name: "Judge", key: (row) => row.name, cell: (row) => [said(row.name), row.kind === "panel" ? h("span", { class: "soft" }, " combined") : null, row.models && row.models.length && row.models.join() !== row.name ? said(row.models.join(", "), "span", "soft small block-line") : null] },
    ...metricColumns("judges", true),
    ...(rows.some((row) => row.coverage !== null) ? [{ name: "Coverage", key: (row) => row.coverage, high: true, cell: (row) => (row.coverage === null ? "–" : percent(row.coverage)) }] : []),
    { name: "Abstains", key: v("abstention"), high: true, cell: (row) => figureText(row.abstention, { share: true }) },
    { name: "Lost", key: (row) => (row.verdicts ? row.verdicts.lost : null), high: true, number: true, cell: (row) => ofAsked(row.verdicts, "lost") },
    { name: "Assumed", key: (row) => (row.verdicts ? row.verdicts.assumed : null), high: true, number: true, cell: (row) => ofAsked(row.verdicts, "assumed") },
    { name: "Votes", key: (row) => row.votes ?? null, high: true, number: true, cell: (row) => (row.votes === undefined ? "" : count(row.votes)) },
    { name: "Cost", key: (row) => row.cost ?? null, high: true, number: true, cell: (row) => (row.kind === "panel" ? money(run.cost) : money(row.cost)) },
    { name: "Latency", key: (row) => row.latency ?? null, high: true, number: true, cell: (row) => (row.kind === "panel" ? "" : duration(row.latency)) },
  ];
  return [
    h("div", { class: "title" }, h("h1", {}, "Judges"), h("p", { class: "soft" }, `Means over criteria, compared with the labels on the labelled cells that the judge answered (coverage), with ${percent(run.level)} intervals. A cell is one criterion of one item. Lost and assumed verdicts are counted on all items, with or without labels. Latency is the median per vote.`)),
    sortable({ columns, rows, caption: "Judges" }),
    tiedLabels === null ? null : h("p", { class: "soft" }, `Several people labelled the items: ${plural(tiedLabels, "cell has", "cells have")} no label because of ties.`),
    sameCells ? samePlaces(sameCells) : null,
    agreementMatrix(agreeing),
    calibration(rows),
    biases(rows, notes),
    contests(pairs, stat, ties),
    ceiling ? people(ceiling) : null,
  ];
}
function ofAsked(verdicts, kind) {
  return verdicts ? h("span", { title: `of ${count(verdicts.asked)} requested verdicts` }, `${count(verdicts[kind])} of ${count(verdicts.asked)}`) : "";
}
function agreementMatrix({ names, kinds, cells: found }) {
  if (!names.length) return section("Agreement", null, h("p", { class: "soft" }, `There are too many judges for a table of pairs (${count(run.judges.length)}).`));
  if (names.length < 2) return section("Agreement", null, h("p", { class: "none" }, "There is only one judge and no label, so agreement is undefined."));
  const table = new Map(found.map(([a, b, figure]) => [`${a},${b}`, figure]));
  const kappas = new Map(found.map(([a, b, , kappa]) => [`${a},${b}`, kappa]));
  const kappaAt = (i, j) => kappas.get(`${Math.min(i, j)},${Math.max(i, j)}`);
  const at = (i, j) => table.get(`${Math.min(i, j)},${Math.max(i, j)}`);
  return section("Agreement", "proportion of equal answers among the cells that both answered, and κ, the mean over criteria of Cohen's kappa, which corrects for chance; point at a cell for details",
    matrix({ rows: names, columns: names, corner: "", caption: "Agreement of every two raters", value: (i, j) => (i === j || !defined(at(i, j)) ? null : at(i, j).v),
      tell: (i, j) => {
        if (i === j) return h("span", { class: "soft" }, "·");
        const figure = at(i, j);
        if (!defined(figure)) return h("span", { class: "none", title: figure && figure.why }, "–");
        const interval = ends(figure);
        const kappa = kappaAt(i, j), known = defined(kappa);
        return h("span", { title: `${interval ? `${percent(interval[0])} to ${percent(interval[1])}; ` : ""}n = ${count(figure.n)}; ${known ? kappa.how : `no kappa: ${kappa.why}`}` },
          percent(figure.v), h("span", { class: "small block-line" }, `κ ${known ? num(kappa.v) : "–"}`));
      } }));
}
function calibration(rows) {
  const found = rows.flatMap((row) => (row.probabilities || []).map((one) => ({ row, ...one })));
  if (!found.length) return null;
  return section("Calibration of probabilities", "observed rate by mean forecast (P(MET) for MET/UNMET, otherwise the largest probability) in bins of equal width, with intervals; the area of a dot is its number of items, and a calibrated judge follows the diagonal; probabilities are those given that the judge answers",
    h("div", { class: "diagrams" }, found.map(({ row, name, origin, figures, bins }) => h("figure", {},
      h("figcaption", {}, said(row.name), ": ", nameOf(name), h("span", { class: "soft small block-line" }, said(origin), `, n = ${count(figures.brier.n)}`)),
      reliabilityDiagram(bins, figures.brier.n, `Reliability of ${row.name} on ${name}`),
      h("table", { class: "pairs small" }, h("caption", { class: "hidden" }, "Figures of probabilities"), h("tbody", {}, Object.entries(data.judges.probabilities).map(([key, title]) => h("tr", {}, h("th", { scope: "row" }, title), h("td", {}, figureText(figures[key]))))))))));
}
function biases(rows, notes) {
  const judges = rows.filter((row) => row.biases);
  const isDefined = ({ key }) => judges.some((row) => defined(row.biases[key]));
  const kinds = data.judges.kinds.filter(isDefined);
  const axes = Object.fromEntries(kinds.map(({ key }) => [key, axisAround(judges.map((row) => row.biases[key]))]));
  const undefinedOnes = data.judges.kinds.filter((one) => !isDefined(one)).map(({ key, name }) => {
    const why = judges.map((row) => row.biases[key] && row.biases[key].why).find(Boolean);
    return `${name}: ${why || "unknown"}`;
  });
  return section("Bias", `values above 0 favour the ${criteria.every((one) => one.level === "ranking") ? "first candidate" : "text"}; p-values are adjusted for the number of judges and kinds of bias (Holm); a bias is marked if no possible share of wrong labels raises p to 0.05`,
    kinds.length ? h("div", { class: "scroll-x" }, h("table", { class: "figures biases" }, h("caption", { class: "hidden" }, "Biases of judges"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Judge"), kinds.map(({ name, about }) => h("th", { scope: "col" }, name, h("span", { class: "soft small block-line" }, about))))),
      h("tbody", {}, judges.map((row) => h("tr", {}, h("th", { scope: "row" }, said(row.name)), kinds.map(({ key, name, tested }) => {
        const figure = row.biases[key];
        return h("td", { "data-label": name }, h("span", { class: "with-plot" }, figureText(figure, { plus: true }), whisker(figure, ...axes[key]), tested && figure.named ? h("span", { class: "badge badge-wrong", title: `adjusted p ${pText(figure.p)}` }, "biased") : null, figure.explained_by ? h("span", { class: "soft small block-line" }, `${percent(figure.explained_by)} wrong labels explain it`) : null));
      })))))) : null,
    undefinedOnes.length ? h("p", { class: "soft" }, `Not available: ${undefinedOnes.join("; ")}.`) : null,
    notes.map((one) => said(one, "p", "soft small")));
}
function samePlaces(found) {
  const name = nameOfMetric(found.figure);
  return section("Panel and best judge", `on the ${count(found.n)} labelled cells that both answered, ${percent(found.coverage)} of all`,
    h("table", { class: "pairs" }, h("caption", { class: "hidden" }, "Panel and best judge on the same cells"), h("tbody", {},
      [["panel", found.panel], [found.judge, found.best]].map(([who, figure]) => h("tr", {}, h("th", { scope: "row" }, said(who), `: ${name}`), h("td", {}, figureText(figure)))),
      h("tr", {}, h("th", { scope: "row" }, "Difference"), h("td", {}, figureText(found.difference, { plus: true }))))),
    found.ties ? h("p", { class: "soft" }, tiesText(found.ties, found.ties_answered)) : null);
}
function tiesText(n, answered) {
  return `Tied votes on ${plural(n, "labelled cell", "labelled cells")} are excluded${answered ? `; the other metrics of the panel count its conservative answer on ${answered === n ? "all" : count(answered)} of them` : ", since the panel has no answer there"}.`;
}
function contests(pairs, stat, ties) {
  if (data.judges.too_many) return section("Judges in pairs", null, h("p", { class: "soft" }, `There are ${count(run.judges.length)} judges; pairs are compared for at most ${data.judges.too_many}. Use autorubric judges compare instead.`));
  if (!pairs.length) return null;
  return section("Judges in pairs", `${stat}, on the cells that both answered; intervals are paired by item`,
    h("div", { class: "scroll-x" }, h("table", { class: "figures" }, h("caption", { class: "hidden" }, "Judges compared in pairs"),
      h("thead", {}, h("tr", {}, ["First", "Second", "First value", "Second value", "Difference", "", "p (Holm)", "Cells", "Coverage"].map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, pairs.slice(0, 100).map((one) => h("tr", {}, h("th", { scope: "row" }, said(one.a)), h("td", { "data-label": "Second" }, said(one.b)), h("td", { "data-label": "First value" }, num(one.of_a.v)), h("td", { "data-label": "Second value" }, num(one.of_b.v)), h("td", { "data-label": "Difference" }, figureText(one.difference, { plus: true })), h("td", {}, whisker(one.difference, ...axisAround(pairs.map((each) => each.difference)))), h("td", { "data-label": "p (Holm)" }, pText(one.p)), h("td", { "data-label": "Cells" }, count(one.n)), h("td", { "data-label": "Coverage" }, percent(one.coverage))))))),
    ties && ties.n ? h("p", { class: "soft" }, `Pairs with the panel: ${tiesText(ties.n, ties.answered)}`) : null);
}
function people(ceiling) {
  return section("Agreement between people", `${plural(ceiling.humans.length, "person", "people")}: each compared with the others, on average`,
    h("table", { class: "pairs" }, h("caption", { class: "hidden" }, "People"), h("tbody", {},
      Object.entries(ceiling.figures).filter(([, figure]) => defined(figure)).map(([name, figure]) => [h("tr", {}, h("th", { scope: "row" }, nameOfMetric(name)), h("td", {}, figureText(figure))), h("tr", {}, h("th", { scope: "row" }, `${nameOfMetric(name)} of the panel in a person's place`), h("td", {}, figureText(ceiling.panel[name])))]).flat(),
      Object.entries(ceiling.gap).map(([who, figure]) => h("tr", {}, h("th", { scope: "row" }, `${ceiling.compared} of `, said(who), " − a person's"), h("td", {}, figureText(figure, { plus: true })))))));
}
