#!/usr/bin/env python3
"""Does `nmem check` find what has rotted, and only that?

Draws claims from a repository as it was some months ago (paths, functions in files, settings with a value, versions of
dependencies), remembers each as
a memory of that time, and compares the alerts of `nmem check` with git. Beside it: an alert for each memory whose file has
another content now, as a comparison of hashes gives it.

    benches/why/rot.py REPOSITORY [--nmem PROGRAM] [--months N] [--claims N] [--seed N]
"""
import argparse, json, os, random, re, shutil, subprocess, sys, tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FUNCTION = re.compile(r"^\s*(?:pub |async |export |static |private |public )*(?:func|fn|function|def)\s+(?:\([^)]*\)\s*)?([A-Za-z_]\w{4,})", re.M)
SETTING = re.compile(r"^\s*\"?([A-Za-z_][\w-]{3,})\"?\s*[:=]\s*\"?([\w./@-]{1,40})\"?,?\s*$", re.M)

MANIFESTS = {"Cargo.toml": re.compile(r'^([\w-]+) = (?:\{ version = )?"([\d.]+)"', re.M), "go.mod": re.compile(r"^\t(\S+) v([\d.]+)", re.M),
             "package.json": re.compile(r'^ +"([@\w/.-]+)": "[~^]?([\d.]+)"', re.M), "requirements.txt": re.compile(r"^([\w-]+)==([\d.]+)", re.M)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--nmem", default=str(ROOT / "target/release/nmem"))
    parser.add_argument("--months", type=int, default=12)
    parser.add_argument("--claims", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    nmem = str(Path(args.nmem).resolve())
    work = Path(tempfile.mkdtemp(prefix="nmem-rot-"))
    repo = work / "repo"
    subprocess.run(["git", "clone", "-q", "--no-checkout", str(args.repository), str(repo)], check=True)
    git = lambda *a: subprocess.run(["git", "-C", str(repo), *a], capture_output=True, text=True, errors="replace").stdout
    subprocess.run(["git", "-C", str(repo), "checkout", "-qf", "HEAD", "--", "."], capture_output=True)
    now = int(git("log", "-1", "--format=%ct"))
    then = git("rev-list", "-1", "--first-parent", f"--before={now - args.months * 2_629_800}", "HEAD").strip()
    if not then:
        sys.exit("the history is too short: give --months")
    at = int(git("log", "-1", "--format=%ct", then))
    paths = [p for p in git("ls-tree", "-r", "--name-only", then).splitlines() if re.search(r"\.(go|rs|ts|tsx|js|py|toml|yaml|yml|json)$", p) and " " not in p]
    rng.shuffle(paths)
    names, settings = [], []
    for path in paths:
        text = git("show", f"{then}:{path}")
        if not text or len(text) > 300_000:
            continue
        found = sorted(set(FUNCTION.findall(text)))
        # A plain word is no name for nmem: `parse`, `render`.
        found = [n for n in found if "_" in n or re.search(r"[a-z][A-Z]", n)]
        names += [(path, n) for n in rng.sample(found, min(2, len(found)))]
        if re.search(r"\.(toml|ya?ml|json)$", path):
            found = sorted(set(SETTING.findall(text)))
            settings += [(path, k, v) for k, v in rng.sample(found, min(2, len(found)))]
        if len(names) >= args.claims and len(settings) >= args.claims // 3:
            break
    versions = []
    for path in git("ls-tree", "-r", "--name-only", then).splitlines():
        if path.split("/")[-1] in MANIFESTS:
            for name, version in sorted(set(MANIFESTS[path.split("/")[-1]].findall(git("show", f"{then}:{path}")))):
                versions.append((path, name, version))
    # The newest manifest decides: one name in two of them has two truths.
    names_of = [name for _, name, _ in versions]
    versions = [one for one in versions if names_of.count(one[1]) == 1 and "." in one[2]]
    rng.shuffle(versions)
    third = args.claims // 3
    claims = [("path", p) for p in paths[:third]] + [("name", *n) for n in names[:third]] + [("setting", *s) for s in settings[:third]]
    claims += [("version", *v) for v in versions[:third]]
    env = {"PATH": os.environ["PATH"], "HOME": str(work / "home"), "NMEM_NOW": str(at * 1000), "NO_COLOR": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    (work / "home").mkdir()
    by_title = {}
    for kind, path, *rest in claims:
        text = {"path": f"The code is in `{path}`", "name": f"`{rest[0] if rest else ''}` is in `{path}`",
                "setting": f"`{rest[0]} = {rest[-1]}` is set in `{path}`" if len(rest) == 2 else "",
                "version": f"It is built with {rest[0] if rest else ''} {rest[-1] if rest else ''}"}[kind]
        if text in by_title:
            continue
        by_title[text] = (kind, path, *rest)
        done = subprocess.run([nmem, "remember", text, "--kind", "lesson"], cwd=repo, env=env, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
    answer = json.loads(subprocess.run([nmem, "check", "--json"], cwd=repo, env=env, capture_output=True, text=True).stdout)
    alerts = {m["title"]: m["claims"] for m in answer["rotten"]}

    def is_rotten(claim):
        """The truth, by git alone."""
        kind, path, *rest = claim
        text = git("show", f"HEAD:{path}")
        exists = bool(git("ls-tree", "HEAD", "--", path).strip())
        if kind == "path" or not exists:
            return not exists
        if kind == "version":
            return (rest[0], rest[1]) not in set(MANIFESTS[path.split("/")[-1]].findall(text))
        if kind == "name":
            return not re.search(rf"(?<!\w){re.escape(rest[0])}(?!\w)", text)
        return (rest[0], rest[1]) not in set(SETTING.findall(text)) and not re.search(rf"[\s\"']{re.escape(rest[0])}[\"']?\s*[:=]\s*[\"']?{re.escape(rest[1])}[\"',\s]", f"\n{text}\n")

    total = {}
    for title, claim in by_title.items():
        row = total.setdefault(claim[0], dict(claims=0, rotten=0, alerts=0, right=0, hash_alerts=0))
        rotten, alerted = is_rotten(claim), title in alerts
        changed = git("rev-parse", "-q", "--verify", f"{then}:{claim[1]}") != git("rev-parse", "-q", "--verify", f"HEAD:{claim[1]}")
        row["claims"] += 1
        row["rotten"] += rotten
        row["alerts"] += alerted
        row["right"] += rotten and alerted
        row["hash_alerts"] += changed
        if alerted != rotten:
            print("  differs:", title, "| git:", "rotten" if rotten else "holds", "| nmem:", alerts.get(title))
    print(f"{args.repository.parent.name}: {args.months} months, {answer['claims']} claims of {answer['memories']} memories checked")
    for kind, row in [*total.items(), ("all", {k: sum(r[k] for r in total.values()) for k in next(iter(total.values()))})]:
        precision = row["right"] / row["alerts"] if row["alerts"] else 1
        recall = row["right"] / row["rotten"] if row["rotten"] else 1
        per = lambda n: f"{n / row['rotten']:.2f}" if row["rotten"] else "-"
        print(f"  {kind}: {row['claims']} claims, {row['rotten']} rotten; alerts {row['alerts']}, precision {precision:.3f}, found {recall:.3f}; alerts per catch {row['alerts'] / max(row['right'], 1):.2f}; by hash {row['hash_alerts']} alerts, {per(row['hash_alerts'])} per catch")
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
