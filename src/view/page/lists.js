// The views: each returns the elements of its list.

const PAGE = 150;

// A list that grows as it is scrolled or asked for more.
function growing(rows, draw, none) {
  const box = h("div");
  if (!rows.length) return h("p", { class: "empty" }, none);
  let shown = 0;
  const more = h("button", { type: "button", class: "more", onclick: () => grow() });
  const watch = new IntersectionObserver(seen => seen[0].isIntersecting && grow(), { rootMargin: "600px" });
  const grow = () => {
    const next = rows.slice(shown, shown + PAGE);
    shown += next.length;
    state.shown = Math.max(state.shown, shown);
    box.append(...next.flatMap((row, at) => draw(row, rows[shown - next.length + at - 1])));
    more.textContent = `${shown} of ${rows.length}; show more`;
    if (shown >= rows.length) { more.remove(); watch.disconnect(); }
  };
  // After an update, shows as many rows as before.
  do grow(); while (shown < Math.min(state.shown, rows.length));
  if (shown < rows.length) watch.observe(more);
  return [box, shown < rows.length && more];
}

// A row that opens the details of `id`.
function entry(id, top, under, extra) {
  return h("button", { type: "button", class: "row", "data-id": id, onclick: () => open_(id), "aria-current": state.open === id ? "true" : null },
    h("span", { class: "top" }, top), under && h("span", { class: "under" }, under), extra);
}

const outcomes = { __proto__: null, done: "good", answered: "faint", failing: "bad", struggling: "bad", abandoned: "warn" };
// The rules write this of an agent's claim that the last check contradicts.
const isContradicted = unit => JSON.stringify(unit.summary?.notes || "").includes("reported passing checks, but");

function unitRow(unit, terms) {
  const hot = (unit.files || []).filter(file => file.edits).slice(0, 2).map(file => shortest(file.path)).join(", ");
  const facts = [unit.failures ? count(unit.failures, "failure") : "", span(unit.active_ms)].filter(Boolean).join(" · ");
  const known = unit.outcome && unit.outcome !== "unknown" ? unit.outcome : unit.state === "open" ? "open" : "";
  const outcome = isContradicted(unit) ? "claim contradicted" : known;
  const colour = isContradicted(unit) ? "bad" : outcomes[unit.outcome] || "faint";
  return entry(unit.id, [
    h("span", { class: "clock" }, terms ? recent(unit.started_at) : clock(unit.started_at)),
    h("span", { class: "title" }, marked(line(unit.title || unit.intent || "(nothing was said)"), terms)),
    h("span", { class: "facts" }, h("bdi", null, hot), hot && " · ", facts),
    outcome && h("span", { class: `small ${colour}` }, outcome),
  ]);
}

// The first view: what holds now, and what the next session gets.
function current() {
  const state = data.now || {}, checks = state.checks?.checks || [], newest = data.units[0]?.started_at || 0;
  const open = data.memories.filter(memory => memory.kind === "open" && !memory.superseded_by && !memory.ended);
  // What a plan settles is for its task, often in an agent's words.
  const decisions = data.memories.filter(memory => memory.kind === "decision" && memory.provenance === "user" && memory.stated_in !== "plan" && !memory.superseded_by);
  const claims = data.units.filter(unit => isContradicted(unit) && newest - unit.started_at < 14 * 86400000);
  const part = (title, rows, none) => (rows.length ? [h("h2", null, title), rows] : none ? [h("h2", null, title), h("p", { class: "empty" }, none)] : null);
  const limited = (rows, most, view) => rows.slice(0, most).concat(rows.length > most ? [h("button", { type: "button", class: "more", onclick: view }, `all ${rows.length}`)] : []);
  const all = kind => () => filtered({ kind, state: "current" });
  const checkRow = check => entry(check.id, [
    h("span", { class: `small ${check.state === "passed" ? "good" : check.state === "failed" ? "bad" : "warn"}` }, check.state),
    h("span", { class: "title" }, h("code", null, words(check.name))), h("span", { class: "clock" }, recent(check.at))]);
  // What ran before the last change says little, so one line names it.
  const [older, current_] = [checks.filter(check => check.state === "stale"), checks.filter(check => check.state !== "stale")];
  const stale = older.length ? [h("p", { class: "faint small" }, "before the last change: ", older.map((check, at) => [at ? ", " : "", h("code", null, words(check.name))]))] : [];
  const tree = state.checks && [state.checks.branch && `branch ${state.checks.branch}`, state.checks.changed?.length ? `${count(state.checks.changed.length, "file")} not committed` : "nothing uncommitted"].filter(Boolean).join(", ");
  return [
    tree && h("p", { class: "faint small" }, words(tree)),
    part("Claims that a check contradicts", claims.slice(0, 5).map(unit => unitRow(unit, []))),
    part("Checks", current_.map(checkRow).concat(stale), state.checks ? "No test, build or linter ran twice here, or since the last change." : ""),
    part("Last work", data.units.slice(0, 5).map(unit => unitRow(unit, []))),
    part("Open ends", limited(open.map(memory => memoryRow(memory)), 6, all("open"))),
    part("Your latest decisions", limited(decisions.map(memory => memoryRow(memory)), 6, all("decision"))),
    state.next ? [h("h2", null, "What the next session gets"), h("pre", null, words(state.next))] : null,
    data.units.length || data.memories.length ? null : h("p", { class: "empty" }, "No work is recorded yet. It appears here as soon as an agent works in this project."),
  ];
}

