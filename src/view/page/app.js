// The page itself: views, keys, addresses.

const VIEWS = [
  ["now", "Now", current, () => null], ["timeline", "Timeline", timeline, () => data.units.length], ["memories", "Memories", memories, () => data.memories.length],
  ["received", "What agents received", received, () => data.injections.length], ["files", "Files", fileTable, () => index.files.size],
  ["failures", "Failures", failures, () => data.failures.length], ["cost", "Cost", cost, () => null],
];
// Empty views have no tab.
const isEmpty = ([name, , , size]) => size() === 0 || name === "cost" && !data.calls.length && !data.injections.length && !data.sessions.some(session => session.tokens);
const views = () => VIEWS.filter(view => !isEmpty(view));

const state = { view: "now", query: "", filter: {}, open: null, shown: 0, sort: "" };

function drawTabs() {
  $("tabs").replaceChildren(...views().map(([name, title, , size], n) => h("button", {
    type: "button", id: `tab-${name}`, "aria-current": !state.query && state.view === name ? "page" : null, title: `${title} (${n + 1})`,
    onclick: () => go(name),
  }, title, size() !== null && h("span", { class: "n" }, ` ${size()}`))));
}

const nodes = children => [children].flat(Infinity).filter(Boolean);
const list = () => nodes(state.query ? results() : VIEWS.find(([name]) => name === state.view)[2]());

// Draws after an action of the reader.
function draw() {
  const focus = document.activeElement?.id;
  drawTabs();
  put($("list"), list());
  if (focus && focus !== "search" && $(focus)) $(focus).focus();
  drawDetail();
}

let pressed = false;
addEventListener("pointerdown", () => { pressed = true; }, true);
addEventListener("pointerup", () => { setTimeout(() => { pressed = false; }); }, true);
let postponed = null;

// Draws after an update: only what has changed, and without moving the reader's scroll position.
function redraw() {
  const inFilter = $("list").contains(document.activeElement) && /^(INPUT|SELECT)$/.test(document.activeElement.tagName);
  if (pressed || inFilter) {
    postponed ??= setTimeout(() => { postponed = null; redraw(); }, 300);
    return;
  }
  drawTabs();
  replace($("list"), list());
  if (state.open) replace($("detail"), nodes(details(state.open)));
}

// The HTML last drawn into each box, before the reader opened or scrolled anything.
const drawn = new Map();

function put(box, children) {
  box.replaceChildren(...children);
  drawn.set(box, box.innerHTML);
}

// Puts new children into a box if they differ from the old ones; open elements stay open.
function replace(box, children) {
  const fresh = h("div", null, children), html = fresh.innerHTML;
  if (html === drawn.get(box)) return;
  drawn.set(box, html);
  const opened = [...box.querySelectorAll("details[open]")].map(one => one.querySelector("summary").textContent);
  for (const one of fresh.querySelectorAll("details")) one.open = opened.includes(one.querySelector("summary").textContent);
  const focus = document.activeElement?.dataset?.id, from = [box.scrollTop, scrollY];
  box.replaceChildren(...fresh.childNodes);
  box.scrollTop = from[0];
  scrollTo(0, from[1]);
  if (focus) [...box.querySelectorAll("[data-id]")].find(row => row.dataset.id === focus)?.focus({ preventScroll: true });
}

function drawDetail() {
  const box = $("detail");
  box.hidden = !state.open;
  put(box, state.open ? nodes(details(state.open)) : []);
  for (const row of document.querySelectorAll("#list [data-id]")) {
    if (row.dataset.id === state.open) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  }
}

function go(view) {
  Object.assign(state, { view, query: "", shown: 0 });
  $("search").value = "";
  if (state.open) open_(null);
  draw();
  scrollTo(0, 0);
}

// Shows the memories that pass a filter.
function filtered(filter) {
  state.filter = filter;
  go("memories");
}

