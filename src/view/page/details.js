// The details of one item: a memory, work unit, session, injection, file, prompt or tool use.

const NAMES = {
  __proto__: null,
  chosen: "chosen", alternatives: "alternatives", reasoning: "reason", confidence: "confidence", request: "request", investigated: "investigated",
  learned: "learned", completed: "completed", next_steps: "next steps", notes: "notes", tags: "tags", problem: "problem",
  rationale: "reason", question: "question", finding: "finding", implications: "implications", options: "options",
};
// Fields that are shown elsewhere, or are of no use to a reader.
const KNOWN = new Set(["id", "uuid", "kind", "type", "title", "subtitle", "facts", "narrative", "concepts", "files_read", "files_modified", "project",
  "session", "unit", "prompt_number", "sources", "platform", "provenance", "made_by", "discovery_tokens", "tokens_estimated", "created_at", "pinned",
  "by_hand", "superseded_by", "contradicted_by", "files_edited", "said"]);

// A link to the details of an id, with its title on hover.
function link(id, text) {
  const row = index.memories.get(id) || index.units.get(id) || index.sessionIds.get(id);
  return h("a", { class: "id", href: `#${encodeURIComponent(id)}`, title: line(row?.title || row?.session || "") || null }, text || id);
}

const fact = (name, value) => (value === undefined || value === null || value === false || value === "" || value.length === 0 ? [] : [h("dt", null, name), h("dd", null, value)]);
const fileLinks = paths => (paths || []).map((path, at) => [at ? ", " : "", h("a", { href: `#f:${encodeURIComponent(path)}` }, words(path))]);
const closer = () => h("button", { type: "button", class: "close", title: "Close (Escape)", "aria-label": "Close", onclick: () => open_(null) }, "✕");
const plain = value => (Array.isArray(value) ? h("ul", null, value.map(one => h("li", null, plain(one)))) : value && typeof value === "object" ? Object.entries(value).map(([name, one]) => h("div", null, `${name}: `, plain(one))) : rich(String(value)));

function details(id) {
  if (id.startsWith("f:")) return fileDetail(id.slice(2));
  if (id.startsWith("why:")) return whyDetail(id.slice(4));
  if (index.memories.has(id)) return memoryDetail(index.memories.get(id));
  if (index.units.has(id)) return unitDetail(index.units.get(id));
  if (index.sessionIds.has(id)) return sessionDetail(index.sessionIds.get(id));
  if (index.injections.has(id)) return injectionDetail(index.injections.get(id));
  if (data.sources[id]) return [closer(), h("h2", null, id), wholeSource(id)];
  return [closer(), missing(id)];
}

function memoryDetail(memory) {
  const by = memory.superseded_by, received = index.received.get(memory.id), replaced = index.replaced.get(memory.id) || [];
  const fields = Object.keys(memory).filter(name => !KNOWN.has(name));
  const ordered = Object.keys(NAMES).filter(name => fields.includes(name)).concat(fields.filter(name => !(name in NAMES)));
  const used = received && h("span", null, `${count(received.times, "time")}, used ${received.used}: `, received.in.slice(0, 8).map((injection, at) => [at ? ", " : "", h("a", { href: `#${injection.id}` }, moment(injection.at))]));
  return [
    closer(),
    h("p", { class: "faint small" }, h("span", { class: `badge ${memory.kind}` }, memory.kind), " ", memory.type && h("span", { class: "badge" }, words(memory.type)), ` ${memory.id} · ${moment(memory.created_at)}`, memory.pinned && " · pinned"),
    h("h2", null, by ? h("del", null, rich(memory.title)) : rich(memory.title)),
    by && h("p", { class: "warn" }, "Superseded. What holds instead: ", link(by, index.memories.get(by)?.title || by)),
    memory.contradicted_by && h("p", { class: "warn" }, "A newer memory says the opposite: ", link(memory.contradicted_by, index.memories.get(memory.contradicted_by)?.title)),
    memory.subtitle && h("p", { class: "text" }, rich(memory.subtitle)),
    memory.narrative && h("p", { class: "text" }, rich(memory.narrative)),
    memory.facts && plain(memory.facts),
    h("dl", null, ordered.map(name => fact(NAMES[name] || name.replaceAll("_", " "), plain(memory[name])))),
    actions(memory),
    h("h3", null, "Where it comes from"),
    h("dl", null,
      fact("said by", `${saidBy(memory)}; recorded by ${memory.made_by === "rules" ? "rules" : memory.made_by}${memory.by_hand ? ", checked by hand" : ""}`),
      fact("agent", agent(memory.platform)), fact("branch", branchOf(memory)), fact("project", memory.project && words(memory.project)),
      fact("work unit", memory.unit && [link(memory.unit), " ", words(line(index.units.get(memory.unit)?.title, 90))]),
      fact("session", index.sessions.get(memory.session) && link(index.sessions.get(memory.session).id)),
      fact("changed", fileLinks(memory.files_modified)), fact("read", fileLinks(memory.files_read)), fact("concepts", (memory.concepts || []).join(", ")),
      fact("replaces", replaced.map((old, at) => [at ? ", " : "", link(old.id), " ", words(line(old.title, 60))])),
      fact("discovery cost", memory.discovery_tokens && `${short(memory.discovery_tokens)} tokens${memory.tokens_estimated ? ", estimated" : ""}`),
      fact("received", used || "by no session yet")),
    (memory.sources || []).map(id => sourceEntry(id, memory.title)),
  ];
}

