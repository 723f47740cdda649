// The data: read from the page or from the server, indexed by id, merged with updates, searched.

// Tables without a prototype: stored names such as `constructor` find nothing in them.
const POINTS = {
  __proto__: null,
  start: "at the session start", compaction: "after a compaction", prompt: "at a prompt", file: "before an edit",
  subagent: "at the start of a subagent",
};
const SAID = { __proto__: null, user: "you said it", agent: "the agent said it", tool: "a tool printed it", team: "the team said it" };
/** Who said a memory, in words. */
const saidBy = memory => (memory.provenance === "user" && memory.stated_in === "plan" ? "a plan that you ordered" : SAID[memory.provenance] || memory.provenance);
const TRAPS = ["gotcha", "problem-solution", "trade-off"];

let data = { agents: {}, sessions: [], units: [], memories: [], injections: [], failures: [], sources: {}, calls: [], totals: {} };
let index = {};

const agent = platform => Object.hasOwn(data.agents || {}, platform) ? data.agents[platform] : platform || "by hand";

async function embedded() {
  const text = $("data").textContent.trim();
  if (!text) return null;
  if (!("DecompressionStream" in window)) throw new Error("this browser is too old for this page: it cannot unpack its data");
  const packed = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : bytes(atob(text));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

// Uint8Array.from with a function takes twenty times as long.
function bytes(text) {
  const out = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) out[at] = text.charCodeAt(at);
  return out;
}

function use(fresh) {
  data = { ...data, ...fresh };
  for (const kind of ["sessions", "units", "memories", "injections", "failures", "calls"]) data[kind] ||= [];
  data.sources = { __proto__: null, ...data.sources };
  reindex();
}

// Replaces the rows of the sessions of `part`, and keeps the rest.
function merge(part) {
  const ids = new Set((part.sessions || []).map(session => session.session));
  for (const kind of ["sessions", "units", "memories", "injections"]) {
    data[kind] = data[kind].filter(row => !ids.has(row.session)).concat(part[kind] || []);
  }
  Object.assign(data.sources, part.sources || {});
  data.failures = [...new Set((part.failures || []).concat(data.failures))];
  reindex();
}

function reindex() {
  data.sessions.sort((a, b) => b.started_at - a.started_at);
  data.units.sort((a, b) => b.started_at - a.started_at);
  data.memories.sort((a, b) => b.created_at - a.created_at || number(b.id) - number(a.id));
  data.injections.sort((a, b) => b.at - a.at);
  data.failures.sort((a, b) => (data.sources[b]?.created_at || 0) - (data.sources[a]?.created_at || 0));
  // An id that does not change when other injections arrive.
  for (const injection of data.injections) injection.id = `i${injection.at}-${injection.point}-${injection.session}`;
  const by = (rows, name) => new Map(rows.map(row => [row[name], row]));
  const group = (rows, name) => Map.groupBy ? Map.groupBy(rows, row => row[name]) : rows.reduce((all, row) => {
    all.set(row[name], (all.get(row[name]) || []).concat(row));
    return all;
  }, new Map());
  index = {
    memories: by(data.memories, "id"), units: by(data.units, "id"), sessions: by(data.sessions, "session"),
    sessionIds: by(data.sessions, "id"), injections: by(data.injections, "id"), ofUnit: group(data.memories, "unit"),
    unitsOf: group(data.units, "session"), injectionsOf: group(data.injections, "session"), received: new Map(), replaced: new Map(),
  };
  for (const injection of data.injections) {
    for (const item of injection.items || []) {
      const known = index.received.get(item.id) || { times: 0, used: 0, in: [] };
      known.times += 1;
      known.used += item.used ? 1 : 0;
      known.in.push(injection);
      index.received.set(item.id, known);
    }
  }
  for (const memory of data.memories) {
    if (memory.superseded_by) index.replaced.set(memory.superseded_by, (index.replaced.get(memory.superseded_by) || []).concat(memory));
  }
  index.files = files();
  index.ends = ends();
  index.hasProjects = new Set(data.sessions.map(session => session.project)).size > 1;
}

