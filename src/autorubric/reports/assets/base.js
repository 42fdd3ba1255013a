// Elements are created only here; every text is inserted as a text node.
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Control characters, including those that change the text direction, are escaped; line breaks and tabs stay.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;
function visible(text) {
  return text.replace(/\r\n?/g, "\n").replace(CONTROLS, (c) => {
    const code = c.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code}` : `\\x${code.padStart(2, "0")}`;
  });
}
/* Text of users, isolated so that its direction does not affect its surroundings. */
const said = (text, tag = "bdi", cls = null) => h(tag, { class: cls, dir: "auto" }, visible(String(text)));

/* A name that breaks after _ / . and before a capital, not inside a word. */
function nameOf(text) {
  const node = said("");
  node.append(...visible(String(text)).split(/(?<=[_/.])|(?<=[a-z])(?=[A-Z])/).flatMap((part, at) => (at ? [document.createElement("wbr"), part] : [part])));
  return node;
}
/* A sentence with minus signs before its negative numbers. */
const withMinus = (text) => text.replace(/(?<![\w.)\]-])-(?=\.?\d)/g, "−");

const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many || one + "s"}`;
const count = (n) => n.toLocaleString("en-US").replace("-", "−");
function num(value, digits = 2) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value) && Math.abs(value) >= 10) return count(value);
  const told = value.toFixed(digits);
  return (Number(told) === 0 ? (0).toFixed(digits) : told).replace("-", "−");
}
const pText = (p) => (p !== null && p !== undefined && p < 0.001 ? "< 0.001" : num(p, 3));
const percent = (value, digits = 0) => (value === null || value === undefined ? "–" : `${num(value * 100, digits)}%`);
function money(value) {
  if (value === null || value === undefined) return "–";
  return `$${value >= 100 ? count(Math.round(value)) : value.toFixed(value && value < 0.1 ? 4 : 2)}`;
}
function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 90) return `${num(seconds, seconds < 10 ? 1 : 0)} s`;
  if (seconds < 5400) return `${num(seconds / 60, 0)} min`;
  return `${num(seconds / 3600, 1)} h`;
}
const defined = (figure) => Boolean(figure) && figure.v !== null && figure.v !== undefined;
const ends = (figure) => (figure && figure.lo !== undefined && figure.hi !== undefined ? [figure.lo, figure.hi] : null);
function signed(value, digits = 2) {
  const told = num(value, digits);
  return value > 0 && Number(value.toFixed(digits)) !== 0 ? `+${told}` : told;
}
/* A figure with its interval; undefined, with the reason. */
function figureText(figure, { digits = 2, plus = false, share = false } = {}) {
  if (!defined(figure)) return h("span", { class: "none" }, "–", figure && figure.why ? [" ", h("span", { class: "why" }, withMinus(figure.why))] : null);
  const told = (v) => (share ? percent(v, 0) : plus ? signed(v, digits) : num(v, digits));
  const interval = ends(figure);
  return h(
    "span",
    { class: "figure", title: `${figure.how || ""}${figure.n ? ` (n = ${count(figure.n)})` : ""}` },
    h("span", { class: "num strong" }, told(figure.v)),
    interval ? [" ", h("span", { class: "num ends" }, `[${told(interval[0])}, ${told(interval[1])}]`)] : figure.why ? [" ", h("span", { class: "why" }, figure.why)] : null,
  );
}
const say = (text) => { byId("status").textContent = text; };
const reduced = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const narrow = () => matchMedia("(max-width: 640px)").matches;
const section = (title, note, ...children) =>
  h("section", { class: "block" }, h("div", { class: "block-head" }, h("h2", {}, title), note ? h("p", { class: "soft" }, note) : null), ...children);