// A source in one line; it is complete when opened.
function sourceEntry(id, quote) {
  const known = data.sources[id];
  const box = h("details", { "data-source": id }, h("summary", null, known ? summary(known, quote) : id));
  const fill = () => { if (box.open && box.children.length === 1) box.append(known ? wholeSource(id) : missing(id)); };
  box.addEventListener("toggle", fill);
  return box;
}

// A source in one line; a text starts at the part that the memory quotes.
function summary(row, quote = "") {
  const at = row.kind === "prompt" ? Math.max(0, row.text.indexOf(quote.slice(0, 30))) : 0;
  if (row.kind === "prompt") return [h("span", { class: "faint" }, `${row.id} ${row.source === "user" ? "you" : "the agent"}: ${at ? "…" : ""}`), words(line(row.text.slice(at), 110))];
  return [h("span", { class: "faint" }, `${row.id} ${row.tool_name}${row.succeeded === false ? " failed" : ""}: `), h("code", null, words(line(row.content || row.path || "", 110)))];
}

// A complete prompt or tool use.
function source(row) {
  if (row.kind === "prompt") {
    return [h("p", { class: "faint small" }, `${row.source === "user" ? "Prompt" : "The agent's text"} ${row.number} · ${moment(row.created_at)}`, place(row)), h("pre", null, words(row.text))];
  }
  const text = (name, value) => value && [h("h3", null, name), h("pre", null, words(value))];
  return [
    h("p", { class: "faint small" }, `${row.tool_name} · ${moment(row.created_at)} · `, row.succeeded === false ? h("span", { class: "bad" }, "failed") : row.succeeded ? "succeeded" : "outcome unknown", place(row)),
    row.metadata?.description && h("p", null, words(row.metadata.description)),
    text(row.type === "command" ? "Command" : "What", row.content), row.path !== row.content && text("Path", row.path), text("Input", row.input),
    text("Outcome", row.outcome), text("Failure", row.metadata?.response),
  ];
}

function place(row) {
  const session = index.sessions.get(row.session);
  return [row.unit && [" · ", link(row.unit)], session && [` · ${agent(session.platform)} `, link(session.id)], row.prompt && data.sources[row.prompt] && [" · for ", link(row.prompt)]];
}

