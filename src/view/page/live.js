// The live page: updates from the server, and changes by hand. Nothing here has an effect if the page is a file.

const live = !$("data").textContent.trim();

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, options);
  const read = await answer.json().catch(() => ({}));
  if (answer.status === 401) throw new Error("nmem serve was restarted: open the address that it printed");
  if (!answer.ok) throw new Error(read.error?.message || `the server answered ${answer.status}`);
  return read;
}

function status(kind, text) {
  $("status").className = kind;
  $("status").textContent = text;
}

let reload = null, loadedAt = 0, loading = 0;

// Reads everything.
async function load() {
  const begun = performance.now();
  use(await ask("/api/view"));
  loadedAt = performance.now();
  loading = loadedAt - begun;
}

// Reads everything again soon, but not so often that loading takes a large part of the time.
function refresh() {
  const pause = Math.max(300, loading * 5) - (performance.now() - loadedAt);
  reload ??= setTimeout(() => {
    reload = null;
    news(load);
  }, Math.max(0, pause));
}

// Reads an update and draws it. An error is shown, and the next event reads again.
async function news(read) {
  try {
    await read();
    redraw();
  } catch (error) {
    status("lost", error.message);
  }
}

function listen() {
  const events = new EventSource("/api/events");
  events.onopen = () => status("live", "live");
  events.onerror = () => status("lost", events.readyState === 2 ? "closed: reload the page" : "nmem serve has stopped, or cannot be reached");
  events.addEventListener("sessions", event => {
    const { sessions, text } = JSON.parse(event.data);
    status("live", `live · ${clock(Date.now())} ${text || ""}`);
    news(async () => merge(await ask(`/api/view?sessions=${sessions.join(",")}`)));
  });
  events.addEventListener("changed", refresh);
  return events;
}

// Listens only while the page is visible: a browser has six connections to a server, and each listening page holds one.
function listenWhileSeen() {
  let events = listen();
  document.addEventListener("visibilitychange", () => {
    events.close();
    if (!document.hidden) events = listen();
  });
}

// The actions for a memory; none if the page is a file.
function actions(memory) {
  if (!live) return null;
  const act = (name, does, style) => h("button", { type: "button", class: style, "data-action": name, onclick: does }, name);
  return h("div", { class: "actions" },
    !memory.superseded_by && act(memory.pinned ? "Unpin" : "Pin", () => change(memory, "pin", { pinned: !memory.pinned })),
    act("Edit", () => edit(memory)), !memory.superseded_by && act("Supersede", () => supersede(memory)), act("Forget", () => forget(memory.id), "danger"));
}

const forgetButton = id => (live ? h("div", { class: "actions" }, h("button", { type: "button", class: "danger", "data-action": "Forget", onclick: () => forget(id) }, `Forget ${id}`)) : null);

async function change(memory, action, body) {
  const fresh = await attempt(() => ask(`/api/memory/${memory.id}/${action}`, body));
  if (!fresh) return false;
  data.memories = data.memories.filter(row => row.id !== memory.id).concat(fresh);
  reindex();
  draw();
  return true;
}

async function attempt(does) {
  try {
    return await does();
  } catch (error) {
    dialog([h("h2", null, "That did not work"), h("p", null, words(error.message)), h("div", { class: "actions" }, h("button", { type: "button", onclick: () => $("dialog").close() }, "Close"))]);
    return null;
  }
}

function dialog(children) {
  $("dialog").replaceChildren(...children.flat(Infinity).filter(Boolean));
  if (!$("dialog").open) $("dialog").showModal();
}

function form(heading, fields, done) {
  const cancel = h("button", { type: "button", onclick: () => $("dialog").close() }, "Cancel");
  dialog([h("form", { onsubmit: async event => { event.preventDefault(); if (await done()) $("dialog").close(); } },
    h("h2", null, heading), fields, h("div", { class: "actions" }, h("button", { type: "submit", id: "save" }, "Save"), cancel))]);
}

