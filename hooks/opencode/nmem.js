// Reports to nmem what OpenCode does, and gives the agent what nmem remembers. Written by `nmem install opencode`;
// `nmem uninstall opencode` removes it. `server` is the plugin of OpenCode 1, `setup` that of OpenCode 2.
// Nothing in here fails the agent: every error is swallowed, and nmem itself keeps a log.
import { spawn } from "node:child_process"

const NMEM = "nmem"
/** The program that loads this: OpenCode, or Kilo CLI. */
const AGENT = "opencode"
/** Longest wait for an answer, in milliseconds. */
const ANSWER_MS = 8000
/** Longest run at the end of a turn, where a model may write memories, and the time for which later events wait for it. */
const STOP_MS = 30000
const STOP_WAIT_MS = 1000
/** Longest wait at the end, in milliseconds: after 1500, OpenCode 1 starts the plugin again. */
const END_MS = 1200
const EDITS = ["edit", "write", "patch", "apply_patch", "multiedit"]
/** How the requests begin that OpenCode makes for itself. */
const INTERNAL = ["You are a title generator", "You are a context summarization"]

/** Runs nmem with an event on stdin; resolves to the context for the agent, and never rejects. */
function run(verb, event) {
  return new Promise((resolve) => {
    try {
      let out = ""
      const options = { stdio: ["pipe", "pipe", "ignore"], timeout: event.hook_event_name === "Stop" ? STOP_MS : ANSWER_MS, windowsHide: true }
      const child = spawn(NMEM, [verb, "--platform", AGENT], options)
      const answer = () => {
        try {
          resolve(JSON.parse(out).hookSpecificOutput?.additionalContext)
        } catch {
          resolve(undefined)
        }
      }
      child.on("error", () => resolve(undefined))
      child.on("close", answer)
      child.stdout.on("data", (data) => (out += data))
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(event))
    } catch {
      resolve(undefined)
    }
  })
}

/** What both generations share: events in order, and one session start for each session. */
function reporter(directory) {
  const sessions = new Map()
  const parents = new Map()
  let last = Promise.resolve()
  const send = (verb, name, sessionID, fields) => {
    const parent = parents.get(sessionID)
    const event = {
      agent: AGENT,
      hook_event_name: name,
      session_id: parent ?? sessionID,
      agent_id: parent ? sessionID : undefined,
      cwd: directory,
      ...fields,
    }
    // nmem stores the end of a turn before it asks a model, so later events need not wait for the answer.
    const waits = () => new Promise((resolve) => setTimeout(resolve, STOP_WAIT_MS).unref?.())
    last = last.then(() => (name === "Stop" ? Promise.race([run(verb, event), waits()]) : run(verb, event)))
    return last
  }
  const start = (sessionID, source) => {
    const known = sessions.get(sessionID)
    if (known && source !== "compact") return known
    const session = known ?? { usage: {}, used: new Set(), closing: undefined, busy: false }
    sessions.set(sessionID, session)
    session.context = send("context", "SessionStart", sessionID, { source })
    return session
  }
  const record = (name, sessionID, fields) => send("record", name, sessionID, fields)
  return {
    parents,
    start,
    record,
    isChild: (sessionID) => parents.has(sessionID),
    session: (sessionID) => sessions.get(sessionID),
    prompt(sessionID, id, text) {
      start(sessionID, "startup").busy = true
      return record("UserPromptSubmit", sessionID, { prompt_id: id, prompt: text })
    },
    tool(sessionID, call) {
      const session = sessions.get(parents.get(sessionID) ?? sessionID)
      if (session) session.busy = true
      const name = call.error === undefined ? "PostToolUse" : "PostToolUseFailure"
      return record(name, sessionID, call)
    },
    /** Adds the tokens of one message of the agent, once. */
    use(sessionID, id, model, tokens) {
      const session = sessions.get(sessionID)
      if (!session || !tokens || session.used.has(id)) return
      session.used.add(id)
      const counts = {
        input: tokens.input,
        output: tokens.output,
        reasoning: tokens.reasoning,
        cache_read: tokens.cache?.read,
        cache_write: tokens.cache?.write,
      }
      for (const [kind, n] of Object.entries(counts)) session.usage[kind] = (session.usage[kind] ?? 0) + (n ?? 0)
      session.usage.model = model
      session.usage.message = id
    },
    /** Ends the turn; OpenCode may say so twice. */
    stop(sessionID, error) {
      const session = sessions.get(sessionID)
      if (!session?.busy) return
      const { closing, usage } = session
      session.busy = false
      session.closing = undefined
      session.usage = {}
      record(error ? "StopFailure" : "Stop", sessionID, { last_assistant_message: closing, usage, error })
    },
    /** Ends all sessions, and waits for nmem. */
    async end() {
      for (const sessionID of sessions.keys()) record("SessionEnd", sessionID, { reason: "other" })
      await Promise.race([last, new Promise((resolve) => setTimeout(resolve, END_MS).unref?.())])
    },
  }
}

/** A hook that never fails the agent. */
const safe = (hook) => async (...values) => {
  try {
    await hook(...values)
  } catch {}
}