// Opens the details of an id and updates the address, so that Back and links work.
function open_(id) {
  const to = id ? `#${encodeURIComponent(id)}` : " ";
  if (id && location.hash === to) return show(id);
  if (id) location.hash = to;
  else { history.pushState(null, "", location.pathname + location.search); show(null); }
}

function show(id) {
  // A view has an address, too.
  if (VIEWS.some(([name]) => name === id)) {
    history.replaceState(null, "", location.pathname + location.search);
    return go(id);
  }
  state.open = id;
  drawDetail();
  $("detail").scrollTo(0, 0);
}

function addressed() {
  try {
    return decodeURIComponent(location.hash.slice(1)) || null;
  } catch {
    return null;
  }
}

addEventListener("hashchange", () => show(addressed()));
addEventListener("popstate", () => show(addressed()));

$("search").addEventListener("focus", () => $("search").select());
let typing = null;
$("search").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => { state.query = $("search").value.trim(); state.shown = 0; draw(); scrollTo(0, 0); }, 120);
});

function step(by) {
  const rows = [...$("list").querySelectorAll(".row, td a[data-id]")];
  const at = rows.findIndex(row => row === document.activeElement || row.dataset.id === state.open);
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  if (next && state.open) open_(next.dataset.id);
}

const KEYS = [["/", "search"], ["1 to 7", "views"], ["j, k", "next and previous"], ["Enter", "open"], ["Escape", "close, or leave the search"], ["?", "this list"]];
const WORDS = [
  ["work unit", "a piece of a session with one goal"], ["phases", "what the tool calls of a unit did, wide as they lasted"],
  ["you, the agent, a tool", "whose words a memory consists of"], ["recorded by", "rules, a model, or a person"],
  ["superseded", "another memory holds instead"], ["received, used", "an agent got it from nmem; words of it that no prompt has turn up in what the agent then did or said"],
  ["trap", "a lesson, gotcha, trade-off, or a problem with its solution"], ["discovery cost", "tokens that the work took which found it out"],
];
const help = () => dialog([h("h2", null, "Keyboard"), h("dl", null, KEYS.map(([key, does]) => fact(key, does))), h("h2", null, "Words"), h("dl", null, WORDS.map(([word, means]) => fact(word, means))), h("div", { class: "actions" }, h("button", { type: "button", onclick: () => $("dialog").close() }, "Close"))]);
$("help").addEventListener("click", help);
$("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});

addEventListener("keydown", event => {
  const field = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === "Escape" && !$("dialog").open) {
    if (event.target === $("search") && state.query) { $("search").value = ""; state.query = ""; draw(); } else if (state.open) open_(null);
    if (field) event.target.blur();
  }
  if (field || event.ctrlKey || event.metaKey || event.altKey || $("dialog").open) return;
  const view = views()[Number(event.key) - 1];
  if (event.key === "/") { event.preventDefault(); $("search").focus(); $("search").select(); }
  else if (view) go(view[0]);
  else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "?") help();
});

async function begin() {
  try {
    // The launch token is used up, so it is removed from the address.
    if (live && location.search) history.replaceState(null, "", location.pathname + location.hash);
    if (live) await load();
    else use(await embedded());
  } catch (error) {
    $("list").replaceChildren(h("p", { class: "empty" }, words(error.message)));
    return;
  }
  document.title = `nmem: ${data.project}`;
  $("project").textContent = data.project;
  const left = ["memories", "units", "sessions"].filter(kind => (data.totals[kind] || [0, 0])[0] < data.totals[kind][1]);
  if (live) listenWhileSeen();
  else status("", `as of ${moment(data.made_at)}${left.length ? `; the newest ${left.map(kind => `${data.totals[kind][0]} of ${data.totals[kind][1]} ${kind}`).join(", ")}` : ""}`);
  const first = addressed();
  if (VIEWS.some(([name]) => name === first)) state.view = first;
  else state.open = first;
  draw();
}

begin();