function edit(memory) {
  const input = (id, value) => h("input", { id, value: value || "" });
  const title = input("edit-title", memory.title), subtitle = input("edit-subtitle", memory.subtitle);
  const narrative = h("textarea", { id: "edit-narrative" }, memory.narrative || ""), facts = h("textarea", { id: "edit-facts" }, (memory.facts || []).join("\n"));
  const fields = [["Title", title], ["Subtitle", subtitle], ["Text", narrative], ["Facts, one a line", facts]].map(([name, field]) => h("label", null, name, field));
  form(`Edit ${memory.id}`, fields, () => {
    const changes = {};
    const text = (name, field, old) => { if (field.value.trim() !== (old || "")) changes[name] = field.value.trim() || null; };
    text("title", title, memory.title);
    text("subtitle", subtitle, memory.subtitle);
    text("narrative", narrative, memory.narrative);
    const lines = facts.value.split("\n").map(one => one.trim()).filter(Boolean);
    if (lines.join("\n") !== (memory.facts || []).join("\n")) changes.facts = lines;
    return Object.keys(changes).length ? change(memory, "edit", changes) : true;
  });
}

function supersede(memory) {
  const by = h("input", { id: "supersede-by", placeholder: "m31", autocomplete: "off" });
  form(`What holds instead of ${memory.id}?`, [h("p", null, words(memory.title)), h("label", null, "The id of the memory that replaces it", by)], () => change(memory, "supersede", { by: by.value.trim() }));
}

async function forget(id) {
  const plan = await attempt(() => ask("/api/forget", { id, dry_run: true }));
  if (!plan) return;
  const yes = h("button", { type: "button", class: "danger", id: "forget-yes", onclick: async () => {
    yes.disabled = true;
    if (!(await attempt(() => ask("/api/forget", { id })))) return;
    $("dialog").close();
    open_(null);
    await attempt(load);
    draw();
  } }, "Delete for good");
  dialog([h("h2", null, `Forget ${id}?`), h("pre", null, words(plan.summary)), h("div", { class: "actions" }, yes, h("button", { type: "button", onclick: () => $("dialog").close() }, "Keep it"))]);
}

// An item that is not on this page: fetched from the server, or printed by a command.
function missing(id) {
  const box = h("div", null, h("p", { class: "empty" }, `${id} is not on this page; `, h("code", null, `nmem show ${id}`), " prints it."));
  return live && /^[pt]\d+$/.test(id) ? fetched(id, box) : box;
}

// A complete prompt or tool use: from the server, or as far as a page in a file contains it.
function wholeSource(id) {
  const known = data.sources[id], box = h("div", null, source(known));
  return live && !known.is_whole ? fetched(id, box) : box;
}

function fetched(id, box) {
  ask(`/api/item/${id}`).then(row => {
    data.sources[id] = { ...row, is_whole: true };
    box.replaceChildren(...nodes(source(row)));
  }, () => {});
  return box;
}

let answer = null;

// The server's answer to a query, in the order of `nmem search`: `{match, found}`; null until it is there.
function answered(query) {
  if (answer?.query === query) return answer.found ? answer : null;
  const own = answer = { query };
  const project = data.project === "all projects" ? { project: "*" } : {};
  const search = type => ask(`/api/search?${new URLSearchParams({ query, type, limit: "100", ...project })}`);
  Promise.all([search("all"), search("tools")]).then(([said, tools]) => {
    own.match = said.results.length ? said.match : tools.match;
    own.found = said.results.concat(tools.results).map(known);
    if (answer === own) redraw();
  }, error => status("lost", error.message));
  return null;
}

// A hit as a row of this page, if it has one.
function known(hit) {
  if (index.memories.has(hit.id)) return { kind: "memory", row: index.memories.get(hit.id) };
  if (index.units.has(hit.id)) return { kind: "unit", row: index.units.get(hit.id) };
  const row = data.sources[hit.id];
  return row ? { kind: row.kind === "prompt" ? "prompt" : "tool", row } : { kind: "other", row: hit };
}
