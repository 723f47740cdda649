// Builds elements, and formats numbers and times. Text goes into the page as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(el, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) el.addEventListener(name.slice(2), value);
    else el.setAttribute(name, value === true ? "" : value);
  }
  const shown = child => child !== null && child !== undefined && child !== false && child !== "";
  el.append(...children.flat(Infinity).filter(shown));
  return el;
}

const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const $ = id => document.getElementById(id);

// Somebody else's words, which may run right to left.
const words = text => h("bdi", null, text);

const two = n => String(n).padStart(2, "0");

function day(at) {
  const date = new Date(at);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

function weekday(at) {
  return new Date(at).toLocaleDateString("en", { weekday: "long" });
}

function clock(at) {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
}

// The time of today, or an earlier day.
const recent = at => (day(at) === day(Date.now()) ? clock(at) : day(at));
const moment = at => (at ? `${day(at)} ${clock(at)}` : "");

// As `render::time::span`.
function span(ms) {
  const minutes = Math.floor((ms || 0) / 60000);
  if (minutes < 1) return `${Math.floor((ms || 0) / 1000)} s`;
  if (minutes < 60) return `${minutes} min`;
  if (minutes >= 48 * 60) return `${Math.floor(minutes / 1440)} days`;
  return minutes % 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes / 60} h`;
}

function short(n) {
  if (n === undefined || n === null) return "";
  if (n >= 1e6) return `${(n / 1e6).toFixed(1)}M`;
  return n >= 1000 ? `${(n / 1000).toFixed(1)}k` : String(n);
}

const count = (n, one, many) => `${n} ${n === 1 ? one : many || one + "s"}`;

// The last part of a path, with either kind of slash.
const base = path => path.split(/[/\\]/).pop();

// A path that may be broken after its slashes.
const pathWords = path => h("bdi", null, path.split(/(?<=[/\\])/).flatMap(part => [part, h("wbr")]));

// The first line of a text, at most `most` characters long.
function line(text, most = 200) {
  const first = (text || "").trim().split("\n", 1)[0];
  return first.length > most ? first.slice(0, most - 1) + "…" : first;
}

// Somebody else's words, with `code` in a typeface of its own.
function rich(text) {
  const parts = String(text || "").split("`");
  // A single mark is one of the text.
  if (parts.length < 3 || parts.length % 2 === 0) return words(text || "");
  return h("bdi", null, parts.map((part, at) => (at % 2 && part ? h("code", null, part) : part)));
}

// The text with the searched words marked.
function marked(text, terms) {
  if (!terms || !terms.length || !text) return rich(text);
  const lower = text.toLowerCase(), parts = [];
  let at = 0;
  // Lower case may have another length; then nothing is marked.
  while (lower.length === text.length && at < text.length) {
    const next = terms.map(term => [lower.indexOf(term, at), term.length]).filter(hit => hit[0] >= 0).sort((a, b) => a[0] - b[0])[0];
    if (!next) break;
    parts.push(text.slice(at, next[0]), h("mark", null, text.slice(next[0], next[0] + next[1])));
    at = next[0] + next[1];
  }
  return h("bdi", null, parts, text.slice(at));
}
