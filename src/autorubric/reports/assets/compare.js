function compareView() {
  const c = compare;
  const verdictOf = (what, figure) => {
    const interval = ends(figure);
    if (!defined(figure)) return `${what}: unknown${figure && figure.why ? `, ${figure.why}` : ""}.`;
    if (!interval) return `${what}: ${signed(figure.v, 3)}${figure.why ? ` (${figure.why})` : ""}.`;
    const told = `[${signed(interval[0], 3)}, ${signed(interval[1], 3)}]`;
    if (interval[0] > 0) return `${what}: higher by ${num(figure.v, 3)} ${told}.`;
    if (interval[1] < 0) return `${what}: lower by ${num(-figure.v, 3)} ${told}.`;
    return `${what}: no difference distinguishable from chance ${told}.`;
  };
  const verdicts = [["Mean score", c.score], ...c.headline.map((one) => [one.name[0].toUpperCase() + one.name.slice(1), one.difference])];
  const rows = c.criteria.map((one) => ({ ...one, name: criteria[one.at].name }));
  const v = (pick) => (row) => (defined(pick(row)) ? pick(row).v : null);
  const overall = axisAround([c.score, ...c.headline.map((one) => one.difference)]);
  const axes = [axisAround(rows.map((row) => row.value)), axisAround(rows.map((row) => row.answers && row.answers.difference))];
  const columns = [
    { name: "Criterion", key: (row) => row.name, cell: (row) => link(address("criteria", [row.at]), said(row.name)) },
    { name: "Change in mean value", key: v((row) => row.value), high: true, cell: (row) => h("span", { class: "with-plot" }, figureText(row.value, { plus: true }), whisker(row.value, ...axes[0])) },
    { name: "p (Holm)", key: (row) => row.p, number: true, cell: (row) => pText(row.p) },
    rows.some((row) => row.answers) ? { name: `Change in ${c.stat}`, key: v((row) => row.answers && row.answers.difference), high: true, cell: (row) => (row.answers ? h("span", { class: "with-plot" }, figureText(row.answers.difference, { plus: true }), whisker(row.answers.difference, ...axes[1])) : "–") } : null,
    rows.some((row) => row.answers) ? { name: `p for ${c.stat} (Holm)`, key: (row) => (row.answers ? row.answers.p : null), number: true, cell: (row) => pText(row.answers ? row.answers.p : null) } : null,
  ].filter(Boolean);
  const moved = items.id.map((_, i) => i).filter((i) => change(i)).sort((a, b) => Math.abs(change(b)) - Math.abs(change(a)) || a - b).slice(0, 12);
  return [
    h("div", { class: "title" }, h("h1", {}, "Compared with the baseline"), h("p", { class: "soft" }, said(run.name), " minus ", said(c.name), ` · ${plural(c.n_both, "item")} in both`, c.n_only_run ? `, ${count(c.n_only_run)} only in this run` : "", c.n_only_base ? `, ${count(c.n_only_base)} only in the baseline` : "")),
    h("ul", { class: "lead", id: "compare-verdict" }, verdicts.map((one) => h("li", {}, verdictOf(...one)))),
    section("All items", "differences are paired by item",
      h("div", { class: "scroll-x" }, h("table", { class: "figures" }, h("caption", { class: "hidden" }, "Runs compared"),
        h("thead", {}, h("tr", {}, ["Figure", "This run", "Baseline", "Difference", "", "p"].map((one) => h("th", { scope: "col" }, one)))),
        h("tbody", {},
          h("tr", {}, h("th", { scope: "row" }, "mean score"), h("td", { "data-label": "This run" }, num(c.means[0], 3)), h("td", { "data-label": "Baseline" }, num(c.means[1], 3)), h("td", { "data-label": "Difference" }, figureText(c.score, { plus: true, digits: 3 })), h("td", {}, whisker(c.score, ...overall)), h("td", { "data-label": "p" }, pText(c.score_p))),
          c.headline.map((one) => h("tr", {}, h("th", { scope: "row" }, one.name, h("span", { class: "soft small block-line" }, one.better > 0 ? "higher is better" : "lower is better")), h("td", { "data-label": "This run" }, figureText(one.run, { digits: 3 })), h("td", { "data-label": "Baseline" }, figureText(one.base, { digits: 3 })), h("td", { "data-label": "Difference" }, figureText(one.difference, { plus: true, digits: 3 })), h("td", {}, whisker(one.difference, ...overall)), h("td", { "data-label": "p" }, pText(one.p)))))))),
    section("Verdicts", "on all items of each run", h("div", { class: "scroll-x" }, h("table", { class: "figures", id: "compare-verdicts" }, h("caption", { class: "hidden" }, "Verdicts of both runs"),
      h("thead", {}, h("tr", {}, ["Run", "Requested", "Answered", "Abstained", "Lost", "Assumed"].map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, ["This run", "Baseline"].map((who, at) => h("tr", {}, h("th", { scope: "row" }, who, c.verdicts[at].not_judged ? h("span", { class: "soft small block-line" }, `${count(c.verdicts[at].not_judged)} not judged`) : null), ["asked", "answered", "abstained", "lost", "assumed"].map((kind) => h("td", { "data-label": kind }, count(c.verdicts[at][kind]))))))))),
    section("By criterion", "p-values are adjusted for the number of criteria (Holm)", pages(rows, (part) => sortable({ columns, rows: part, caption: "Runs compared by criterion" }))),
    section("Items with the largest changes", null, moved.length ? h("ol", { class: "looks" }, moved.map((i) => h("li", {}, h("span", { class: "num move" }, signed(change(i))), h("a", { href: address("item", [i], { s: "change" }) }, h("span", { class: "look-id" }, said(items.id[i])), h("span", { class: "look-why" }, `${num(compare.scores[i])} to ${num(items.score[i])}; ${plural(compare.changed[i], "answer")} changed`))))) : h("p", { class: "soft" }, "No score changed."),
      h("p", { class: "more" }, link(address("items", [], { f: "changed", s: "change" }), "All items with a changed answer"))),
  ];
}
