#!/usr/bin/env python3
"""Does `nmem why` name the right edit and the right commit?

Replays recorded sessions of Claude Code in a scratch git repository: each edit is applied, each commit is made again, and
the ids that git printed are replaced by those of the scratch repository. Between them a person and a bot commit, commits are
amended, rebased and squashed without a recording. The truth of every line is known, so the answers can be counted.

    benches/why/replay.py [--data FOLDER] [--nmem PROGRAM] [--lines N] [--keep] [PROJECT...]

FOLDER has a folder of session files for each project.
"""
import argparse, difflib, json, os, random, re, shutil, sqlite3, subprocess, sys, tempfile
from datetime import datetime, timezone
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PRINTED = re.compile(r"^\[([^\]]*?) ([0-9a-f]{7,40})\] (.*)$", re.M)
CUT = "characters cut by"


def seconds(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Repo:
    """The scratch repository, with the author of each line."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True)
        self.lines = {}  # path -> [(text, author)]; an author is a tool use, or None
        self.commits = {}  # sha -> (session, tool use), or None
        self.pending = []  # commits by sessions since the last of somebody else
        self.dirty = set()  # files with edits of sessions that are not committed
        self.git("init", "-q", "-b", "main")
        self.git("config", "commit.gpgsign", "false")

    def git(self, *args, at=None, who="Dev", check=True):
        env = dict(os.environ, GIT_AUTHOR_NAME=who, GIT_AUTHOR_EMAIL="x@example.org", GIT_COMMITTER_NAME=who,
                   GIT_COMMITTER_EMAIL="x@example.org", GIT_CONFIG_GLOBAL="/dev/null", GIT_EDITOR="true", GIT_SEQUENCE_EDITOR="true")
        if at is not None:
            env.update(GIT_AUTHOR_DATE=f"{int(at)} +0000", GIT_COMMITTER_DATE=f"{int(at)} +0000")
        done = subprocess.run(["git", "-C", str(self.folder), *args], env=env, capture_output=True, text=True)
        if check and done.returncode:
            raise RuntimeError(f"git {args}: {done.stderr}")
        return done.stdout.strip()

    def read(self, path):
        file = self.folder / path
        return file.read_text() if file.is_file() else None

    def write(self, path, text, author):
        old, new = self.lines.get(path, []), text.split("\n")
        # Indentation counts for nothing, as in `git blame -w`.
        said = difflib.SequenceMatcher(None, [line.strip() for line, _ in old], [line.strip() for line in new], autojunk=False)
        lines = []
        for tag, a, b, c, d in said.get_opcodes():
            same = [(line, author) for line, (_, author) in zip(new[c:d], old[a:b])]
            lines += same if tag == "equal" else [(line, author) for line in new[c:d]]
        self.lines[path] = lines
        if author:
            self.dirty.add(path)
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self, message, at, made_by, who="Dev", path=None):
        """Commits everything, or one file; a commit of somebody else that holds edits of sessions, too, is not counted."""
        self.git("add", "-A" if path is None else "--", *([] if path is None else [path]))
        only = [] if path is None else ["--", path]
        self.git("commit", "-q", "--allow-empty", "--no-verify", "-m", message or "no message", *only, at=at, who=who)
        sha = self.git("rev-parse", "HEAD")
        if made_by or not self.dirty & ({path} if path else self.dirty):
            self.commits[sha] = made_by
        self.dirty = self.dirty - {path} if path else set()
        self.pending = self.pending + [(sha, made_by)] if made_by else []
        return sha

    def rewritten(self, how, at, rng):
        """Amends, rebases or squashes what sessions committed last, unseen."""
        if not self.pending:
            return
        last, made_by = self.pending[-1]
        # Edits by commands are not in the scratch repository: such a commit is empty, and has no change to follow.
        if not self.git("show", "--format=", "--name-only", last):
            return
        if how == "amend":
            self.git("commit", "-q", "--amend", "--allow-empty", "-m", f"Reworded {rng.randrange(10**6)}", at=at)
            self.pending.pop()
            made = [made_by]
        elif how == "squash" and len(self.pending) > 1:
            first = self.pending[-2]
            self.git("reset", "-q", "--soft", f"{first[0]}~1", check=True)
            self.git("commit", "-q", "--allow-empty", "-m", f"Squashed {rng.randrange(10**6)}", at=at)
            self.commits.pop(first[0], None)
            made = [made_by, first[1]]
        elif how == "rebase":
            self.git("reset", "-q", "--hard", f"{last}~1")
            (self.folder / f"unrelated-{rng.randrange(10**6)}.txt").write_text("merged from elsewhere\n")
            self.commit("Merge from elsewhere", at, None, who="Another")
            if self.git("cherry-pick", "--allow-empty", "--keep-redundant-commits", last, at=None, check=False) == "" and self.git("status", "--porcelain"):
                self.git("cherry-pick", "--abort", check=False)
                self.git("reset", "-q", "--hard", last)
                return
            made = [made_by]
        else:
            return
        self.commits.pop(last, None)
        self.commits[self.git("rev-parse", "HEAD")] = made if len(made) > 1 else made[0]
        self.pending = []


def in_project(path, cwd):
    """The path below the session's project, or None."""
    plain, root = path.replace("\\", "/"), cwd.replace("\\", "/").rstrip("/")
    return plain[len(root) + 1:] if plain.lower().startswith(root.lower() + "/") else None


def root_of(records):
    """The folder of the project: what all working folders of a session begin with."""
    folders = {r["cwd"] for r in records if isinstance(r.get("cwd"), str)}
    folders = {f for f in folders if ".claude/worktrees" not in f.replace("\\", "/")} or folders
    return os.path.commonprefix(sorted(folders, key=len)[:1] + [f for f in folders if f.lower().startswith(min(folders, key=len).lower())]) if folders else None


def moved(value, cwd, folder):
    """A value with the paths of the scratch repository."""
    if isinstance(value, dict):
        return {key: moved(v, cwd, folder) for key, v in value.items()}
    if isinstance(value, list):
        return [moved(v, cwd, folder) for v in value]
    if isinstance(value, str) and len(value) < 400 and "\n" not in value:
        if value.replace("\\", "/").rstrip("/").lower() == cwd.replace("\\", "/").rstrip("/").lower():
            return str(folder)
        inside = in_project(value, cwd)
        if inside is not None and " " not in value[:len(cwd)]:
            return f"{folder}/{inside}"
    return value


def result_block(record):
    content = (record.get("message") or {}).get("content")
    return next((b for b in content if isinstance(b, dict) and b.get("type") == "tool_result"), None) if isinstance(content, list) else None


def rename(record, block, old, new):
    """Gives a commit in a call's output the id that it has in the scratch repository."""
    result = record["toolUseResult"]
    for holder, key in ((result, "stdout"), (block, "content")):
        if isinstance(holder.get(key), str):
            holder[key] = holder[key].replace(old, new)
    operation = (result.get("gitOperation") or {}).get("commit")
    if isinstance(operation, dict) and str(operation.get("sha", "")).startswith(old[:7]):
        operation["sha"] = new


def replay(files, folder, home, rng):
    repo = Repo(folder)
    sessions = []
    for file in files:
        records = [json.loads(line) for line in file.read_text(errors="replace").splitlines() if line.strip()]
        times = [seconds(r["timestamp"]) for r in records if isinstance(r.get("timestamp"), str)]
        cwd = root_of(records)
        if times and cwd:
            sessions.append((file, records, cwd))
    steps = []
    for n, (file, records, cwd) in enumerate(sessions):
        last = 0
        for at, record in enumerate(records):
            last = seconds(record["timestamp"]) if isinstance(record.get("timestamp"), str) else last
            steps.append((last, n, at))
    # A continued session begins with a copy of the one before.
    calls, seen, renamed = {}, set(), {}
    for when, n, at in sorted(steps):
        file, records, cwd = sessions[n]
        record = moved(records[at], cwd, folder)
        records[at] = record
        if record.get("type") == "assistant":
            for block in (record.get("message") or {}).get("content") or []:
                if isinstance(block, dict) and block.get("type") == "tool_use":
                    calls[block["id"]] = block
        block = result_block(record)
        call = calls.get(block["tool_use_id"]) if block else None
        if not call or block.get("is_error") or record.get("isSidechain"):
            continue
        for old, new in renamed.get(block["tool_use_id"], []):
            rename(record, block, old, new)
        if block["tool_use_id"] in seen:
            continue
        seen.add(block["tool_use_id"])
        result, used = record.get("toolUseResult"), (file.stem, block["tool_use_id"])
        path = in_project(str(call["input"].get("file_path", "")), str(folder))
        if call["name"] in ("Edit", "MultiEdit", "Write") and path and isinstance(result, dict):
            original = result.get("originalFile") or ""
            current = repo.read(path)
            if CUT not in original and (original.replace("\r\n", "\n") != (current or "")) and (original or current is None):
                if original:
                    repo.write(path, original.replace("\r\n", "\n"), None)
                    repo.commit("Work of somebody else", when - 2, None, who="Person", path=path)
                    current = repo.read(path)
            current = current or ""
            if call["name"] == "Write":
                content = call["input"].get("content", "")
                if CUT in content:
                    continue
                repo.write(path, content.replace("\r\n", "\n"), used)
            else:
                edits = call["input"].get("edits") or [call["input"]]
                for edit in edits:
                    old, new = edit.get("old_string", ""), edit.get("new_string", "")
                    if CUT in old + new or old.replace("\r\n", "\n") not in current:
                        continue
                    current = current.replace(old.replace("\r\n", "\n"), new.replace("\r\n", "\n"), -1 if edit.get("replace_all") else 1)
                repo.write(path, current, used)
        elif call["name"] == "Bash" and isinstance(result, dict) and "commit" in call["input"].get("command", ""):
            found = PRINTED.findall(result.get("stdout") or "")
            for _, old, subject in found:
                new = repo.commit(subject, when, used)[:len(old)]
                rename(record, block, old, new)
                renamed.setdefault(block["tool_use_id"], []).append((old, new))
            if found:
                choice = rng.random()
                if choice < 0.4:
                    repo.rewritten(rng.choice(["amend", "rebase", "squash"]), when + 5, rng)
                elif choice < 0.7:
                    edited = [p for p in repo.lines if repo.read(p) is not None]
                    path = rng.choice(edited) if edited else "notes.txt"
                    lines = (repo.read(path) or "").split("\n")
                    where = rng.randrange(len(lines) + 1)
                    mine = [f"person_{rng.randrange(10**9)} = compute()", "}", "return null;"]
                    repo.write(path, "\n".join(lines[:where] + mine + lines[where:]), None)
                    repo.commit("A change by hand", when + 10, None, who="Person")
                else:
                    repo.write("package-lock.json", json.dumps({"version": rng.randrange(10**6)}, indent=1), None)
                    repo.commit("Bump a dependency", when + 10, None, who="dependabot[bot]")
    for file, records, _ in sessions:
        target = home / ".claude/projects" / re.sub(r"[^A-Za-z0-9]", "-", str(folder)) / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(json.dumps(r) + "\n" for r in records))
    return repo


