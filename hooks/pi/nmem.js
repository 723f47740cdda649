// Reports to nmem what Pi does, and gives the agent what nmem remembers. Written by `nmem install pi`;
// `nmem uninstall pi` removes it. Nothing in here fails the agent: every error is swallowed, and nmem itself keeps a log.
import { spawn } from "node:child_process"

const NMEM = "nmem"
/** Longest wait for an answer, in milliseconds; at the end of a turn a model may write memories. */
const ANSWER_MS = 8000
const STOP_MS = 30000

/** Runs nmem with an event on stdin; resolves to the context for the agent, and never rejects. */
function run(verb, event) {
  return new Promise((resolve) => {
    try {
      let out = ""
      const timeout = event.hook_event_name === "Stop" ? STOP_MS : ANSWER_MS
      const child = spawn(NMEM, [verb, "--platform", "pi"], { stdio: ["pipe", "pipe", "ignore"], timeout, windowsHide: true })
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

const textOf = (content) =>
  typeof content === "string" ? content : (content ?? []).filter((block) => block.type === "text").map((block) => block.text).join("\n")

export default function (pi) {
  /** What nmem said at the start, until the first prompt can carry it. */
  let start
  let last = Promise.resolve()
  const send = (verb, name, ctx, fields) => {
    const manager = ctx?.sessionManager
    const event = {
      agent: "pi",
      hook_event_name: name,
      session_id: manager?.getSessionId?.(),
      transcript_path: manager?.getSessionFile?.(),
      cwd: ctx?.cwd ?? process.cwd(),
      ...fields,
    }
    last = last.then(() => run(verb, event))
    return last
  }
  const begin = (source) => (_event, ctx) => {
    start = send("context", "SessionStart", ctx, { source })
  }
  pi.on("session_start", (event, ctx) => begin(event.reason === "resume" ? "resume" : "startup")(event, ctx))
  pi.on("session_compact", begin("compact"))
  pi.on("before_agent_start", async (event, ctx) => {
    const begun = await start
    start = undefined
    const answer = await send("record", "UserPromptSubmit", ctx, { prompt: event.prompt })
    const content = [begun, answer].filter(Boolean).join("\n\n")
    return content ? { message: { customType: "nmem", content, display: false } } : undefined
  })
  pi.on("tool_result", async (event, ctx) => {
    const said = textOf(event.content)
    const call = { tool_name: event.toolName, tool_input: event.input, tool_use_id: event.toolCallId }
    const outcome = event.isError ? { error: said } : { tool_response: said }
    await send("record", event.isError ? "PostToolUseFailure" : "PostToolUse", ctx, { ...call, ...outcome })
  })
  pi.on("agent_end", async (event, ctx) => {
    const said = (event.messages ?? []).filter((message) => message.role === "assistant").at(-1)
    await send("record", "Stop", ctx, { last_assistant_message: textOf(said?.content) })
  })
  pi.on("session_shutdown", async (_event, ctx) => {
    await send("record", "SessionEnd", ctx, { reason: "other" })
  })
}