function sessionLine(session) {
  const branch = session.branch && (session.branch.end || session.branch.start);
  const text = [`${clock(session.started_at)} ${agent(session.platform)}`, index.hasProjects && session.project, branch && `branch ${branch}`, count(session.counts?.tool_uses || 0, "tool use"),
    !session.ended_at && "not ended"].filter(Boolean).join(" · ");
  return h("button", { type: "button", class: "session", "data-id": session.id, onclick: () => open_(session.id) }, h("bdi", null, text), ` · ${session.id}`);
}

function timeline() {
  const rows = data.units.slice().sort((a, b) => {
    const one = index.sessions.get(a.session)?.started_at || a.started_at, other = index.sessions.get(b.session)?.started_at || b.started_at;
    return other - one || b.started_at - a.started_at;
  });
  const begun = unit => index.sessions.get(unit.session)?.started_at || unit.started_at;
  const draw = (unit, before) => {
    const out = [];
    if (!before || day(begun(before)) !== day(begun(unit))) {
      out.push(h("h2", { id: `day-${day(begun(unit))}` }, day(begun(unit)), " ", h("span", { class: "faint small" }, weekday(begun(unit)))));
    }
    const session = index.sessions.get(unit.session);
    if (session && (!before || before.session !== unit.session)) out.push(sessionLine(session));
    return out.concat(unitRow(unit));
  };
  const go = on => {
    while (!$(`day-${on}`)) {
      const more = document.querySelector("#list .more");
      if (!more) return;
      more.click();
    }
    $(`day-${on}`).scrollIntoView({ block: "start" });
    scrollBy(0, -90);
  };
  return [days(data.units, go), growing(rows, draw, "No work is recorded yet. It appears here as soon as an agent works in this project.")];
}

function memoryRow(memory, terms) {
  const by = index.memories.get(memory.superseded_by);
  const title = marked(line(memory.title), terms);
  const received = index.received.get(memory.id);
  const facts = [
    memory.made_by === "hand" || memory.by_hand ? "by hand" : saidBy(memory), agent(memory.platform), index.hasProjects && memory.project,
    received && `received ${count(received.times, "time")}, used ${received.used}`, filesOf(memory).slice(0, 2).map(shortest).join(", "),
  ].filter(Boolean).join(" · ");
  return entry(memory.id, [
    h("span", { class: `badge ${memory.kind}` }, memory.ended ? "ended" : memory.kind === "observation" || memory.kind === "entity" ? memory.type || memory.kind : memory.kind),
    h("span", { class: "title" }, memory.pinned && h("span", { class: "badge", title: "every session start has it" }, "pinned"), memory.pinned && " ", memory.superseded_by ? h("del", null, title) : title),
    h("span", { class: "clock" }, day(memory.created_at)),
  ], [facts,
    memory.superseded_by && h("span", null, " · now: ", words(by ? line(by.title) : memory.superseded_by)),
    memory.contradicted_by && h("span", { class: "warn" }, ` · contradicted by ${memory.contradicted_by}`)]);
}

const FILTERS = [
  ["kind", "kind", memory => [memory.kind]], ["type", "type", memory => [memory.type]], ["concept", "concept", memory => memory.concepts || []],
  ["project", "project", memory => [memory.project]], ["branch", "branch", memory => [branchOf(memory)]], ["agent", "agent", memory => [memory.platform]],
  ["said", "who said it", memory => [memory.provenance]], ["by", "made by", memory => [memory.made_by]],
];

// The memories that pass all filters but one.
function chosen(but) {
  const { filter } = state;
  return data.memories.filter(memory => FILTERS.every(([name, , values]) => !filter[name] || name === but || values(memory).includes(filter[name]))
    && (!filter.file || filesOf(memory).some(path => path.toLowerCase().includes(filter.file.toLowerCase())))
    && (!filter.pinned || memory.pinned) && (!filter.state || (filter.state === "superseded") === Boolean(memory.superseded_by)));
}