function unitDetail(unit) {
  const own = (index.ofUnit.get(unit.id) || []).filter(memory => memory.kind !== "summary");
  const session = index.sessions.get(unit.session), tokens = unit.tokens, read = unit.summary || {};
  const said = ["investigated", "learned", "completed", "next_steps", "notes"];
  const failed = data.failures.map(id => data.sources[id]).filter(tool => tool?.unit === unit.id);
  return [
    closer(),
    h("p", { class: "faint small" }, `work unit ${unit.id} · ${moment(unit.started_at)} · ${span(unit.active_ms)}`, session && [" · ", link(session.id)]),
    h("h2", null, rich(unit.title || unit.intent || "(nothing was said)")),
    phases(unit), h("div", { class: "legend" }, (unit.phases || []).map(phase => h("span", null, h("i", { class: `p-${phase.phase}` }), `${phase.phase} ${phase.tool_uses}`))),
    h("dl", null,
      fact("asked", unit.intent && unit.intent !== unit.title && words(unit.intent)),
      fact("agent", session && agent(session.platform)), fact("project", session?.project && words(session.project)),
      fact("outcome", [h("span", { class: outcomes[unit.outcome] }, unit.state === "open" ? "open" : unit.outcome), unit.evidence && [": ", words(unit.evidence)]]),
      fact("tool uses", `${unit.tool_uses}${unit.failures ? `, ${count(unit.failures, "failure")}` : ""}`),
      fact("prompts", (unit.prompts || []).join(", ")),
      said.map(name => fact(NAMES[name], read[name] && plain(read[name]))),
      fact("commits", (unit.commits || []).map(commit => h("div", null, commit.sha && h("code", null, words(commit.sha.slice(0, 9) + " ")), words(commit.subject || "")))),
      fact("tokens", tokens && `${short(tokens.input)} input, ${short(tokens.output)} output, ${short(tokens.cache_read)} read from caches`),
      fact("begins here because of", unit.boundary && words(unit.boundary.reason))),
    failed.length ? [h("h3", null, failed.length < unit.failures ? `Failed commands (${failed.length} of ${count(unit.failures, "failure")})` : "Failed commands"), failed.map(tool => failureRow(tool))] : null,
    own.length ? [h("h3", null, "Memories"), own.map(memory => memoryRow(memory))] : null,
    (unit.files || []).length ? [h("h3", null, "Files"), h("table", null, h("tbody", null, unit.files.slice(0, 40).map(file => h("tr", null, h("td", { class: "path" }, h("a", { href: `#f:${encodeURIComponent(file.path)}` }, words(file.path))), h("td", { class: "n" }, file.edits ? count(file.edits, "edit") : ""), h("td", { class: "n" }, file.reads ? count(file.reads, "read") : ""))))),
      unit.files.length > 40 && h("p", { class: "faint small" }, `40 of ${unit.files.length} files`)] : null,
    forgetButton(unit.id),
  ];
}

function sessionDetail(session) {
  const units = (index.unitsOf.get(session.session) || []), received = index.injectionsOf.get(session.session) || [], tokens = session.tokens;
  return [
    closer(),
    h("p", { class: "faint small" }, `session ${session.id} · ${moment(session.started_at)}`),
    h("h2", null, `${agent(session.platform)}, ${moment(session.started_at)}`),
    h("dl", null, fact("agent's id", h("code", null, words(session.session))), fact("project", session.project && words(session.project)), fact("branch", session.branch && words(session.branch.end || session.branch.start)),
      fact("ended", session.ended_at ? `${moment(session.ended_at)} (${session.end_reason || "no reason given"})` : "not yet, or not reported"), fact("model", session.model && words(session.model)),
      fact("work", `${count(session.counts?.prompts || 0, "prompt")}, ${count(session.counts?.tool_uses || 0, "tool use")}, ${count(session.counts?.failures || 0, "failure")}`),
      fact("tokens", tokens && `${short(tokens.input)} input, ${short(tokens.output)} output, ${short(tokens.cache_read)} read from caches`), fact("cost", session.cost_usd && `$${session.cost_usd.toFixed(2)}`)),
    h("h3", null, "Work units"), units.map(unit => unitRow(unit)),
    h("h3", null, "What it received"), received.length ? received.map(injection => injectionRow(injection)) : h("p", { class: "empty" }, "Nothing."),
    forgetButton(session.id),
  ];
}

