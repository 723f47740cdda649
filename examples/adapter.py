#!/usr/bin/env python3
"""An adapter: follows the log of an agent that has no hooks, JSON Lines on stdin, and tells nmem what happened.
The log's own words stand left in TOLD. Usage: my-agent --log-json | python3 adapter.py"""

import json
import os
import subprocess
import sys

NMEM = os.environ.get("NMEM", "nmem")


def begun(event):
    return "sessions/ensure", {"cwd": event["dir"]}


def asked(event):
    return "sessions/init", {"user_prompt": event["text"]}


def used(event):
    outcome = {"tool_response": event["output"]} if event["ok"] else {"error": event["output"]}
    return "observations", {"tool_name": event["tool"], "tool_input": event["args"], **outcome}


def answered(event):
    return "sessions/summarize", {"last_assistant_message": event["text"]}


def ended(event):
    return "sessions/complete", {"reason": event.get("why", "other")}


TOLD = {"start": begun, "user": asked, "tool": used, "reply": answered, "exit": ended}


def main():
    # One process for the whole log: each line is a request, each answer a line.
    rad = subprocess.Popen([NMEM, "rad", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    folder = {}
    for line in sys.stdin:
        event = json.loads(line)
        if event["type"] not in TOLD:
            continue
        verb, fields = TOLD[event["type"]](event)
        folder.setdefault("cwd", fields.get("cwd", os.getcwd()))
        request = {"verb": verb, "agent_session_id": event["session"], "source_client": "my-agent", **folder, **fields}
        rad.stdin.write(json.dumps(request) + "\n")
        rad.stdin.flush()
        answer = json.loads(rad.stdout.readline())
        if "error" in answer:
            print(f"{verb}: {answer['error']['message']}", file=sys.stderr)
    rad.stdin.close()
    return rad.wait()


if __name__ == "__main__":
    sys.exit(main())