function memories() {
  const { filter } = state;
  const change = (name, value) => { filter[name] = value; state.shown = 0; draw(); };
  const select = ([name, label, values]) => {
    const counts = new Map();
    for (const memory of chosen(name)) for (const value of values(memory)) if (value) counts.set(value, (counts.get(value) || 0) + 1);
    if (counts.size < 2 && !filter[name]) return null;
    const named = value => (name === "said" ? SAID[value] : name === "agent" ? agent(value) : value);
    const options = [...counts].sort((a, b) => b[1] - a[1]).map(([value, n]) => h("option", { value, selected: filter[name] === value }, `${named(value)} (${n})`));
    return h("select", { id: `filter-${name}`, "aria-label": label, onchange: event => change(name, event.target.value) }, h("option", { value: "" }, name === "said" ? "said by anyone" : name === "by" ? "made by anyone" : `any ${label}`), options);
  };
  const box = (name, label, value) => h("label", null, h("input", { type: "checkbox", id: `filter-${name}`, checked: filter[name] === value, onchange: event => change(name, event.target.checked ? value : "") }), label);
  const states = [["", "current and superseded"], ["current", "current only"], ["superseded", "superseded only"]];
  const validity = h("select", { id: "filter-state", "aria-label": "state", onchange: event => change("state", event.target.value) }, states.map(([value, name]) => h("option", { value, selected: (filter.state || "") === value }, name)));
  const file = h("input", { id: "filter-file", type: "search", placeholder: "file", "aria-label": "file", value: filter.file || "", onchange: event => change("file", event.target.value.trim()) });
  const rows = chosen();
  const none = data.memories.length ? "No memory passes these filters." : "Nothing is remembered yet. Memories appear when a work unit ends.";
  return [
    h("div", { class: "filters" }, FILTERS.map(select), file, validity, box("pinned", "pinned", true),
      Object.values(filter).some(Boolean) && h("button", { type: "button", onclick: () => { state.filter = {}; draw(); } }, "Clear")),
    h("p", { class: "faint small", id: "count" }, `${rows.length} of ${count(data.memories.length, "memory", "memories")}`),
    growing(rows, memory => [memoryRow(memory)], none),
  ];
}

function injectionRow(injection, terms) {
  const session = index.sessions.get(injection.session), items = injection.items || [];
  const used = items.filter(item => item.used).length;
  const first = items.map(item => index.memories.get(item.id)?.title || index.units.get(item.id)?.title).find(Boolean);
  return entry(injection.id, [
    h("span", { class: "clock" }, terms ? moment(injection.at) : clock(injection.at)),
    h("span", { class: "title" }, POINTS[injection.point] || injection.point, first && [": ", marked(line(first, 90), terms)]),
    h("span", { class: used ? "good small" : "faint small" }, `used ${used} of ${items.length}`),
  ], `${session ? agent(session.platform) : ""} · ${session ? session.id : ""} · about ${short(Math.round(injection.bytes / 4))} tokens`);
}

function received() {
  const drawn = (injection, before) => [
    (!before || day(before.at) !== day(injection.at)) && h("h2", null, day(injection.at), " ", h("span", { class: "faint small" }, weekday(injection.at))),
    injectionRow(injection),
  ].filter(Boolean);
  return [
    h("p", { class: "faint small" }, "What nmem gave to agents, and when. An item counts as used if words of it that no prompt has turn up in what the agent then did or said."),
    growing(data.injections, drawn, "Agents have received nothing yet."),
  ];
}

