"""A scripted model on loopback that speaks the protocols of nine agents.

It plays one script: the same steps for every agent, in the tools that the agent offers. Every request body is kept, so that
a run can look for what nmem has put into it. Python's standard library only.
"""
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATCH = """*** Begin Patch
*** Update File: greet.py
@@
 def greet(name):
-    return "Hello " + name
+    return f"Hello, {name}!"
*** End Patch
"""
BAD_PATCH = """*** Begin Patch
*** Update File: greet.py
@@
-    this line does not exist
+    neither does this
*** End Patch
"""
OLD, NEW = 'return "Hello " + name', 'return f"Hello, {name}!"'
COMMIT = 'git add -A && git commit -q -m "Make the greeting friendlier" && git log --oneline -1'

# The work of the first session: read, fail, edit, fail to edit, fail in the background (where the agent has a
# background), commit, run, answer.
WORK = [
    ("read", "greet.py"),
    ("run", "ls /nonexistent"),
    ("edit", (OLD, NEW)),
    ("edit", ("this line does not exist", "neither does this")),
    ("background", "sleep 0.2; exit 7"),
    ("run", "sleep 1"),
    ("run", COMMIT),
    ("run", "python3 greet.py"),
    ("say", "The greeting is friendlier now: greet.py uses an f-string. I chose f-strings because they are easier to read."),
]
# A question to the person; only interactive sessions offer the tool.
QUESTION = {
    "question": "Which database should the cache use?",
    "header": "Database",
    "multiSelect": False,
    "options": [{"label": "SQLite", "description": "one file"}, {"label": "Redis", "description": "a server"}],
}
SCRIPTS = {
    "Plan the cache": [("ask", QUESTION), ("edit", (OLD, NEW)), ("say", "The cache is a file now.")],
    "Make the greeting friendlier": WORK,
    "How do we format": [("say", "With f-strings, as decided before.")],
    "Add a farewell": [("run", "cat greet.py"), ("say", "The farewell is described, not written.")],
}


def call(step, tools, project):
    """A step as a call of one of the offered tools: name and input."""
    kind, what = step
    if kind == "ask":
        return "AskUserQuestion", {"questions": [what]}
    if kind == "background":
        if "TaskStop" in tools:
            return "Bash", {"command": what, "description": "A step in the background", "run_in_background": True}
        kind = "run"
    has = lambda *names: next((name for name in names if name in tools), None)
    path = f"{project}/{what}" if kind == "read" else f"{project}/greet.py"
    if kind == "read":
        if name := has("Read"):
            return name, {"file_path": path}
        if name := has("read_file", "read_files"):
            return name, {"file_path": path}
        if name := has("read"):
            return name, {"filePath": path}
        if name := has("view"):
            return name, {"path": path}
        kind, what = "run", f"cat {path}"
    if kind == "run":
        if name := has("exec_command"):
            return name, {"cmd": what}
        name = has("Bash", "bash", "run_shell_command", "shell", "run_commands", "run_terminal_command", "Execute")
        droids = {"summary": "A step", "riskLevel": "low", "riskLevelReason": "a test"} if name == "Execute" else {}
        return name, {"command": what, "description": "A step of the script", **droids}
    old, new = what
    if name := has("Edit", "editor"):
        return name, {"file_path": path, "old_string": old, "new_string": new}
    if name := has("search_replace"):
        return name, {"file_path": path, "old_string": old, "new_string": new}
    if name := has("replace"):
        return name, {"file_path": path, "old_string": old, "new_string": new, "instruction": "Edit a line"}
    if name := has("edit"):
        if "apply_patch" not in tools and "view" in tools:
            return name, {"path": path, "old_str": old, "new_str": new}
        return name, {"filePath": path, "oldString": old, "newString": new}
    return "apply_patch", PATCH if old == OLD else BAD_PATCH


SAME = [("file_path", "filePath", "path", "target_file"), ("old_string", "oldString", "old_str", "old_text"), ("new_string", "newString", "new_str", "new_text")]


def fitted(used, schemas):
    """A call with the names of its parameters as the agent's schema has them."""
    name, given = used
    known = schemas.get(name) or {}
    if not isinstance(given, dict) or not known:
        return used
    if "edits" in known and "oldString" in given:
        return name, {"path": given["filePath"], "edits": [{"oldText": given["oldString"], "newText": given["newString"]}]}
    if "files" in known:
        return name, {"files": [{"path": given["file_path"]}]}
    if "commands" in known:
        return name, {"commands": [given["command"]]}
    spelled = lambda key: next((other for names in SAME if key in names for other in names if other in known), key)
    return name, {spelled(key): value for key, value in given.items() if spelled(key) in known}


