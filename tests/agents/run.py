#!/usr/bin/env python3
"""Tries nmem with the real agents, against a scripted model on loopback.

    tests/agents/run.py                     every agent below, then one project with three of them
    tests/agents/run.py codex gemini        some of them
    tests/agents/run.py --version codex=0.170.0 codex
    tests/agents/run.py --newest            in their newest versions
    tests/agents/run.py --bundle            with the plugin alone, in those that take it

Agents come from npm, one from PyPI, into a cache folder ($NMEM_AGENTS, default ~/.cache/nmem-agents). The binary is
target/release/nmem, or $NMEM. Each agent gets a home and a project of its own. A session uses tools, fails, edits and
commits; then the next one's request body must hold what the first one left; an import must find what hooks recorded, and
each event must have the fields in shapes.json. Claude Code also runs in a terminal (tmux): a question is answered, turns
are taken back. Exit code 1 names what was missing. No account and no network is needed besides these two.
"""
import argparse
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import model  # noqa: E402
import shapes  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
NMEM = pathlib.Path(os.environ.get("NMEM", ROOT / "target/release/nmem")).resolve()
CACHE = pathlib.Path(os.environ.get("NMEM_AGENTS", pathlib.Path.home() / ".cache/nmem-agents"))
VERSIONS = {
    "claude-code": ("@anthropic-ai/claude-code", "2.1.332", "claude"),
    "codex": ("@openai/codex", "0.171.0", "codex"),
    "gemini": ("@google/gemini-cli", "0.61.0", "gemini"),
    "copilot-cli": ("@github/copilot", "1.0.102", "copilot"),
    "opencode": ("opencode-ai", "1.18.33", "opencode"),
    "qwen-code": ("@qwen-code/qwen-code", "0.24.4", "qwen"),
    "pi": ("@earendil-works/pi-coding-agent", "1.6.0", "pi"),
    "kimi-code": ("@moonshot-ai/kimi-code", "2.1.0", "kimi"),
    "cline": ("cline", "3.0.65", "cline"),
    "kilo": ("@kilocode/cli-linux-x64", "7.7.9", "kilo"),
    "grok-build": ("@xai-official/grok", "1.0.41", "grok"),
    "droid": ("droid", "0.215.0", "droid"),
    "mistral-vibe": ("pypi:mistral-vibe", "3.0.2", "vibe"),
}
# What an agent does not tell its hooks, so that only an import finds it, or nothing. Qwen Code may write the last message after
# the turn's end is reported.
LACKS = {"grok-build": {"tokens"}, "droid": {"tokens"}, "qwen-code": {"tokens"}}
# It takes context with a call's result only: its second session makes one.
WITH_CALLS = {"cline", "grok-build", "mistral-vibe"}
FIRST = "Make the greeting friendlier. Always use f-strings, never concatenate strings."
SECOND = "How do we format strings here?"
THIRD = "Add a farewell like the greeting."
# What the second session must be given: words of the first one's prompt.
KNOWN = "never concatenate strings"


# How each agent installs the plugin from a copy of this repository's marketplace.
BUNDLE = {
    "claude-code": [["plugin", "marketplace", "add", "MARKET"], ["plugin", "install", "nmem@nmem"]],
    "codex": [["plugin", "marketplace", "add", "MARKET"], ["plugin", "add", "nmem@nmem"]],
    "copilot-cli": [["plugin", "marketplace", "add", "MARKET"], ["plugin", "install", "nmem@nmem"]],
    "qwen-code": [["extensions", "install", "MARKET:nmem", "--consent"]],
    "droid": [["plugin", "marketplace", "add", "MARKET"], ["plugin", "install", "nmem@nmem"]],
    "grok-build": [["plugin", "install", "MARKET/plugin", "--trust"]],
}
# What is missing when the plugin is the only thing that is installed. Grok Build lists its hooks, and runs none of them.
BUNDLE_LACKS = {"grok-build": {"any record"}}


