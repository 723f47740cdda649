#!/usr/bin/env python3
"""A memory for a program, in one class: python3 client.py shows it at work."""

import json
import os
import subprocess


class Refused(Exception):
    """nmem said no: `code` is bad_request, not_found, off or unavailable."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Memory:
    def __init__(self, project, client="my-agent", nmem=os.environ.get("NMEM", "nmem")):
        self.fields = {"project": project, "source_client": client}
        self.nmem = nmem

    def ask(self, verb, **fields):
        """One request, one answer."""
        told = json.dumps({**self.fields, **fields})
        done = subprocess.run([self.nmem, "rad", verb], input=told, capture_output=True, text=True, check=False)
        answer = json.loads(done.stdout)
        if "error" in answer:
            raise Refused(**answer["error"])
        return answer

    def many(self, verb, requests):
        """Many requests of one verb in one process; an answer each, in their order."""
        lines = "".join(json.dumps({**self.fields, **request}) + "\n" for request in requests)
        done = subprocess.run([self.nmem, "rad", verb, "--batch"], input=lines, capture_output=True, text=True, check=False)
        return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    memory = Memory("weather-station")
    memory.ask("knowledge/record", taskDescription="Calibrate the thermometer", success=True, decisions=[
        {"chosenOption": "Use ice water", "reasoning": "it is 0 degrees everywhere", "confidence": 0.9}])
    readings = [{"entity_type": "reading", "title": f"Reading {n}", "content": {"celsius": 20 + n}} for n in range(3)]
    print("stored:", [answer["status"] for answer in memory.many("entities", readings)])
    known = memory.ask("knowledge/related", taskDescription="the thermometer is off, calibrate it again")
    for decision in known["relevantDecisions"]:
        print(f"known: {decision['chosenOption']} ({decision['confidence']:.2f} sure), because {decision['reasoning']}")
    try:
        memory.ask("entities", entity_type="reading", discovery_tokens="many")
    except Refused as no:
        print("refused:", no.code)
