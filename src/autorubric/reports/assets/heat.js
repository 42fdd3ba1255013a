// Items × criteria. Only visible rows and columns are drawn, since items may have entirely different rubrics.
function heatView(query) {
  const found = itemsFor(query);
  const every = query.has("c") ? [Number(query.get("c"))] : heatColumns(found);
  // If items have their own rubrics, the criteria of each item are placed side by side from the left.
  const longest = found.reduce((most, i) => Math.max(most, items.rubrics[items.rubric[i]].length), 0);
  const n_cells = found.reduce((sum, i) => sum + items.rubrics[items.rubric[i]].length, 0);
  const packed = !query.has("c") && n_cells <= (found.length * every.length) / 2;
  const shown = packed ? Array.from({ length: longest }, (_, k) => k) : every;
  const criterionAt = (item, k) => (packed ? items.rubrics[items.rubric[item]][k] ?? -1 : shown[k]);
  const placeAt = (item, k) => (packed ? (criterionAt(item, k) < 0 ? -1 : starts[item] + k) : cellAt(item, shown[k]));
  const asked = Object.fromEntries(query);
  const compares = criteria.every((one) => one.level === "ranking");
  const room = Math.min(document.documentElement.clientWidth, 1240) - 48;
  const left = narrow() ? 104 : 196, rowHeight = 26;
  const step = Math.max(26, Math.min(150, Math.floor((room - left - 16) / Math.max(shown.length, 1))));
  const upright = step < 92 && !packed;
  const about = h("p", { class: "heat-about", id: "heat-about", "aria-live": "polite" }, "Move with the arrow keys or point at a cell; Enter opens the item.");
  const width = left + shown.length * step;
  const head = h("div", { class: `heat-head ${upright ? "upright" : ""}`, role: "row", "aria-rowindex": 1 });
  let span = [0, 0];
  const visibleSpan = (host) => {
    const from = Math.max(0, Math.floor(host.scrollLeft / step) - 4);
    return [from, Math.min(shown.length, from + Math.ceil((host.clientWidth || room) / step) + 8)];
  };
  function drawHead() {
    head.replaceChildren(h("div", { class: "heat-corner", role: "columnheader" }, "Item"), ...shown.slice(...span).map((criterion, k) => {
      const at = span[0] + k;
      if (packed) {
        const cell = h("div", { role: "columnheader", class: "heat-name num" }, String(at + 1));
        cell.style.left = `${left + at * step}px`;
        cell.style.width = `${step}px`;
        return cell;
      }
      const key = `c:${criterion}`, on = query.get("s") === key, down = query.get("d") === "desc";
      const cell = h("div", { role: "columnheader", class: "heat-name", "aria-sort": on ? (down ? "descending" : "ascending") : null },
        h("button", { type: "button", title: visible(criteria[criterion].name), onclick: () => { location.hash = address("heat", [], { ...asked, s: key, d: on && !down ? "desc" : "" }); } }, said(criteria[criterion].name)));
      cell.style.left = `${left + at * step}px`;
      cell.style.width = `${step}px`;
      return cell;
    }));
  }
  const grid = virtualGrid({
    label: "Heat map of items and criteria", rows: found.length, columns: shown.length, height: rowHeight, head, width,
    draw: (at, column, isActive) => {
      const item = found[at];
      const name = h("div", { class: "heat-item", role: "rowheader" }, h("a", { href: address("item", [item]), tabindex: -1 }, said(items.id[item])), h("span", { class: "num soft" }, num(items.score[item])));
      name.style.width = `${left}px`;
      const row = h("div", { class: "heat-row", "data-item": item }, name);
      for (let k = span[0]; k < span[1]; k++) {
        const place = placeAt(item, k), criterion = criterionAt(item, k);
        if (place < 0) continue;
        const cell = h("div", { role: "gridcell", id: `cell-${at}-${k}`, class: `heat-cell ${heatClass(place, criterion)} ${isActive && k === column ? "current" : ""}`, "aria-label": heatWords(item, criterion, place), "aria-colindex": k + 2, "data-k": k });
        cell.style.left = `${left + k * step}px`;
        cell.style.width = `${step - 2}px`;
        row.append(cell);
      }
      return row;
    },
    open: (at, column) => openItem(found[at], query, Math.max(criterionAt(found[at], column), 0)),
    moved: (at, column, host) => {
      const x = column * step, inner = host.clientWidth - left;
      if (x < host.scrollLeft) host.scrollLeft = x;
      else if (x + step > host.scrollLeft + inner) host.scrollLeft = x + step - inner;
      span = visibleSpan(host);
      drawHead();
      tell(found[at], column);
    },
  });
  const host = grid.host;
  host.classList.add("heat");
  span = visibleSpan(host);
  drawHead();
  host.addEventListener("scroll", () => {
    const now = visibleSpan(host);
    if (now[0] !== span[0] || now[1] !== span[1]) { span = now; drawHead(); grid.redraw(true); }
  }, { passive: true });
  function tell(item, k) {
    const place = placeAt(item, k), criterion = criterionAt(item, k);
    about.replaceChildren(h("strong", {}, said(items.id[item])), " · ", ...(criterion < 0 ? [] : [said(criteria[criterion].name), ": "]), said(place < 0 ? "not in this item's rubric" : cellWords(place)));
  }
  host.addEventListener("mouseover", (event) => {
    const cell = event.target.closest(".heat-cell");
    if (cell) tell(Number(cell.parentNode.dataset.item), Number(cell.dataset.k));
  });
  host.addEventListener("click", (event) => {
    const cell = event.target.closest(".heat-cell");
    if (cell) openItem(Number(cell.parentNode.dataset.item), query, criterionAt(Number(cell.parentNode.dataset.item), Number(cell.dataset.k)));
  });
  const order = h("label", {}, h("span", { class: "soft" }, "Sort "), h("select", { onchange: (event) => { location.hash = address("heat", [], { ...asked, s: event.target.value, d: "" }); } },
    [["", "in dataset order"], ["score", "by score"], ["wrong", "by wrong answers"], ["split", "by split votes"]].filter(([key]) => key !== "wrong" || run.has_truth)
      .map(([key, words]) => h("option", { value: key, selected: (query.get("s") || "") === key }, words))));
  return [
    h("div", { class: "title" }, h("h1", {}, "Heat map"), h("p", { class: "soft", id: "found" }, told(found.length, query), ` × ${plural(every.length, "criterion", "criteria")}${packed ? "; each item has its own criteria, in the order of its rubric" : ""}`)),
    h("div", { class: "filter-row" }, filters("heat", query), order),
    h("p", { class: "legend" }, h("span", {}, compares ? "second is better" : "unfavourable", h("span", { class: "ramp", "aria-hidden": "true" }, [0, 2, 4, 5, 6, 8, 10].map((one) => h("i", { class: `v${one}` }))), compares ? "first is better" : "favourable"),
      [["flag-wrong v8", "wrong answer", run.has_truth], ["flag-split v8", "split votes", true], ["abstained", "abstained", true], ["failed", "failed", true], ["other", "not asked or not applicable", true], ["plain", "no value", true]].filter((one) => one[2]).map(([cls, words]) => h("span", {}, h("span", { class: `heat-cell sample ${cls}`, "aria-hidden": "true" }), words))),
    found.length ? host : h("p", { class: "empty" }, "No item matches."), about,
  ];
}
function heatColumns(found) {
  const seen = new Set();
  for (const rubric of new Set(found.map((i) => items.rubric[i]))) for (const one of items.rubrics[rubric]) seen.add(one);
  return [...seen].sort((a, b) => a - b);
}
function heatClass(place, criterion) {
  const status = cells.status[place], value = favour(place, criterion), flags = cells.flags[place];
  const marks = (flags & WRONG ? " flag-wrong" : "") + (flags & SPLIT ? " flag-split" : "");
  if (status === "f") return `failed${marks}`;
  if (status === "o") return `abstained${marks}`;
  if (status !== "a") return `other${marks}`;
  return (value === null ? "plain" : `v${Math.round(value * 10)}`) + marks;
}
function cellWords(place) {
  const flags = cells.flags[place], answer = word(cells.label[place]);
  const status = cells.status[place];
  const parts = [status === "a" ? answer || "answered" : STATUS[status] + (status === "o" && answer ? ` (${answer})` : "")];
  if (cells.truth[place] >= 0) parts.push(`label ${word(cells.truth[place])}${flags & WRONG ? " (differs)" : ""}`);
  if (flags & SPLIT) parts.push("votes differ");
  if (flags & ABSTAINED) parts.push("a vote abstains");
  if (flags & FAILED) parts.push("a vote failed");
  return parts.join("; ");
}
const heatWords = (item, criterion, place) => visible(`${items.id[item]}, ${criteria[criterion].name}: ${cellWords(place)}`);