class Agent:
    """One agent in a home and a project."""

    def __init__(self, name, folder, version):
        self.name, self.folder = name, folder
        self.home, self.project = folder / "home", folder / "project"
        # Its own copy: hooks have the path of the program that installed them.
        self.own = folder / "bin/nmem"
        if not self.own.exists():
            self.own.parent.mkdir(parents=True)
            shutil.copy(NMEM, self.own)
        self.package, default, self.program = VERSIONS[name]
        self.version = version or default
        self.bin = installed(name, self.package, self.version)

    def environment(self, port):
        path = os.pathsep.join([str(self.own.parent), str(self.bin), str(CACHE / "bin"), "/usr/local/bin", "/usr/bin", "/bin"])
        node = shutil.which("node")
        path += os.pathsep + str(pathlib.Path(node).parent) if node else ""
        base = {"HOME": str(self.home), "PATH": path, "TERM": "xterm", "LANG": "C.UTF-8", "NO_BROWSER": "1"}
        url = f"http://127.0.0.1:{port}"
        own = {
            "claude-code": {"ANTHROPIC_API_KEY": "dummy-key-loopback-01", "ANTHROPIC_BASE_URL": url, "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "ENABLE_TOOL_SEARCH": "false"},
            "codex": {"CODEX_HOME": str(self.home / ".codex"), "LOOP_API_KEY": "dummy"},
            "gemini": {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_TELEMETRY_ENABLED": "false"},
            "copilot-cli": {"COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_PROVIDER_TYPE": "openai", "COPILOT_PROVIDER_API_KEY": "dummy", "COPILOT_PROVIDER_WIRE_API": "completions", "COPILOT_MODEL": "claude-sonnet-4.5", "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"},
            "opencode": {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "npm_config_fetch_retries": "0"},
            "qwen-code": {"OPENAI_API_KEY": "dummy", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "scripted"},
            "kilo": {"KILO_DISABLE_AUTOUPDATE": "1", "KILO_DISABLE_MODELS_FETCH": "1", "npm_config_fetch_retries": "0"},
            "grok-build": {"LOOP_API_KEY": "dummy", "XAI_API_KEY": "dummy"},
            "mistral-vibe": {"LOOP_API_KEY": "dummy", "MISTRAL_API_KEY": "dummy"},
            "droid": {"FACTORY_API_KEY": "fk-dummy", "FACTORY_API_BASE_URL": url},
        }.get(self.name, {})
        return {**base, **own}

    def configure(self, port):
        """Settings without which the agent does not reach the model."""
        write = lambda path, text: ((self.home / path).parent.mkdir(parents=True, exist_ok=True), (self.home / path).write_text(text))
        if self.name == "codex":
            own = self.home / ".codex/config.toml"
            text = own.read_text() if own.exists() else ""
            if "loop" not in text:
                settings = f'model = "gpt-5.5"\nmodel_provider = "loop"\n[model_providers.loop]\nname = "Loop"\nbase_url = "http://127.0.0.1:{port}/v1"\nenv_key = "LOOP_API_KEY"\nwire_api = "responses"\n'
                write(".codex/config.toml", settings + text)
        if self.name == "gemini":
            write(".gemini/settings.json", json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False}, "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False}, "model": {"name": "gemini-2.5-pro"}}))
        if self.name in ("opencode", "kilo"):
            model_ = {"name": "Scripted", "tool_call": True, "limit": {"context": 200000, "output": 8000}}
            provider = {"npm": "@ai-sdk/openai-compatible", "name": "Loop", "options": {"baseURL": f"http://127.0.0.1:{port}/v1", "apiKey": "x"}, "models": {"scripted": model_}}
            write(f".config/{self.name}/{self.name}.json", json.dumps({"model": "loop/scripted", "small_model": "loop/scripted", "autoupdate": False, "share": "disabled", "provider": {"loop": provider}}))

        if self.name == "qwen-code" and not (self.home / ".qwen/settings.json").exists():
            write(".qwen/settings.json", json.dumps({"security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": False}}))
        if self.name == "pi":
            model_ = {"id": "scripted", "name": "Scripted", "contextWindow": 200000, "maxTokens": 8000}
            provider = {"baseUrl": f"http://127.0.0.1:{port}/v1", "api": "openai-completions", "apiKey": "dummy", "models": [model_]}
            write(".pi/agent/models.json", json.dumps({"providers": {"loop": provider}}))
        if self.name == "grok-build":
            own = self.home / ".grok/config.toml"
            if not own.exists() or "loop" not in own.read_text():
                write(".grok/config.toml", f'[models]\ndefault = "loop"\n[model.loop]\nmodel = "scripted"\nbase_url = "http://127.0.0.1:{port}/v1"\nname = "Loop"\nenv_key = "LOOP_API_KEY"\ncontext_window = 200000\n' + (own.read_text() if own.exists() else ""))
        if self.name == "droid":
            own = self.home / ".factory/settings.json"
            known = json.loads(own.read_text()) if own.exists() else {}
            model_ = {"model": "scripted", "displayName": "Scripted", "id": "custom:Scripted-0", "index": 0, "baseUrl": f"http://127.0.0.1:{port}/v1", "apiKey": "dummy", "provider": "generic-chat-completion-api", "maxOutputTokens": 8000}
            write(".factory/settings.json", json.dumps({**known, "customModels": [model_]}))
        if self.name == "mistral-vibe":
            provider = f'[[providers]]\nname = "loop"\napi_base = "http://127.0.0.1:{port}/v1"\napi_key_env_var = "LOOP_API_KEY"\napi_style = "openai"\nbackend = "generic"\n'
            write(".vibe/config.toml", f'active_model = "scripted"\nenable_telemetry = false\nenable_update_checks = false\n{provider}[[models]]\nname = "scripted"\nprovider = "loop"\nalias = "scripted"\n')
        if self.name == "kimi-code":
            own = self.home / ".kimi-code/config.toml"
            text = own.read_text() if own.exists() else ""
            settings = f'default_model = "loop/scripted"\n[providers.loop]\ntype = "openai"\nbase_url = "http://127.0.0.1:{port}/v1"\napi_key = "dummy"\n[models."loop/scripted"]\nprovider = "loop"\nmodel = "scripted"\nmax_context_size = 200000\n'
            if "loop" not in text:
                write(".kimi-code/config.toml", settings + "\n" + text)
        if self.name == "cline":
            program = str(self.bin / "cline")
            login = [program, "auth", "-p", "openai-compatible", "-b", f"http://127.0.0.1:{port}/v1", "-k", "dummy", "-m", "scripted"]
            subprocess.run(login, cwd=self.project, env=self.environment(port), capture_output=True, timeout=120, check=False)

    def command(self, prompt):
        return {
            "claude-code": ["claude", "-p", prompt, "--allowedTools", "Bash Read Write Edit"],
            "codex": ["codex", "exec", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", prompt],
            "gemini": ["gemini", "-p", prompt, "--yolo"],
            "copilot-cli": ["copilot", "-p", prompt, "--allow-all-tools"],
            "opencode": ["opencode", "run", "--title", "loop", prompt],
            "qwen-code": ["qwen", "-p", prompt, "--yolo"],
            "pi": ["pi", "--provider", "loop", "--model", "scripted", "-p", prompt],
            "kimi-code": ["kimi", "-p", prompt],
            "cline": ["cline", "--auto-approve", "true", prompt],
            "kilo": ["kilo", "run", "--auto", "--title", "loop", prompt],
            "grok-build": ["grok", "-p", prompt, "--always-approve"],
            "mistral-vibe": ["vibe", "-p", prompt, "--yolo", "--trust"],
            "droid": ["droid", "exec", "--skip-permissions-unsafe", "-m", "custom:Scripted-0", prompt],
        }[self.name]

    def ask(self, prompt, server):
        """Runs one session; returns the request bodies of it."""
        port = server.server_address[1]
        self.configure(port)
        before = len(server.bodies)
        command = self.command(prompt)
        command[0] = str(self.bin / command[0])
        log = self.folder / f"{self.name}.log"
        with open(log, "a") as out:
            done = subprocess.run(command, cwd=self.project, env=self.environment(port), stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=240)
        if done.returncode:
            print(f"  {self.name} exited with {done.returncode}; see {log}")
        return server.bodies[before:]

    def nmem(self, *args, database=None):
        environment = {"HOME": str(self.home), "PATH": f"{self.own.parent}:/usr/bin:/bin"}
        if database:
            environment["NMEM_DB"] = str(database)
        done = subprocess.run([str(self.own), *args], cwd=self.project, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"nmem {' '.join(args)}: {done.stderr}")
        return done.stdout

    def lines(self, *args):
        return [json.loads(line) for line in self.nmem(*args, "--json").splitlines()]


def installed(name, package, version):
    """The folder with the agent's program, which is fetched once."""
    folder = CACHE / f"{name}-{version}"
    if package.startswith("pypi:"):
        if not (folder / "bin").is_dir():
            pythons = [f"python3.{minor}" for minor in (14, 13, 12)]
            runs = lambda name: shutil.which(name) and not subprocess.run([name, "-c", ""], capture_output=True).returncode
            python = next((name for name in pythons if runs(name)), "python3")
            subprocess.run([python, "-m", "venv", str(folder)], check=True)
            subprocess.run([str(folder / "bin/pip"), "install", "-q", f"{package[5:]}=={version}"], check=True)
        return folder / "bin"
    if not (folder / "node_modules/.bin").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--no-fund", "--no-audit", "--prefix", str(folder), f"{package}@{version}"], check=True, stdout=subprocess.DEVNULL)
        # npm skips scripts by default; OpenCode's links its binary.
        script = folder / "node_modules/opencode-ai/postinstall.mjs"
        if script.is_file():
            subprocess.run(["node", str(script)], cwd=script.parent, check=False, stdout=subprocess.DEVNULL)
    # Kilo's package for one platform has no launcher.
    kilo = folder / "node_modules/@kilocode/cli-linux-x64/bin/kilo"
    if kilo.is_file():
        (folder / "node_modules/.bin").mkdir(exist_ok=True)
        link = folder / "node_modules/.bin/kilo"
        link.is_symlink() or link.symlink_to(kilo)
    return folder / "node_modules/.bin"


def newest(package):
    """The newest version that the registry has."""
    if package.startswith("pypi:"):
        said = subprocess.run([sys.executable, "-m", "pip", "index", "versions", package[5:]], capture_output=True, text=True, check=True).stdout
        return said.split("(")[1].split(")")[0]
    return subprocess.run(["npm", "view", package, "version"], capture_output=True, text=True, check=True).stdout.strip()


def prepared(folder):
    """A home and a git project."""
    for part in ("home", "project"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    project = folder / "project"
    (project / "greet.py").write_text('def greet(name):\n    return "Hello " + name\n\n\nif __name__ == "__main__":\n    print(greet("world"))\n')
    (project / "README.md").write_text("# Demo\n\nA tiny project used as a test.\n")
    environment = {"HOME": str(folder / "home"), "PATH": "/usr/bin:/bin:/usr/local/bin"}
    identity = [["config", "user.name", "Dev"], ["config", "user.email", "dev@example.org"]]
    for args in (["init", "-q"], *identity, ["add", "-A"], ["commit", "-q", "-m", "Initial commit"]):
        subprocess.run(["git", *args], cwd=project, env=environment, check=True)


def begun(name, version, prefix):
    """A folder, an agent in it, and the model."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix))
    prepared(folder)
    agent = Agent(name, folder, version)
    server = model.serve(str(agent.project))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return folder, agent, server


def whole(bodies):
    return "\n".join(json.dumps(body, ensure_ascii=False) for _, body in bodies)


def counts(rows):
    """The calls by kind and outcome, and the number of prompts and closing messages."""
    calls = rows("SELECT kind, succeeded, count(*) FROM tool_uses GROUP BY 1, 2 ORDER BY 1, 2").fetchall()
    return calls, rows("SELECT source, kind, count(*) FROM prompts WHERE kind <> 'thinking' GROUP BY 1, 2 ORDER BY 1, 2").fetchall()


def one(name, version, keep, save=False):
    """Two sessions of one agent; returns what was missing. With `save`, what it sends to hooks is what is known."""
    folder, agent, server = begun(name, version, f"nmem-{name}-")
    agent.nmem("install", name)
    payloads = shapes.watched(agent.own, folder)
    agent.ask(FIRST, server)
    missing = []
    lacks = LACKS.get(name, set())
    check = lambda what, holds: None if holds or what.split(":")[0] in lacks else missing.append(what)
    # Whether a unit is finished depends on time: the newest one has the work.
    units = agent.lines("units")
    tools = agent.lines("search", "--kind", "tool", "--limit", "0")
    snippets = [tool.get("snippet") or tool.get("title") or "" for tool in tools]
    check("a unit of the first session", units)
    check("the edited file", any("greet.py" == file["path"] and file["edits"] for unit in units for file in unit["files"]))
    check("the commit", any(unit["commits"] for unit in units))
    check("tokens", any((unit["tokens"] or {}).get("output") for unit in units) or name == "cursor")
    rows = sqlite3.connect(agent.home / ".local/share/nmem/nmem.db").execute
    check("the failed command", rows("SELECT count(*) FROM tool_uses WHERE succeeded = 0 AND kind = 'command' AND content LIKE '%nonexistent%'").fetchone()[0])
    check("the command that succeeded", rows("SELECT count(*) FROM tool_uses WHERE succeeded = 1 AND content = 'python3 greet.py'").fetchone()[0])
    check("the prompt, once", rows("SELECT count(*) FROM prompts WHERE source = 'user'").fetchone()[0] == 1)
    check("the closing message", rows("SELECT count(*) FROM prompts WHERE source = 'agent' AND text LIKE 'The greeting is friendlier%'").fetchone()[0] == 1)
    check("the failed edit", rows("SELECT count(*) FROM tool_uses WHERE succeeded = 0 AND kind = 'edit' AND path = 'greet.py'").fetchone()[0] == 1)
    if name == "claude-code":
        check("the failure in the background", rows("SELECT count(*) FROM tool_uses WHERE succeeded = 0 AND content LIKE '%exit 7' AND metadata ->> 'exit_code' = 7").fetchone()[0] == 1)
    imported = folder / "imported.db"
    agent.nmem("import", database=imported)
    by_hooks, by_import = counts(rows), counts(sqlite3.connect(imported).execute)
    check(f"what an import finds: {by_hooks} by hooks, {by_import} by import", by_hooks == by_import)
    check("the platform", rows("SELECT DISTINCT platform FROM sessions").fetchall() == [(name,)])
    bodies = whole(agent.ask(THIRD if name in WITH_CALLS else SECOND, server))
    check("the context in the next session's request", KNOWN in bodies)
    server.shutdown()
    if save:
        shapes.save(name, agent.version, shapes.of(payloads))
    gone, new = shapes.changes(name, shapes.of(payloads))
    missing += [f"in hooks, {field}" for field in gone]
    if new:
        print(f"  {name} {agent.version} sends more to hooks: {', '.join(new)}")
    # Session files of a form that nmem has not seen.
    formats = [line for line in agent.nmem("doctor").splitlines() if "formats:" in line]
    missing += [f"a known format: {line.strip()}" for line in formats]
    print(f"{name} {agent.version}: {'ok' if not missing else 'missing: ' + ', '.join(missing)} ({len(snippets)} tool uses found, {folder})")
    if not missing and not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return missing


def bundle(name, version, keep):
    """Two sessions of one agent with the plugin alone; returns what was missing."""
    folder, agent, server = begun(name, version, f"nmem-bundle-{name}-")
    # Some agents name a marketplace after its folder.
    market = folder / "nmem"
    for part in ("plugin", ".claude-plugin"):
        shutil.copytree(ROOT / part, market / part)
    agent.configure(server.server_address[1])
    for args in BUNDLE[name]:
        command = [str(agent.bin / agent.program), *[arg.replace("MARKET", str(market)) for arg in args]]
        done = subprocess.run(command, cwd=agent.project, env=agent.environment(server.server_address[1]), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    agent.ask(FIRST, server)
    database = agent.home / ".local/share/nmem/nmem.db"
    missing = [] if "any record" in BUNDLE_LACKS.get(name, set()) else ["any record"]
    if database.is_file():
        rows = sqlite3.connect(database).execute
        holds = {
            "the platform": rows("SELECT DISTINCT platform FROM sessions").fetchall() == [(name,)],
            "the prompt, once": rows("SELECT count(*) FROM prompts WHERE source = 'user'").fetchone()[0] == 1,
            "the closing message": rows("SELECT count(*) FROM prompts WHERE source = 'agent' AND text LIKE 'The greeting is friendlier%'").fetchone()[0] == 1,
            "the failed command": rows("SELECT count(*) FROM tool_uses WHERE succeeded = 0 AND kind = 'command' AND content LIKE '%nonexistent%'").fetchone()[0] == 1,
            "the failed edit": rows("SELECT count(*) FROM tool_uses WHERE succeeded = 0 AND kind = 'edit' AND path = 'greet.py'").fetchone()[0] == 1,
            "the commit": any(unit["commits"] for unit in agent.lines("units")),
            "the context in the next session's request": KNOWN in whole(agent.ask(THIRD if name in WITH_CALLS else SECOND, server)),
        }
        missing = [what for what, held in holds.items() if not held and what not in BUNDLE_LACKS.get(name, set())]
    server.shutdown()
    known = "".join(f", without {what}" for what in BUNDLE_LACKS.get(name, set()))
    print(f"plugin in {name} {agent.version}: {'ok' if not missing else 'missing: ' + ', '.join(missing)}{known} ({folder})")
    if not missing and not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return missing


class Terminal:
    """Claude Code in a terminal, by tmux."""

    def __init__(self, agent, port):
        key = agent.environment(port)["ANTHROPIC_API_KEY"]
        known = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        settings = {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": {"approved": [key[-20:]], "rejected": []}, "projects": {str(agent.project): known}}
        (agent.home / ".claude.json").write_text(json.dumps(settings))
        environment = [f"{name}={value}" for name, value in agent.environment(port).items()]
        command = [str(agent.bin / "claude"), "--permission-mode", "acceptEdits"]
        self.tmux("new-session", "-d", "-x", "140", "-y", "50", "-c", str(agent.project), "env", "-i", *environment, *command)
        self.wait("accept edits on")

    def tmux(self, *args):
        return subprocess.run(["tmux", "-L", f"nmem-{os.getpid()}", *args], capture_output=True, text=True).stdout

    def wait(self, text):
        """Waits until a text is on the screen."""
        until = time.monotonic() + 30
        while text not in (screen := self.tmux("capture-pane", "-p")):
            if time.monotonic() > until:
                raise SystemExit(f"{text!r} did not appear:\n{screen}")
            time.sleep(0.2)
        time.sleep(0.5)

    def keys(self, *keys):
        for key in keys:
            self.tmux("send-keys", key)
            time.sleep(0.5)

    def say(self, prompt, answer):
        self.tmux("send-keys", "-l", prompt)
        # What comes at once counts as pasted, and its Enter as a new line.
        time.sleep(0.5)
        self.keys("Enter")
        self.wait(answer)
        # The hooks of the turn's end.
        time.sleep(1.5)

    def rewind(self, turns):
        """Takes back the last turns, with their changes to files."""
        self.tmux("send-keys", "-l", "/rewind")
        time.sleep(0.5)
        self.keys("Enter", *["Up"] * turns, "Enter", "Enter", "C-u")

    def close(self):
        self.keys("C-c", "C-c")
        time.sleep(1.5)
        self.tmux("kill-server")


def interactive(version, keep):
    """Two sessions of Claude Code in a terminal: a question is answered, and turns are taken back."""
    missing = []
    check = lambda what, holds: None if holds else missing.append(what)
    for turns in (1, 2):
        folder, agent, server = begun("claude-code", version, "nmem-interactive-")
        agent.nmem("install", "claude-code")
        terminal = Terminal(agent, server.server_address[1])
        terminal.say("Plan the cache. Always use f-strings, never concatenate strings.", "Which database")
        terminal.keys("Enter")
        terminal.wait("The cache is a file now")
        time.sleep(1.5)
        terminal.say(THIRD, "described, not written")
        terminal.rewind(turns)
        terminal.say(SECOND, "With f-strings")
        terminal.close()
        imported = folder / "imported.db"
        agent.nmem("import", database=imported)
        rows = sqlite3.connect(agent.home / ".local/share/nmem/nmem.db").execute
        by_hooks, by_import = counts(rows), counts(sqlite3.connect(imported).execute)
        check(f"what an import finds: {by_hooks} by hooks, {by_import} by import", by_hooks == by_import)
        check("the answer", rows("SELECT count(*) FROM prompts WHERE source = 'user' AND text LIKE 'Which database%> SQLite'").fetchone()[0] == 1)
        taken = rows("SELECT number FROM prompts WHERE source = 'user' AND kind = 'taken-back' AND text NOT LIKE 'Which%' ORDER BY 1").fetchall()
        check(f"what was taken back: {taken}", taken == [(1,), (2,)][-turns:])
        decisions = rows("SELECT count(*) FROM memories WHERE kind = 'decision'").fetchone()[0]
        check(f"the decisions that hold: {decisions}", decisions == (2 if turns == 1 else 0))
        print(agent.nmem("context"))
        server.shutdown()
        print(f"interactive, {turns} taken back: {'ok' if not missing else 'missing: ' + ', '.join(missing)} ({folder})")
        if not missing and not keep:
            shutil.rmtree(folder, ignore_errors=True)
    return missing


def together(names, versions, keep):
    """One project, three agents in turn, one memory."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="nmem-together-"))
    prepared(folder)
    agents = [Agent(name, folder, versions.get(name)) for name in names]
    server = model.serve(str(folder / "project"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    missing = []
    for agent, prompt in zip(agents, [FIRST, SECOND, THIRD]):
        agent.nmem("install", agent.name)
        bodies = whole(agent.ask(prompt, server))
        if agent is not agents[0] and KNOWN not in bodies:
            missing.append(f"what {agents[0].name} was asked, in the request of {agent.name}")
    seen = [row[0] for row in sqlite3.connect(folder / "home/.local/share/nmem/nmem.db").execute("SELECT platform FROM sessions ORDER BY id")]
    if seen != names:
        missing.append(f"one session of each in one database, not {seen}")
    print(agents[0].nmem("units"))
    server.shutdown()
    print(f"together ({', '.join(names)}): {'ok' if not missing else 'missing: ' + ', '.join(missing)} ({folder})")
    if not missing and not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return missing


def handed_on(names, versions, keep):
    """One agent begins; another, which has no hooks, goes on with what `nmem handoff` prints."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="nmem-handoff-"))
    prepared(folder)
    first, second = [Agent(name, folder, versions.get(name)) for name in names]
    server = model.serve(str(folder / "project"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    first.nmem("install", first.name)
    first.ask(FIRST, server)
    text = first.nmem("handoff", "--to", second.name)
    bodies = whole(second.ask(text, server))
    missing = [] if "# Handoff:" in bodies and KNOWN in bodies else [f"the handoff in the request of {second.name}"]
    why = json.loads(first.nmem("why", "HEAD", "--json"))
    if why["certainty"] != "commit" or why["platform"] != first.name:
        missing.append(f"the commit of {first.name}, not {why['certainty']}")
    print(text)
    print(first.nmem("why", "HEAD"))
    server.shutdown()
    print(f"handed on ({' to '.join(names)}): {'ok' if not missing else 'missing: ' + ', '.join(missing)} ({folder})")
    if not missing and not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agents", nargs="*", metavar="AGENT", help=", ".join(VERSIONS))
    parser.add_argument("--version", action="append", default=[], metavar="AGENT=VERSION")
    parser.add_argument("--newest", action="store_true", help="the newest version of each, from npm or PyPI")
    parser.add_argument("--save-shapes", action="store_true", help="what hooks receive becomes what is known (shapes.json)")
    parser.add_argument("--keep", action="store_true", help="keep the folders")
    parser.add_argument("--bundle", action="store_true", help=f"only the plugin, in {', '.join(BUNDLE)}")
    parser.add_argument("--handoff", action="store_true", help="Claude Code hands its work on to Codex, as well")
    args = parser.parse_args()
    if not NMEM.is_file():
        raise SystemExit(f"{NMEM} does not exist; run cargo build --release")
    versions = dict(pair.split("=", 1) for pair in args.version)
    if args.newest:
        versions = {name: newest(VERSIONS[name][0]) for name in args.agents or VERSIONS} | versions
    if args.bundle:
        names = [name for name in args.agents or BUNDLE if name in BUNDLE]
        raise SystemExit(bool([what for name in names for what in bundle(name, versions.get(name), args.keep)]))
    missing = [what for name in args.agents or VERSIONS for what in one(name, versions.get(name), args.keep, args.save_shapes)]
    if "claude-code" in (args.agents or VERSIONS):
        if shutil.which("tmux"):
            missing += interactive(versions.get("claude-code"), args.keep)
        else:
            print("PASSED OVER: there is no tmux here, so interactive sessions are not tried")
    if not args.agents:
        missing += together(["codex", "gemini", "claude-code"], versions, args.keep)
    if not args.agents or args.handoff:
        missing += handed_on(["claude-code", "codex"], versions, args.keep)
    raise SystemExit(1 if missing else 0)


if __name__ == "__main__":
    main()