function injectionDetail(injection) {
  const session = index.sessions.get(injection.session);
  return [
    closer(),
    h("p", { class: "faint small" }, `${moment(injection.at)} · ${POINTS[injection.point] || injection.point}`, session && [" · ", agent(session.platform), " ", link(session.id)], ` · about ${short(Math.round(injection.bytes / 4))} tokens`),
    h("h2", null, `Received ${POINTS[injection.point] || ""}`),
    h("h3", null, "Items"),
    h("ul", null, (injection.items || []).map(item => h("li", null, link(item.id), " ", words(line(index.memories.get(item.id)?.title || index.units.get(item.id)?.title || "(no longer there)")), item.used ? h("span", { class: "good" }, " · used") : h("span", { class: "faint" }, " · not used")))),
    h("h3", null, "Text, as the agent got it"),
    injection.text ? h("pre", null, words(injection.text)) : injection.is_cut ? h("p", { class: "empty" }, "This page leaves out older texts; ", h("code", null, `nmem log --told --session ${session?.id}`), " prints it.") : h("p", { class: "empty" }, "The text is not stored: something in it was forgotten since, or an older nmem recorded it."),
  ];
}

function fileDetail(path) {
  const file = index.files.get(path);
  if (!file) return [closer(), h("h2", null, words(path)), h("p", { class: "empty" }, "No work unit on this page used this file.")];
  const listed = (name, rows) => (rows.length ? [h("h3", null, `${name} (${rows.length})`), rows.slice(0, 40).map(row => memoryRow(row))] : null);
  return [
    closer(), h("h2", null, words(path)),
    h("p", { class: "faint small" }, `${count(file.edits, "edit")}, ${count(file.reads, "read")}, in ${count(file.units.length, "work unit")}`),
    whyForm(path),
    listed("Decisions", file.decisions), listed("Traps", file.traps), listed("Other memories", file.others),
    file.units.length ? [h("h3", null, `Work units (${file.units.length})`), file.units.slice(0, 40).map(unit => unitRow(unit))] : null,
  ];
}

// Asks which work is behind a line of a file; only a server knows the files.
function whyForm(path) {
  if (!live) return null;
  const line = h("input", { id: "why-line", type: "number", min: 1, placeholder: "line", "aria-label": "line" });
  const asked = event => { event.preventDefault(); open_(`why:${path}${line.value ? `:${line.value}` : ""}`); };
  return h("form", { class: "actions", onsubmit: asked }, line, h("button", { type: "submit" }, "Why is it so?"));
}

function whyDetail(subject) {
  const box = h("div", null, h("p", { class: "empty" }, live ? "…" : ["This page is a file; ", h("code", null, `nmem why ${subject}`), " knows."]));
  if (live) ask(`/api/why?${new URLSearchParams({ subject })}`).then(found => box.replaceChildren(...nodes(evidence(found))), error => box.replaceChildren(h("p", { class: "empty" }, words(error.message))));
  return [closer(), h("p", { class: "faint small" }, "why"), h("h2", null, h("code", null, words(subject))), box];
}

const CERTAIN = {
  __proto__: null, edit: "A recorded edit wrote this text.", commit: "A recorded command made this commit.",
  "same change": "It makes the same change as a recorded commit, which was amended, rebased or squashed.",
  text: "Recorded edits wrote most of its lines; nobody saw who committed.", unknown: "Nothing recorded is behind it.",
};

function evidence(found) {
  if (found.units) {
    return h("table", null, h("tbody", null, found.units.map(part => h("tr", null,
      h("td", { class: "n" }, count(part.lines, "line")), h("td", null, part.unit ? [link(part.unit), " ", rich(line(part.title || "", 100))] : "nothing recorded")))));
  }
  const memories = all => (all || []).map(memory => h("div", null, link(memory.id), " ", rich(memory.title)));
  return [
    h("p", null, CERTAIN[found.certainty] || found.certainty),
    found.line?.text && h("pre", null, words(found.line.text)),
    h("dl", null,
      fact("work unit", found.unit && [link(found.unit.id || found.unit), " ", rich(found.unit.title || index.units.get(found.unit)?.title)]),
      fact("commit", found.commit && h("code", null, words(String(found.commit.sha || found.commit).slice(0, 10)))),
      fact("asked", found.prompt && words(found.prompt.text || String(found.prompt))),
      fact("decided", memories(found.decisions)), fact("did not help", memories(found.tried)),
      fact("checks", (found.checks || []).map(check => h("div", null, h("span", { class: check.passed ? "good" : "bad" }, check.passed ? "passed " : "failed "), h("code", null, words(check.command)))))),
  ];
}
