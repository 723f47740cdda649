"""The shapes of what agents send to hooks: for each event, the names of its fields and their JSON types.

`shapes.json` has those of the versions in `run.py`. A newer program that leaves a field out is named, and one that adds a
field, too: what nmem reads may have moved.
"""
import json
import pathlib
import shutil

KNOWN = pathlib.Path(__file__).with_name("shapes.json")
EVENT = ("hook_event_name", "hookEventName", "hookName", "event", "type")
# A hook's stdin is kept before nmem gets it.
WRAPPER = """#!/bin/sh
case "$1" in
  record|context) payload=$(mktemp "{folder}/XXXXXX") && cat >"$payload" && exec "{real}" "$@" <"$payload" ;;
esac
exec "{real}" "$@"
"""


def watched(program, folder):
    """Puts a script that keeps each payload in the place of a program; returns the folder of the payloads."""
    payloads, real = folder / "payloads", folder / "real/nmem"
    payloads.mkdir(), real.parent.mkdir()
    shutil.move(program, real)
    program.write_text(WRAPPER.format(folder=payloads, real=real))
    program.chmod(0o755)
    return payloads


def shape(value):
    """The fields of an object, one level deep, with their types. What a tool is given and returns differs by tool."""
    kind = lambda one: {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}.get(type(one), "number")
    return {name: kind(one) for name, one in value.items()}


def of(payloads):
    """The shapes of all payloads: {event: {field: "type|type"}}."""
    found = {}
    for path in sorted(payloads.iterdir()):
        payload = json.loads(path.read_text(errors="replace") or "{}")
        event = next((payload[name] for name in EVENT if isinstance(payload.get(name), str)), "?")
        fields = found.setdefault(event, {})
        for name, kind in shape(payload).items():
            fields[name] = "|".join(sorted({*fields.get(name, kind).split("|"), kind}))
    return found


def known():
    return json.loads(KNOWN.read_text()) if KNOWN.is_file() else {}


def save(agent, version, shapes):
    """Writes the shapes of one agent: a line for each event."""
    all_ = {**known(), agent: {"version": version, "events": shapes}}
    lines = []
    for name, one in sorted(all_.items()):
        events = [f"  {json.dumps(event)}: {json.dumps(fields, sort_keys=True)}" for event, fields in sorted(one["events"].items())]
        lines.append(f' {json.dumps(name)}: {{"version": {json.dumps(one["version"])}, "events": {{\n' + ",\n".join(events) + "}}")
    KNOWN.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def changes(agent, shapes):
    """What is gone and what is new, one line each."""
    before = known().get(agent, {}).get("events", {})
    gone = [f"event {event}" for event in before if event not in shapes]
    new = [f"event {event}" for event in shapes if event not in before]
    for event, fields in shapes.items():
        had = before.get(event, fields)
        gone += [f"{event}.{name}" for name in had if name not in fields]
        new += [f"{event}.{name}" for name in fields if name not in had]
        changed = [name for name in fields if name in had and not {*fields[name].split("|"), "null"} & {*had[name].split("|")}]
        gone += [f"{event}.{name} as {had[name]}" for name in changed]
    return sorted(gone), sorted(new)