def asked(nmem, env, folder, subject):
    done = subprocess.run([nmem, "why", subject, "--json"], cwd=folder, env=env, capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout.strip() else {"certainty": "error", "said": done.stderr}


def share(part, whole):
    return f"{part}/{whole} ({part / whole:.3f})" if whole else "none"


def judge(name, files, nmem, count, keep):
    rng = random.Random(7)
    folder = Path(tempfile.mkdtemp(prefix=f"nmem-why-{name}-"))
    home, project = folder / "home", folder / "project"
    home.mkdir()
    repo = replay(files, project, home, rng)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "NO_COLOR": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run([nmem, "import"], env=env, cwd=home, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"import failed: {done.stderr}")
    db = sqlite3.connect(home / ".local/share/nmem/nmem.db")
    ids = {f"t{row[0]}": (row[2], row[1]) for row in db.execute("SELECT t.id, t.tool_use_id, s.agent_session_id FROM tool_uses t JOIN sessions s ON s.id = t.session_id")}
    known = set(ids.values())

    # Commits that exist today.
    right = wrong = missing = controls = controls_wrong = 0
    by_certainty, notes = {}, []
    alive = set(repo.git("rev-list", "HEAD").split())
    for sha, made_by in repo.commits.items():
        if sha not in alive:
            continue
        answer = asked(nmem, env, project, sha)
        named = ids.get(answer.get("command") or "")
        session = answer.get("session")
        if made_by is None:
            controls += 1
            if answer["certainty"] != "unknown":
                controls_wrong += 1
                notes.append(f"  control {sha[:8]} {repo.git('log', '-1', '--format=%an: %s', sha)}: {answer['certainty']} {answer.get('session')}")
            continue
        makers = made_by if isinstance(made_by, list) else [made_by]
        sessions = {maker[0] for maker in makers}
        by_certainty[answer["certainty"]] = by_certainty.get(answer["certainty"], 0) + 1
        # A continued session holds the calls of the one before.
        if named and named[1] in [maker[1] for maker in makers] or (named is None and session in sessions):
            right += 1
        elif answer["certainty"] == "unknown" or answer["certainty"] == "error":
            missing += 1
            notes.append(f"  missing {sha[:8]} {repo.git('log', '-1', '--format=%s', sha)[:60]} {answer.get('said', '')[:80]}")
        else:
            wrong += 1
            notes.append(f"  wrong {sha[:8]}: {answer['certainty']} {named} instead of {makers}")
    total = right + wrong + missing

    # Lines of files as they are today.
    lines = [(path, n + 1, author, text) for path, all_lines in repo.lines.items() if repo.read(path) is not None
             for n, (text, author) in enumerate(all_lines) if text.strip() and (author is None or author in known)]
    rng.shuffle(lines)
    edit_right = session_right = line_wrong = unsaid = of_agents = of_people = people_wrong = 0
    for path, number, author, text in lines[:count]:
        answer = asked(nmem, env, project, f"{path}:{number}")
        edit = ids.get((answer.get("edit") or {}).get("id", ""))
        if author is None:
            of_people += 1
            if edit:
                people_wrong += 1
                notes.append(f"  person's line {path}:{number} {text.strip()[:60]!r} given to {edit}")
            continue
        of_agents += 1
        if edit == author:
            edit_right += 1
            session_right += 1
        elif edit and edit[0] == author[0]:
            session_right += 1
        elif edit:
            line_wrong += 1
            notes.append(f"  line {path}:{number} {text.strip()[:60]!r}: {edit} instead of {author}")
        else:
            unsaid += 1
    print(f"{name}: {len(files)} sessions, {len(alive)} commits, {len(lines)} lines")
    print(f"  commits right {share(right, total)}, wrong {wrong}, not named {missing} {by_certainty}; of people and bots {controls}, named wrongly {controls_wrong}")
    print(f"  lines of agents: session right {share(session_right, of_agents)}, the edit right {share(edit_right, of_agents)}, wrong {share(line_wrong, of_agents)}, not named {share(unsaid, of_agents)}")
    print(f"  lines of people: {of_people}, given to an agent {share(people_wrong, of_people)}")
    if notes and keep:
        print("\n".join(notes[:40]))
        print(f"  kept in {folder}")
    else:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/bench/transcripts/claude-code")
    parser.add_argument("--nmem", default=str(ROOT / "target/release/nmem"))
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--keep", action="store_true", help="keep the scratch repositories, and print what is wrong")
    parser.add_argument("projects", nargs="*")
    args = parser.parse_args()
    args.nmem = str(Path(args.nmem).resolve())
    if not args.data.is_dir():
        sys.exit(f"no sessions in {args.data}: give --data")
    for project in sorted(path for path in args.data.iterdir() if path.is_dir()):
        if args.projects and project.name not in args.projects:
            continue
        files = sorted(project.glob("*.jsonl"))
        if files:
            judge(project.name, files, args.nmem, args.lines, args.keep)


if __name__ == "__main__":
    main()
