#!/usr/bin/env python3
"""Notes of the real agents: does a `memo:` line become a memory, and does the next session get it?

    tests/agents/notes.py                    Claude Code, Codex, Gemini CLI, OpenCode
    tests/agents/notes.py codex              one of them

The agent works by a script, on loopback; the last message ends with two notes. The first request must hold the paragraph that
asks for them, the store the two memories as the agent's, and the next session's request the decision. Agents come from npm into
the cache of run.py. Exit code 1 names what was missing.
"""
import os
import pathlib
import shutil
import sqlite3
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import model  # noqa: E402
import run  # noqa: E402

DECISION = "greetings are built by f-strings because gettext cannot read concatenated ones"
OPEN = "the farewell in greet.py is not translated yet"
model.SCRIPTS["Make the greeting friendlier"] = [*model.WORK[:3], model.WORK[-3], ("say", f"The greeting is friendlier now.\n\nmemo: decision: {DECISION}\nmemo: open: {OPEN}")]
SECOND = "How do we format strings in the greeting here, f-strings or concatenated ones?"


def check(name):
    problems = []
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"nmem-notes-{name}-", dir=os.environ.get("TMPDIR")))
    run.prepared(folder)
    agent = run.Agent(name, folder, None)
    server = model.serve(str(folder / "project"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = agent.home / ".config/nmem/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[agent_notes]\nask = true\n")
    agent.configure(server.server_address[1])
    agent.nmem("install", name)
    first = run.whole(agent.ask(run.FIRST, server))
    if "three lines that begin `memo:`" not in first:
        problems.append(f"{name}: the first request does not ask for notes")
    rows = sqlite3.connect(agent.home / ".local/share/nmem/nmem.db").execute("SELECT kind, title FROM memories WHERE made_by = 'agent' ORDER BY id").fetchall()
    print(f"  {rows}")
    want = [("decision", DECISION[0].upper() + DECISION[1:]), ("open", OPEN[0].upper() + OPEN[1:])]
    if rows != want:
        problems.append(f"{name}: the store has {rows}")
    second = run.whole(agent.ask(SECOND, server))
    if DECISION[1:] not in second:
        problems.append(f"{name}: the next session was not given the decision")
    shutil.rmtree(folder, ignore_errors=True)
    return problems


def main():
    problems = []
    for name in sys.argv[1:] or ["claude-code", "codex", "gemini", "opencode"]:
        print(name)
        problems += check(name)
    print("\n".join(problems) or "all as it should be")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