function fileTable() {
  const carried = file => file.decisions.length + file.traps.length;
  const values = { Edits: file => file.edits, Reads: file => file.reads, Decisions: file => file.decisions.length, Traps: file => file.traps.length, Failures: file => file.failures };
  const by = values[state.sort] || carried;
  const rows = [...index.files.values()].sort((a, b) => by(b) - by(a) || b.edits - a.edits);
  const most = Math.max(...rows.map(file => file.edits), 1);
  const draw = file => [h("tr", null,
    h("td", { class: "path" }, h("a", { href: `#f:${encodeURIComponent(file.path)}`, "data-id": `f:${file.path}` }, pathWords(file.path))),
    h("td", { class: "bar" }, bar([["", file.edits]], most, count(file.edits, "edit"))),
    h("td", { class: "n" }, file.edits || ""), h("td", { class: "n reads" }, file.reads || ""), h("td", { class: "n" }, file.decisions.length || ""),
    h("td", { class: "n warn" }, file.traps.length || ""), h("td", { class: "n bad" }, file.failures || ""))];
  if (!rows.length) return [h("p", { class: "empty" }, "No file was read or changed yet.")];
  const [box, more] = growing(rows, draw, "");
  const body = h("tbody", null);
  body.append(...box.childNodes);
  // The rows that follow go into the table too.
  new MutationObserver(() => body.append(...box.childNodes)).observe(box, { childList: true });
  const head = [["File"], ["", "bar"], ["Edits", "n"], ["Reads", "n reads"], ["Decisions", "n"], ["Traps", "n"], ["Failures", "n"]];
  return [h("p", { class: "faint small" }, "Files that carry most decisions and traps first; a click on a heading sorts by it. Traps are lessons, gotchas, trade-offs, and problems with their solutions. Failures are those of the work units that changed the file."),
    h("table", null, h("thead", null, h("tr", null, head.map(([name, style]) => h("th", { class: style, "aria-sort": state.sort === name ? "descending" : null },
      values[name] ? h("button", { type: "button", class: "sort", title: `Sort by ${name.toLowerCase()}`, onclick: () => { state.sort = state.sort === name ? "" : name; draw(); } }, name, state.sort === name && " ↓") : name)))), body), more];
}

function failures() {
  const failed = data.failures.map(id => data.sources[id]).filter(Boolean);
  return [
    h("h2", null, "Failed commands"), growing(failed, tool => [failureRow(tool)], "No command failed."),
  ];
}

function failureRow(tool) {
  return entry(tool.id, [h("span", { class: "title" }, h("code", null, words(line(tool.content || tool.tool_name, 140)))), h("span", { class: "clock" }, moment(tool.created_at))], words(line(reason(tool), 220)));
}

// The line of a failure that names an error, or else its last line.
function reason(tool) {
  const text = tool.outcome || tool.metadata?.response || "";
  const lines = text.trim().split("\n").map(one => one.trim()).filter(Boolean);
  return lines.find(one => /error|fail|panic|not found|cannot|denied/i.test(one)) || lines[lines.length - 1] || "";
}

function cost() {
  const sum = (rows, value) => rows.reduce((total, row) => total + (value(row) || 0), 0);
  const used = data.sessions.filter(session => session.tokens);
  const weeks = new Map();
  const week = at => { const date = new Date(at); date.setDate(date.getDate() - ((date.getDay() + 6) % 7)); return day(date); };
  const add = (at, name, n) => { const known = weeks.get(week(at)) || { work: 0, injected: 0, model: 0, reported: 0 }; known[name] += n || 0; weeks.set(week(at), known); };
  for (const session of used) add(session.started_at, "reported", 1);
  for (const session of used) add(session.started_at, "work", (session.tokens.input || 0) + (session.tokens.output || 0) + (session.tokens.cache_write || 0));
  for (const injection of data.injections) add(injection.at, "injected", Math.round(injection.bytes / 4));
  for (const call of data.calls) add(call.at, "model", call.input + call.output);
  const most = Math.max(...[...weeks.values()].map(one => one.work + one.injected + one.model), 1);
  const rows = [...weeks].sort().reverse().map(([from, one]) => h("tr", null, h("td", null, `week of ${from}`),
    h("td", { class: "bar" }, bar([["", one.work], ["soft", one.injected], ["bad", one.model]], most, `${short(one.work)} of work, ${short(one.injected)} injected, ${short(one.model)} for models`)),
    h("td", { class: "n" }, one.reported ? short(one.work) : "not reported"), h("td", { class: "n" }, short(one.injected)), h("td", { class: "n" }, short(one.model))));
  const points = Object.keys(POINTS).map(point => [point, data.injections.filter(injection => injection.point === point)]).filter(([, all]) => all.length);
  const items = all => all.flatMap(injection => injection.items || []);
  const calls = [...new Set(data.calls.map(call => `${call.provider} ${call.model}`))].map(name => [name, data.calls.filter(call => `${call.provider} ${call.model}` === name)]);
  const dollars = sum(data.sessions, session => session.cost_usd);
  const head = names => h("thead", null, h("tr", null, names.map((name, at) => h("th", { class: at ? "n" : null }, name))));
  return [
    h("dl", null,
      h("dt", null, "work"), h("dd", null, used.length ? `${short(sum(used, session => session.tokens.input))} input, ${short(sum(used, session => session.tokens.output))} output, ${short(sum(used, session => session.tokens.cache_read))} read from caches, ${short(sum(used, session => session.tokens.cache_write))} written to caches (tokens of ${used.length} of ${count(data.sessions.length, "session")})` : "the agents reported no tokens"),
      dollars ? [h("dt", null, "reported cost"), h("dd", null, `$${dollars.toFixed(2)}`)] : null,
      h("dt", null, "injected"), h("dd", null, `about ${short(Math.round(sum(data.injections, injection => injection.bytes) / 4))} tokens in ${count(data.injections.length, "text")}`),
      h("dt", null, "models"), h("dd", null, data.calls.length ? `${short(sum(data.calls, call => call.input + call.output))} tokens in ${count(data.calls.length, "call")}` : "none: no model is configured, or none was called")),
    rows.length ? [h("h2", null, "By week, in tokens"), h("table", null, h("thead", null, h("tr", null, [["", null], ["", "bar"], ["Work", "n"], ["Injected", "n"], ["Models", "n"]].map(([name, style]) => h("th", { class: style }, name)))), h("tbody", null, rows)),
      h("p", { class: "faint small" }, "Work counts input, output and what was written to caches; what was read from caches is left out. Injected tokens are estimated: four bytes each.")] : null,
    points.length ? [h("h2", null, "What agents received"), h("table", null, head(["When", "Texts", "Tokens", "Items", "Used"]), h("tbody", null, points.map(([point, all]) => h("tr", null,
      h("td", null, POINTS[point]), h("td", { class: "n" }, all.length), h("td", { class: "n" }, short(Math.round(sum(all, injection => injection.bytes) / 4))),
      h("td", { class: "n" }, items(all).length), h("td", { class: "n" }, `${items(all).filter(item => item.used).length}`)))))] : null,
    calls.length ? [h("h2", null, "Models"), h("table", null, head(["Model", "Calls", "Failed", "Input", "Output"]), h("tbody", null, calls.map(([name, all]) => h("tr", null,
      h("td", null, words(name)), h("td", { class: "n" }, all.length), h("td", { class: "n" }, all.filter(call => call.outcome !== "ok").length),
      h("td", { class: "n" }, short(sum(all, call => call.input))), h("td", { class: "n" }, short(sum(all, call => call.output)))))))] : null,
  ];
}

