#!/usr/bin/env python3
"""Does `nmem why COMMIT` name the session that another recorder named?

Entire (github.com/entireio/cli) keeps sessions on the branch `entire/checkpoints/v1`, and a commit names its checkpoint in a
trailer `Entire-Checkpoint`. This imports the sessions of that branch into an empty home, as if they had run in a clone of the
repository, and asks for every commit with a trailer, and for as many of bots. A trailer names every session that was at work
when somebody committed; an answer is right if it names one of them.

    benches/why/trailers.py REPOSITORY [--nmem PROGRAM] [--since DATE] [--controls N]
"""
import argparse, json, os, random, re, shutil, subprocess, sys, tempfile
from pathlib import Path

from replay import moved, root_of

ROOT = Path(__file__).resolve().parent.parent.parent
BRANCH = "entire/checkpoints/v1"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--nmem", default=str(ROOT / "target/release/nmem"))
    parser.add_argument("--since", default="2026-03-01")
    parser.add_argument("--controls", type=int, default=100)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    nmem, work = str(Path(args.nmem).resolve()), Path(tempfile.mkdtemp(prefix="nmem-trailers-"))
    repo, home = work / "repo", work / "home"
    subprocess.run(["git", "clone", "-q", "--no-checkout", str(args.repository.resolve()), str(repo)], check=True)
    git = lambda *a, at=args.repository: subprocess.run(["git", "-C", str(at), *a], capture_output=True, text=True, errors="replace").stdout
    # The branches of the original are remote ones of the clone.
    trailers, bots, people = {}, [], []
    for line in git("log", "--all", "--no-merges", f"--since={args.since}", "--format=%H%x09%an%x09%(trailers:key=Entire-Checkpoint,valueonly,separator=%x2C)").splitlines():
        sha, author, found = line.split("\t")
        if re.search(r"bot\b|\[bot\]|renovate|dependabot|github-actions", author, re.I):
            bots.append(sha)
        elif found:
            trailers[sha] = found.split(",")
        else:
            people.append(sha)
    of_checkpoint, transcripts = {}, {}
    names = git("ls-tree", "-r", "-l", BRANCH).splitlines()
    for line in names:
        left, path = line.split("\t")
        found = re.match(r"(..)/([0-9a-f]+)/\d+/(metadata\.json|full\.jsonl(?:\.\d+)?)$", path)
        if not found:
            continue
        if found[3] == "metadata.json":
            session = json.loads(git("show", f"{BRANCH}:{path}")).get("session_id")
            of_checkpoint.setdefault(found[1] + found[2], set()).add(session)
            transcripts.setdefault(session, []).append(path.replace("metadata.json", "full.jsonl"))
    # A partial clone lacks some.
    size = lambda left: int(left.split()[-1]) if left.split()[-1].isdigit() else -1
    sizes = {line.split("\t")[1]: size(line.split("\t")[0]) for line in names}
    folder = home / ".claude/projects/replayed"
    folder.mkdir(parents=True)
    kept = 0
    for session, paths in transcripts.items():
        # The largest of a session holds the others.
        path = max(paths, key=lambda one: sizes.get(one, 0))
        text = git("show", f"{BRANCH}:{path}")
        records = []
        for line in text.splitlines():
            try:
                records.append(json.loads(line))
            except ValueError:
                pass
        records = [record for record in records if isinstance(record, dict)]
        cwd = root_of(records) if any("sessionId" in record for record in records) else None
        if cwd and session:
            (folder / f"{session}.jsonl").write_text("".join(json.dumps(moved(record, cwd, repo)) + "\n" for record in records))
            kept += 1
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "NO_COLOR": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run([nmem, "import", "--agent", "claude-code"], env=env, cwd=repo, capture_output=True, text=True)
    print(done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr)

    def asked(sha):
        said = subprocess.run([nmem, "why", sha, "--json"], env=env, cwd=repo, capture_output=True, text=True)
        answer = json.loads(said.stdout) if said.stdout.strip() else {"certainty": "unknown"}
        return answer.get("certainty"), (answer.get("session") or {}) if not isinstance(answer.get("session"), str) else answer["session"]

    known = {file.stem for file in folder.glob("*.jsonl")}
    rng = random.Random(1)
    counts, wrong = {}, []
    for sha, checkpoints in trailers.items():
        truth = set().union(*(of_checkpoint.get(one.strip(), set()) for one in checkpoints)) & known
        if not truth:
            counts["session not to be had"] = counts.get("session not to be had", 0) + 1
            continue
        certainty, session = asked(sha)
        session = session if isinstance(session, str) else session.get("id") or session.get("session")
        kind = "unknown" if certainty == "unknown" else ("right" if session in truth else "wrong") + f", by {certainty}"
        counts[kind] = counts.get(kind, 0) + 1
        if kind == "unknown" and args.keep:
            print("  unknown:", sha[:10], sorted(truth), git("log", "-1", "--format=%an %ci %s", sha).strip())
        if kind.startswith("wrong"):
            wrong.append((sha[:10], certainty, session, sorted(truth), git("log", "-1", "--format=%s", sha).strip()))
    print(f"{args.repository.parent.name}: {kept} sessions; {len(trailers)} commits with a trailer:", counts)
    for one in wrong[:12]:
        print("  wrong:", *one)
    for name, commits in (("bots", bots), ("people without a trailer", people)):
        drawn = rng.sample(commits, min(args.controls, len(commits)))
        named = [sha for sha in drawn if asked(sha)[0] not in ("unknown", None)]
        print(f"  commits of {name}: {len(named)} of {len(drawn)} named", [sha[:10] for sha in named[:8]])
    if args.keep:
        print(work)
    else:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
