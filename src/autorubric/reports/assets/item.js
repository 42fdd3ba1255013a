const BATCH = 40;
function itemView(parts, query) {
  const item = Number(parts[0]);
  if (!(item >= 0 && item < size)) return [h("h1", {}, "No such item"), h("p", {}, link(address("items"), "All items"))];
  const { detail, text } = detailsOf(item);
  const wanted = query.has("c") ? Number(query.get("c")) : null;
  return [
    itemHead(item, detail, query),
    detail.error !== undefined ? h("p", { class: "note" }, said(text(detail.error))) : null,
    h("div", { class: "item" }, h("div", { class: "texts" }, texts(detail, text)), h("div", { class: "judged" }, judged(item, detail, text, wanted))),
  ];
}
function itemHead(item, detail, query) {
  const kept = Object.fromEntries([...query].filter(([key]) => key !== "c"));
  const list = itemsFor(new URLSearchParams(kept));
  const at = list.indexOf(item);
  const step = (to, words, key) => {
    const there = at >= 0 && to >= 0 && to < list.length;
    return there ? h("a", { class: "quiet", href: address("item", [list[to]], kept), "data-step": key, rel: key }, words) : h("span", { class: "quiet off" }, words);
  };
  const figures = [
    ["Score", num(items.score[item])],
    items.truth && items.truth[item] !== null ? ["Score from labels", num(items.truth[item])] : null,
    compare && compare.scores[item] !== null ? ["Baseline", num(compare.scores[item])] : null,
    detail.raw !== undefined ? ["Raw score", num(detail.raw)] : null,
    detail.penalty !== undefined ? ["Length penalty", num(detail.penalty)] : null,
    ["Agreement", percent(items.agreement[item])],
    run.cost !== null ? ["Cost", money(items.cost[item])] : null,
    ["Time", duration(items.seconds[item])],
  ].filter(Boolean);
  return h("div", { class: "title item-head" },
    h("div", { class: "steps" }, link(address("items", [], kept), "All items"), h("span", { class: "grow" }), step(at - 1, "← Previous", "prev"), h("span", { class: "num soft" }, at >= 0 ? `${count(at + 1)} of ${count(list.length)}` : ""), step(at + 1, "Next →", "next")),
    h("h1", {}, said(items.id[item]), " ", KINDS.map(([kind]) => (counts[kind][item] ? [badge(kind, counts[kind][item]), " "] : null))),
    h("dl", { class: "facts" }, figures.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { class: "num" }, value))),
      (detail.scores || []).map(([judge, score]) => h("div", {}, h("dt", {}, "by ", said(run.judges[judge])), h("dd", { class: "num" }, num(score))))));
}
function texts(detail, text) {
  const found = detail.texts.map(([what, place, length]) => {
    const own = text(place);
    const body = said(own, "div", "text");
    if (what === "Submission" || what.startsWith("Candidate")) body.classList.add("graded");
    const cut = length ? h("p", { class: "soft" }, own ? `Truncated after ${count(own.length)} of ${count(length)} characters.` : `This file does not include the text (${count(length)} characters).`) : null;
    const long = what === "Thinking" || (what === "Reference" && own.length > 600);
    return long ? h("details", { class: "part" }, h("summary", {}, said(what)), body, cut) : h("section", { class: "part" }, h("h2", {}, said(what)), body, cut);
  });
  for (const [label, url] of (detail.images || []).map(([label, place]) => [label, text(place)])) found.push(h("section", { class: "part" }, h("h2", {}, said(label)), url.startsWith("data:image/") ? h("img", { src: url, alt: label, class: "shown" }) : said(url, "p", "soft")));
  if (!detail.texts.some(([what]) => what === "Submission" || what.startsWith("Candidate"))) found.push(h("p", { class: "soft" }, "The item has no text."));
  if (detail.about !== undefined) found.unshift(said(text(detail.about), "p", "soft"));
  if (detail.meta !== undefined) found.push(h("details", { class: "part" }, h("summary", {}, "Metadata"), said(text(detail.meta), "div", "text")));
  return found;
}
function judged(item, detail, text, wanted) {
  const all = detail.criteria || [];
  if (!all.length) return [h("p", { class: "none" }, "This item has no report.")];
  const list = h("div", { class: "verdicts" });
  let drawn = 0, group = null;
  const more = h("button", { type: "button", class: "chip", onclick: () => grow(drawn + BATCH) });
  function grow(to) {
    for (; drawn < Math.min(to, all.length); drawn++) {
      const own = all[drawn].at >= 0 ? (criteria[all[drawn].at].groups || []).join(" › ") : "";
      if (own !== group && (own || group)) {
        const path = all[drawn].at >= 0 ? criteria[all[drawn].at].groups || [] : [];
        const score = detail.groups && path.length ? detail.groups[path[path.length - 1]] : undefined;
        list.append(h("h2", { class: "group" }, said(own || "Not in a group"), score === undefined ? null : h("span", { class: "num soft" }, score === null ? " no score" : ` ${num(score)}`)));
      }
      group = own;
      list.append(verdict(item, all[drawn], text));
    }
    more.hidden = drawn >= all.length;
    more.textContent = `Show more (${count(all.length - drawn)} left)`;
  }
  const place = wanted === null ? -1 : all.findIndex((one) => one.at === wanted);
  grow(Math.max(BATCH, place + 5));
  if (place >= 0) requestAnimationFrame(() => { const node = byId(`criterion-${wanted}`); if (node) { node.scrollIntoView({ block: "center", behavior: "auto" }); node.classList.add("wanted"); } });
  return [list, more];
}
function answerChip(answer, status, value) {
  if (status && status !== "answered") return h("span", { class: "answer none" }, answer !== null && status === "abstained" ? said(answer) : status.replace("_", " "));
  const shade = value === null || value === undefined ? "" : `a${Math.round(value * 4)}`;
  return said(answer === null ? "no answer" : answer, "span", `answer ${shade}`);
}
function verdict(item, one, text) {
  const facts = one.at >= 0 ? criteria[one.at] : {};
  const cell = one.at >= 0 ? cellAt(item, one.at) : -1;
  const flags = cell >= 0 ? cells.flags[cell] : 0;
  const truth = text(one.truth);
  const name = one.at >= 0 ? facts.name : text(one.name);
  const status = one.status || "answered";
  const base = compare && cell >= 0 ? word(compare.labels[cell]) : null;
  const meta = [
    facts.weight !== undefined ? `weight ${num(facts.weight, Number.isInteger(facts.weight) ? 0 : 2)}` : null,
    one.agreement !== undefined && (one.votes || []).length > 1 ? `${percent(one.agreement)} agree` : null,
    one.probabilities !== undefined ? text(one.probabilities) : null,
    one.confidence !== undefined ? `confidence ${percent(one.confidence)}` : null,
    facts.gate ? `gate: ${facts.gate}` : null,
    facts.when ? `only when ${facts.when}` : null,
    ...(one.marks || []),
  ].filter(Boolean);
  return h("article", { class: `verdict ${flags & WRONG ? "is-wrong" : ""}`, id: `criterion-${one.at}` },
    h("header", {},
      h("h3", {}, one.at >= 0 ? link(address("criteria", [one.at]), said(name)) : said(name)),
      h("span", { class: "decision" }, answerChip(text(one.answer), status, turned(one.value, one.at))),
      truth !== null ? h("span", { class: `truth ${flags & WRONG ? "differs" : ""}` }, flags & WRONG ? "✗ label " : "label ", said(truth)) : null,
      base !== null && base !== word(cells.label[cell]) ? h("span", { class: "truth" }, "baseline ", said(base)) : null,
      flags & SPLIT ? badge("split") : null),
    facts.requirement ? said(facts.requirement, "p", "requirement") : null,
    meta.length ? said(meta.join(" · "), "p", "soft small") : null,
    one.why !== undefined ? h("p", { class: "soft small" }, "Reason for the label: ", said(text(one.why))) : null,
    one.error !== undefined ? said(text(one.error), "p", "failure") : null,
    one.ratings ? h("p", { class: "soft small" }, "People: ", one.ratings.map(([rater, label], at) => [at ? ", " : null, said(text(rater)), " ", said(text(label))])) : null,
    (one.judges || []).length ? h("p", { class: "soft small" }, "Decisions of the judges over their samples: ", one.judges.map(([judge, status, answer], at) => [at ? ", " : null, said(run.judges[judge]), " ", said(answer < 0 ? status.replace("_", " ") : text(answer))])) : null,
    votes(one, text),
    live ? labelForm(item, one, truth) : null);
}
function votes(one, text) {
  const cast = one.votes || [];
  if (!cast.length) return h("p", { class: "none" }, `No vote: ${(one.status || "answered").replace("_", " ")}.`);
  return h("ul", { class: "votes" }, cast.map((vote) => {
    const status = vote.st || "answered";
    const about = [
      vote.s !== undefined ? `sample ${vote.s + 1}` : null,
      vote.c !== undefined ? `confidence ${percent(vote.c)}` : null,
      vote.p !== undefined ? text(vote.p) : null,
      vote.m !== undefined && text(vote.m) !== run.judges[vote.j] ? text(vote.m) : null,
      vote.o !== undefined ? `order ${text(vote.o)}` : null,
      vote.h !== undefined ? `judged on ${text(vote.h)}; the rest was too long for the judge` : vote.x ? "text truncated for the judge" : null,
      vote.k ? "could no longer change the verdict" : null,
    ].filter(Boolean);
    const answer = text(vote.a);
    return h("li", { class: `vote ${status !== "answered" ? "vote-open" : ""}` },
      h("div", { class: "vote-head" }, said(run.judges[vote.j], "span", "vote-judge"), answerChip(answer, status, turned(vote.v, one.at)), vote.w ? h("span", { class: "differs", title: "differs from the label" }, "✗ differs from label") : null),
      about.length ? said(about.join(" · "), "p", "soft small") : null,
      vote.r !== undefined ? reason(text(vote.r)) : null,
      vote.e !== undefined ? said(text(vote.e), "p", "failure") : null);
  }));
}
function reason(own) {
  const body = said(own, "p", "reason");
  if (own.length < 700) return body;
  body.classList.add("clamp");
  const button = h("button", { type: "button", class: "quiet small", "aria-expanded": "false", onclick: () => { const open = body.classList.toggle("clamp") === false; button.textContent = open ? "Less" : "More"; button.setAttribute("aria-expanded", String(open)); } }, "More");
  return [body, button];
}