// The server's results; until they are there, and in a page that is a file, those of this page.
function results() {
  const terms = searched(state.query), answer = live ? answered(state.query) : null;
  const { found, isWhole } = answer || find(state.query);
  const draw = ({ kind, row }) => {
    if (kind === "memory") return [memoryRow(row, terms)];
    if (kind === "unit") return [unitRow(row, terms)];
    if (kind === "injection") return [injectionRow(row, terms)];
    if (kind === "other") return [entry(row.id, [h("span", { class: "badge" }, row.type || row.kind), h("span", { class: "title" }, marked(line(row.title || row.snippet), terms)), h("span", { class: "clock" }, day(row.created_at))])];
    const who = kind === "tool" ? (row.succeeded === false ? "failed command or tool" : "tool call") : row.source === "user" ? "you" : "the agent";
    return [entry(row.id, [h("span", { class: "badge" }, who), h("span", { class: "title" }, marked(around(row.text || row.content || row.path || row.tool_name, terms), terms)), h("span", { class: "clock" }, day(row.created_at))],
      kind === "tool" && row.outcome ? marked(around(row.outcome, terms), terms) : null)];
  };
  const results = `${count(found.length, "result")} for “${state.query}”`;
  const some = `Nothing has all of “${state.query}”; ${count(found.length, "result has", "results have")} some of the words`;
  const head = answer ? (answer.match === "weak" ? `No good match; the closest: ${results}` : results) : isWhole || !found.length ? results : some;
  const [shown, all] = data.totals.memories || [0, 0];
  const rest = !live && shown < all && h("p", { class: "faint small" }, `This page has ${shown} of ${all} memories. `, h("code", null, "nmem search"), " finds the others.");
  const why = /^\S+:\d+$|^[0-9a-f]{7,40}$/.test(state.query) && entry(`why:${state.query}`, h("span", { class: "title" }, "Why is ", h("code", null, words(state.query)), " so?"));
  return [why, h("p", { class: "faint small", id: "count" }, head), growing(found, draw, live ? "Nothing is known about this." : "Nothing on this page has these words."), rest];
}

// The part of a text around the first searched word.
function around(text, terms) {
  const lower = text.toLowerCase();
  const at = Math.min(...terms.map(term => lower.indexOf(term)).filter(place => place >= 0), text.length);
  const from = at === text.length || at < 80 ? 0 : at - 60;
  return (from ? "…" : "") + text.slice(from, from + 240).replace(/\s+/g, " ");
}