// The end of a path that no other known file has.
function shortest(path) {
  const parts = path.split(/[/\\]/);
  for (let from = parts.length - 1; from > 0; from--) {
    const end = parts.slice(from).join("/");
    if ((index.ends.get(end) || 0) < 2) return end;
  }
  return path;
}

// How many files have each end of a path.
function ends() {
  const counts = new Map();
  for (const path of index.files.keys()) {
    const parts = path.split(/[/\\]/);
    for (let from = parts.length - 1; from > 0; from--) {
      const end = parts.slice(from).join("/");
      counts.set(end, (counts.get(end) || 0) + 1);
    }
  }
  return counts;
}

const number = id => Number(id.slice(1));
const filesOf = memory => (memory.files_modified || []).concat(memory.files_read || []);
const branchOf = row => {
  const branch = index.sessions.get(row.session)?.branch;
  return branch && (branch.end || branch.start);
};
const isTrap = memory => memory.kind === "lesson" || (memory.concepts || []).some(concept => TRAPS.includes(concept));

// Returns each file with its uses, memories and failures.
function files() {
  const all = new Map();
  const file = path => {
    if (!all.has(path)) all.set(path, { path, reads: 0, edits: 0, decisions: [], traps: [], others: [], units: [], failures: 0 });
    return all.get(path);
  };
  for (const unit of data.units) {
    for (const used of unit.files || []) {
      const known = file(used.path);
      known.reads += used.reads;
      known.edits += used.edits;
      known.units.push(unit);
      if (used.edits) known.failures += unit.failures || 0;
    }
  }
  for (const memory of data.memories) {
    if (memory.superseded_by || memory.kind === "summary") continue;
    for (const path of new Set(memory.files_modified || [])) {
      const known = file(path);
      (memory.kind === "decision" ? known.decisions : isTrap(memory) ? known.traps : known.others).push(memory);
    }
  }
  return all;
}

// Returns the text of a row in lower case, its title first. Kept with the row until the row is replaced.
function said(row) {
  if (row.said) return row.said;
  const texts = [row.title, row.subtitle, row.narrative, row.facts, row.chosen, row.reasoning, row.alternatives, row.learned,
    row.completed, row.next_steps, row.notes, row.concepts, row.files_modified, row.files_read, row.intent, row.text, row.content,
    row.outcome, row.path, row.evidence, row.id, row.kind === "tool" ? row.input : "", (row.commits || []).map(commit => [commit.sha, commit.subject]),
    (row.files || []).map(file => file.path), row.metadata?.response];
  row.said = [(row.title || "").toLowerCase(), texts.flat(Infinity).filter(Boolean).join("\n").toLowerCase()];
  return row.said;
}

const searched = query => query.toLowerCase().split(/\s+/).filter(Boolean);

// Returns rows that contain all words, or else any of them, best first: `{found: [{kind, row}], isWhole}`.
function find(query) {
  const terms = searched(query);
  const rows = [
    ...data.memories.map(row => ({ kind: "memory", row })), ...data.units.map(row => ({ kind: "unit", row })),
    ...Object.values(data.sources).map(row => ({ kind: row.kind === "prompt" ? "prompt" : "tool", row })),
    ...data.injections.map(row => ({ kind: "injection", row })),
  ];
  const weight = { memory: 4, unit: 3, prompt: 2, tool: 1, injection: 0 };
  const scored = rows.map(({ kind, row }) => {
    const [title, all] = said(row);
    const hits = terms.filter(term => all.includes(term));
    const titles = hits.filter(term => title.includes(term));
    return { kind, row, hits: hits.length, score: hits.length * 10 + titles.length * 4 + weight[kind] - (row.superseded_by ? 8 : 0) };
  }).filter(found => found.hits > 0);
  const whole = scored.filter(one => one.hits === terms.length);
  const at = row => row.created_at || row.started_at || row.at || 0;
  const found = (whole.length ? whole : scored).sort((a, b) => b.score - a.score || at(b.row) - at(a.row));
  return { found, isWhole: whole.length > 0 };
}