/** OpenCode 1. */
async function server({ directory }) {
  const nmem = reporter(directory)
  const prompts = new Set()
  const known = new Map()
  const onEvent = ({ event: { type, properties: p } }) => {
    if (type === "session.created" && p.info?.parentID) nmem.parents.set(p.info.id, p.info.parentID)
    if (type === "session.compacted") nmem.start(p.sessionID, "compact")
    if (type === "session.idle") nmem.stop(p.sessionID)
    // After a revert, the next prompt removes the messages that were taken back.
    if (type === "message.removed" && nmem.session(p.sessionID)) nmem.record("TakenBack", p.sessionID, { prompt_id: p.messageID })
    if (type === "session.error" && p.sessionID) nmem.stop(p.sessionID, p.error?.name ?? "unknown")
    if (type === "message.updated" && p.info?.role === "assistant" && p.info.time?.completed) {
      nmem.use(p.info.sessionID, p.info.id, p.info.modelID, p.info.tokens)
    }
    const part = type === "message.part.updated" ? p.part : undefined
    if (part?.type === "text" && !prompts.has(part.messageID)) {
      const session = nmem.session(part.sessionID)
      if (session && part.text) session.closing = part.text
    }
    // A call that throws has no other event.
    if (part?.type === "tool" && part.state?.status === "error") {
      const { input, error, time } = part.state
      const duration_ms = time?.end - time?.start || undefined
      nmem.tool(part.sessionID, { tool_name: part.tool, tool_input: input, tool_use_id: part.callID, error: String(error), duration_ms })
    }
  }
  return {
    event: safe(onEvent),
    "chat.message": safe(async (_, { message, parts }) => {
      prompts.add(message.id)
      if (nmem.isChild(message.sessionID)) return
      const text = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join("\n")
      const context = await nmem.prompt(message.sessionID, message.id, text)
      if (!context) return
      // Parts are in the order of their ids.
      const id = `${parts.at(-1).id}z`
      parts.push({ id, sessionID: message.sessionID, messageID: message.id, type: "text", text: context, synthetic: true })
    }),
    "experimental.chat.system.transform": safe(async ({ sessionID }, { system }) => {
      if (!sessionID || nmem.isChild(sessionID) || INTERNAL.some((begin) => system[0]?.startsWith(begin))) return
      const context = await nmem.start(sessionID, "startup").context
      // Some servers refuse a second system message.
      if (context) system[0] = system.length > 0 ? `${system[0]}\n\n${context}` : context
    }),
    "experimental.session.compacting": safe(({ sessionID }) => nmem.record("PreCompact", sessionID, {})),
    "tool.execute.before": safe(async ({ tool, sessionID, callID }, { args }) => {
      if (!EDITS.includes(tool)) return
      known.set(callID, await nmem.record("PreToolUse", sessionID, { tool_name: tool, tool_input: args, tool_use_id: callID }))
    }),
    "tool.execute.after": safe(async ({ tool, sessionID, callID, args }, result) => {
      const response = { output: result.output, exit: result.metadata?.exit }
      const error = tool === "invalid" ? result.output : undefined
      const call = { tool_name: tool, tool_input: args, tool_use_id: callID, tool_response: response, error }
      await nmem.tool(sessionID, call)
      const context = known.get(callID)
      known.delete(callID)
      if (context) result.output = `${result.output}\n\n${context}`
    }),
    dispose: safe(() => nmem.end()),
  }
}

/** OpenCode 2. OpenCode 1 calls this too, without sessions and tools. */
async function setup(ctx) {
  if (!ctx?.session?.hook || !ctx?.tool?.hook || !ctx?.event?.subscribe) return
  const directory = ctx.location?.directory
  const nmem = reporter(directory)
  const given = new Map()
  const ending = new AbortController()
  const put = (system, key, text) => {
    const at = system.findIndex((item) => item.text === given.get(key))
    if (at >= 0) system.splice(at, 1)
    if (text) system.push({ type: "text", text })
    given.set(key, text)
  }
  ctx.session.hook("prompt", safe(async (e) => {
    if (nmem.isChild(e.sessionID)) return
    const session = nmem.start(e.sessionID, "startup")
    session.related = await nmem.prompt(e.sessionID, e.messageID, e.prompt?.text)
  }))
  ctx.session.hook("context", safe(async (e) => {
    if (nmem.isChild(e.sessionID)) return
    const session = nmem.start(e.sessionID, "startup")
    put(e.system, `start ${e.sessionID}`, await session.context)
    put(e.system, `prompt ${e.sessionID}`, session.related)
  }))
  ctx.session.hook("compaction", safe((e) => nmem.record("PreCompact", e.sessionID, {})))
  ctx.tool.hook("execute.after", safe(async (e) => {
    const output = e.result?.output ?? {}
    const text = typeof output === "string" ? output : output.output ?? e.result?.content
    const failed = e.status === "error" || e.error !== undefined
    const error = failed ? String(e.error?.message ?? e.error ?? text) : undefined
    const response = { output: text, exit: output.exit }
    await nmem.tool(e.sessionID, { tool_name: e.tool, tool_input: e.input, tool_use_id: e.callID ?? e.id, tool_response: response, error })
  }))
  const onEvent = ({ type, data = {}, location }) => {
    // The events of all folders arrive here.
    if (location?.directory && directory && location.directory !== directory) return
    const sessionID = data.sessionID ?? data.info?.id
    const parentID = data.info?.parentID ?? data.parentID
    if (type === "session.created" && parentID) nmem.parents.set(sessionID, parentID)
    const session = nmem.session(sessionID)
    if (type === "session.text.ended" && session && data.text) session.closing = data.text
    if (type === "session.compaction.ended" && session) nmem.start(sessionID, "compact")
    if (type === "session.execution.succeeded" || type === "session.execution.interrupted") nmem.stop(sessionID)
    if (type === "session.execution.failed") nmem.stop(sessionID, data.error?.name ?? "unknown")
  }
  const follow = async () => {
    for await (const event of ctx.event.subscribe({ signal: ending.signal })) await safe(onEvent)(event)
  }
  follow().catch(() => {})
  return async () => {
    ending.abort()
    await nmem.end()
  }
}

export default { id: "nmem", server, setup }