def texts(value):
    """All texts of a message's content."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(texts(item) for item in value)
    if isinstance(value, dict):
        return texts(value.get("text") or value.get("content") or "")
    return ""


def position(messages):
    """The script that the last prompt asks for, and how many of its steps have results. A message is (role, text, results)."""
    script, done = None, 0
    for role, text, results in messages:
        # Context that nmem injects may quote an earlier prompt: the last one counts.
        key = max(SCRIPTS, key=text.rfind)
        # Results of calls may quote a prompt, too.
        if role == "user" and not results and key in text:
            script, done = SCRIPTS[key], 0
        done += results
    return script, done


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer({"object": "list", "data": [], "models": []})

    def do_HEAD(self):
        self.answer({})

    def do_POST(self):
        if self.headers.get("transfer-encoding") == "chunked":
            raw = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            return self.answer({})
        self.server.bodies.append((self.path, body))
        path = self.path.split("?")[0]
        if path.endswith("/messages"):
            self.anthropic(body)
        elif path.endswith("/responses"):
            self.respond(body)
        elif path.endswith("/chat/completions"):
            self.chat(body)
        elif "enerateContent" in path:
            self.gemini(body, path)
        else:
            self.answer({"input_tokens": 1})

    def answer(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def stream(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(event.encode())
        self.close_connection = True

    def step(self, messages, tools):
        """The next step: a text, or a call."""
        script, done = position(messages)
        if script is None or not tools:
            return "Greeting", None
        step = script[min(done, len(script) - 1)]
        return (step[1], None) if step[0] == "say" else ("", call(step, tools, self.server.project))

    def anthropic(self, body):
        count = lambda content: sum(part.get("type") == "tool_result" for part in content if isinstance(part, dict))
        messages = [(m["role"], texts(m["content"]), count(m["content"]) if isinstance(m["content"], list) else 0) for m in body["messages"]]
        text, used = self.step(messages, [tool.get("name") for tool in body.get("tools") or []])
        ident = f"{time.time_ns()}"
        block = {"type": "text", "text": ""} if used is None else {"type": "tool_use", "id": f"toolu_{ident}", "name": used[0], "input": {}}
        delta = {"type": "text_delta", "text": text} if used is None else {"type": "input_json_delta", "partial_json": json.dumps(used[1])}
        usage = {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 0}
        message = {"id": f"msg_{ident}", "type": "message", "role": "assistant", "model": body.get("model"), "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        stop = {"stop_reason": "end_turn" if used is None else "tool_use", "stop_sequence": None}
        if not body.get("stream"):
            return self.answer({**message, **stop, "content": [{"type": "text", "text": text or "ok"}]})
        events = [("message_start", {"message": message}), ("content_block_start", {"index": 0, "content_block": block}),
                  ("content_block_delta", {"index": 0, "delta": delta}), ("content_block_stop", {"index": 0}),
                  ("message_delta", {"delta": stop, "usage": usage}), ("message_stop", {})]
        self.stream(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in events)

    def respond(self, body):
        items = body.get("input")
        items = [{"role": "user", "content": items}] if isinstance(items, str) else items or []
        messages = [(item.get("role"), texts(item.get("content")), str(item.get("type", "")).endswith("_output")) for item in items]
        text, used = self.step(messages, [tool.get("name") for tool in body.get("tools") or []])
        ident = f"{time.time_ns()}"
        if used is None:
            item = {"type": "message", "role": "assistant", "id": f"msg_{ident}", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}
        elif isinstance(used[1], str):
            item = {"type": "custom_tool_call", "id": f"ctc_{ident}", "call_id": f"call_{ident}", "name": used[0], "input": used[1], "status": "completed"}
        else:
            item = {"type": "function_call", "id": f"fc_{ident}", "call_id": f"call_{ident}", "name": used[0], "arguments": json.dumps(used[1]), "status": "completed"}
        usage = {"input_tokens": 150, "input_tokens_details": {"cached_tokens": 50}, "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 160}
        final = {"id": f"resp_{ident}", "object": "response", "created_at": int(time.time()), "status": "completed", "model": body.get("model"), "output": [item], "usage": usage}
        if not body.get("stream"):
            return self.answer(final)
        events = [("response.created", {"response": {**final, "status": "in_progress", "output": [], "usage": None}}),
                  ("response.output_item.added", {"output_index": 0, "item": item}),
                  ("response.output_item.done", {"output_index": 0, "item": item}), ("response.completed", {"response": final})]
        self.stream(f"event: {name}\ndata: {json.dumps({'type': name, 'sequence_number': n, **data})}\n\n" for n, (name, data) in enumerate(events))

    def chat(self, body):
        messages = [(m["role"], texts(m.get("content")), m["role"] == "tool") for m in body["messages"]]
        offered = [tool.get("function") or {} for tool in body.get("tools") or []]
        schemas = {one.get("name"): (one.get("parameters") or {}).get("properties") or {} for one in offered}
        text, used = self.step(messages, list(schemas))
        used = used and fitted(used, schemas)
        base = {"id": f"chatcmpl-{time.time_ns()}", "object": "chat.completion.chunk", "created": int(time.time()), "model": body.get("model")}
        usage = {"prompt_tokens": 150, "completion_tokens": 10, "total_tokens": 160, "prompt_tokens_details": {"cached_tokens": 50}}
        calls = [] if used is None else [{"index": 0, "id": f"call_{time.time_ns()}", "type": "function", "function": {"name": used[0], "arguments": json.dumps(used[1])}}]
        reason = "tool_calls" if calls else "stop"
        if not body.get("stream"):
            message = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
            return self.answer({**base, "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": reason}], "usage": usage})
        delta = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
        chunks = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
                  {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}, {**base, "choices": [], "usage": usage}]
        self.stream([*(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks), "data: [DONE]\n\n"])

    def gemini(self, body, path):
        parts = lambda content: content.get("parts") or []
        results = lambda content: sum("functionResponse" in part for part in parts(content))
        messages = [(c.get("role", "user"), texts(parts(c)), results(c)) for c in body.get("contents") or []]
        tools = [f.get("name") for tool in body.get("tools") or [] for f in tool.get("functionDeclarations") or []]
        text, used = self.step(messages, tools)
        part = {"text": text} if used is None else {"functionCall": {"name": used[0], "args": used[1]}}
        usage = {"promptTokenCount": 150, "candidatesTokenCount": 10, "cachedContentTokenCount": 50, "totalTokenCount": 160}
        value = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}], "usageMetadata": usage, "modelVersion": "scripted"}
        self.stream([f"data: {json.dumps(value)}\r\n\r\n"]) if "stream" in path else self.answer(value)


def serve(project):
    """A server on a free port; its request bodies are in `bodies`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.project, server.bodies = project, []
    return server
