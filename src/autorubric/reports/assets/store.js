// The data of the page. Details are in chunks that are parsed when one of their items is opened or searched.
const data = JSON.parse(byId("data").textContent);
const { run, items, cells, criteria, strings, compare, live } = data;
const WRONG = 1, SPLIT = 2, ABSTAINED = 4, FAILED = 8;
const STATUS = { a: "answered", o: "abstained", f: "failed", n: "not asked", x: "not applicable", u: "undecided", "-": "no decision" };
const KINDS = [
  ["failed", FAILED, "Items with a failure", "failed"],
  ["wrong", WRONG, "Wrong answers", "wrong"],
  ["split", SPLIT, "Split votes", "split"],
  ["abstained", ABSTAINED, "Abstentions", "abstained"],
];
const size = items.id.length;

const starts = new Uint32Array(size + 1);
for (let i = 0; i < size; i++) starts[i + 1] = starts[i] + items.rubrics[items.rubric[i]].length;
const counts = { wrong: new Uint16Array(size), split: new Uint16Array(size), abstained: new Uint16Array(size), failed: new Uint16Array(size) };
for (let i = 0; i < size; i++) {
  for (let c = starts[i]; c < starts[i + 1]; c++) {
    const flags = cells.flags[c];
    if (!flags) continue;
    for (const [kind, flag] of KINDS) if (flags & flag) counts[kind][i]++;
  }
  if (items.score[i] === null && !counts.failed[i]) counts.failed[i] = 1;
}
const rubricPlaces = items.rubrics.map((rubric) => new Map(rubric.map((criterion, at) => [criterion, at])));
/* The place of an item's cell on a criterion; -1 where its rubric has no such criterion. */
function cellAt(item, criterion) {
  const at = rubricPlaces[items.rubric[item]].get(criterion);
  return at === undefined ? -1 : starts[item] + at;
}
/* How favourable an answer is, from 0 to 1: its value, reversed for a penalty. */
const turned = (value, criterion) => (value === null || value === undefined ? null : criterion >= 0 && criteria[criterion].weight < 0 ? 1 - value : value);
const favour = (place, criterion) => turned(cells.value[place], criterion);
const word = (place) => (place < 0 ? null : strings[place]);

const chunks = new Map();
function chunkOf(item) {
  const at = Math.floor(item / data.chunk);
  if (!chunks.has(at)) chunks.set(at, JSON.parse(byId(`details-${at}`).textContent));
  return chunks.get(at);
}
const detailsOf = (item) => {
  const chunk = chunkOf(item);
  return { detail: chunk.items[item % data.chunk], text: (place) => (place === undefined || place < 0 ? null : chunk.strings[place]) };
};

// The searched text of an item: its id, texts, answers and reasons; built on the first search.
let haystacks = null;
function haystackOf(item) {
  haystacks ||= new Array(size);
  if (haystacks[item] === undefined) {
    const { detail, text } = detailsOf(item);
    const found = [items.id[item]];
    for (const [, place] of detail.texts) found.push(text(place));
    for (const place of [detail.error, detail.about, detail.meta]) if (place !== undefined) found.push(text(place));
    for (const one of detail.criteria || []) {
      for (const place of [one.error, one.why]) if (place !== undefined) found.push(text(place));
      for (const vote of one.votes || []) for (const place of [vote.r, vote.e]) if (place !== undefined) found.push(text(place));
    }
    haystacks[item] = found.join("\n").toLowerCase();
  }
  return haystacks[item];
}
function matching(query) {
  // Every word, and every phrase in quotes, must be there.
  const words = [...query.toLowerCase().matchAll(/"([^"]+)"|\S+/g)].map((one) => one[1] || one[0]);
  const found = [];
  for (let i = 0; i < size; i++) {
    const haystack = haystackOf(i);
    if (words.every((one) => haystack.includes(one))) found.push(i);
  }
  return found;
}

// The fragment of the address is the state: a view, its parts and its query.
function readAddress() {
  const [path, query] = (location.hash.slice(1) || "/").split("?");
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  return { view: parts[0] || "overview", parts: parts.slice(1), query: new URLSearchParams(query || "") };
}
function address(view, parts = [], query = {}) {
  const asked = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const tail = asked.length ? `?${new URLSearchParams(asked)}` : "";
  return `#/${[view === "overview" ? "" : view, ...parts.map((one) => encodeURIComponent(one))].filter((one) => one !== "").join("/")}${tail}`;
}
const link = (href, ...children) => h("a", { href }, ...children);

/* The items that an address asks for, filtered, searched and sorted. */
let lastSearch = { query: "", found: null };
function itemsFor(query) {
  const kinds = (query.get("f") || "").split(",").filter(Boolean);
  const criterion = query.has("c") ? Number(query.get("c")) : null;
  const text = (query.get("q") || "").trim();
  let found = null;
  if (text) {
    if (lastSearch.query !== text) lastSearch = { query: text, found: matching(text) };
    found = lastSearch.found;
  } else found = Array.from({ length: size }, (_, i) => i);
  if (criterion !== null || kinds.length) {
    const wanted = KINDS.filter(([kind]) => kinds.includes(kind));
    found = found.filter((i) => {
      if (kinds.includes("changed") && !(compare && compare.changed[i])) return false;
      if (criterion !== null) {
        const cell = cellAt(i, criterion);
        return cell >= 0 && wanted.every(([, flag]) => cells.flags[cell] & flag);
      }
      return wanted.every(([kind]) => counts[kind][i]);
    });
  }
  return sorted(found, query.get("s") || "", query.get("d") === "desc");
}
function sortValue(key) {
  if (key.startsWith("c:")) {
    const criterion = Number(key.slice(2));
    return (i) => { const cell = cellAt(i, criterion); return cell < 0 ? null : cells.value[cell]; };
  }
  if (key === "difference") return (i) => difference(i);
  if (key === "change") return (i) => change(i);
  if (key === "changed") return (i) => (compare ? compare.changed[i] : null);
  if (key in counts) return (i) => counts[key][i];
  return key in items && key !== "rubrics" ? (i) => items[key][i] : null;
}
function sorted(found, key, descending) {
  const value = key ? sortValue(key) : null;
  if (!value) return descending ? found.slice().reverse() : found;
  const sign = descending ? -1 : 1;
  // Items without a value come last in both directions.
  return found.slice().sort((a, b) => {
    const x = value(a), y = value(b);
    if (x === null || y === null) return (x === null) - (y === null) || a - b;
    const order = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y;
    return sign * order || a - b;
  });
}
const difference = (i) => (items.truth && items.common[i] !== null && items.truth[i] !== null ? items.common[i] - items.truth[i] : null);
const change = (i) => (compare && compare.scores[i] !== null && items.score[i] !== null ? items.score[i] - compare.scores[i] : null);
