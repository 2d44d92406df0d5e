"""The files that a hosting site, an editor and a contributor read: issue forms and workflows have the keys that GitHub's documentation asks
for, a workflow's commands are make's targets or files that are there, CONTRIBUTING.md names only what exists; and the glossary, which has each
word once, and each word that a page prints in italics. Without PyYAML the forms and workflows are counted as skipped. Last line: N passed, N
failed, N skipped."""
import glob
import json
import os
import re
import sys

passed, failed, skipped = 0, 0, 0
FIELDS = {"textarea", "input", "dropdown", "checkboxes", "markdown"}


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAIL", what)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def makefiles():
    return "\n".join(read(p) for p in ["Makefile", *glob.glob("tests/*.mk"), *glob.glob("bench/*.mk"), *glob.glob("tests/hostcuda/*.mk")])


def commands(text, where):
    """Each `make TARGET` and each script of ours is there."""
    rules, parts = makefiles(), re.search(r"^PARTS := ([^#\n]*)", makefiles(), re.M).group(1).split()
    for target in re.findall(r"\bmake ([a-z_][\w./-]*)", text):
        known = re.search(rf"^[^#\t\n]*(?<![\w-]){re.escape(target)}(?![\w-])[^=\n]*:", rules, re.M)
        if target.startswith("part-"):
            known = target[5:] in parts
        elif target.startswith("build/"):
            known = re.search(rf"^\$\(BUILD\)/{re.escape(target[6:])}\b[^=\n]*:", rules, re.M)
        check(known, f"{where}: make {target} is no target")
    for path in re.findall(r"(?<![\w./])((?:tests|tools|src|docs|\.ci)/[\w./-]*\w)", text):
        check(os.path.exists(path), f"{where}: there is no {path}")


def form(path, yaml):
    page = yaml.safe_load(read(path))
    check({"name", "description", "body"} <= set(page), f"{path}: name, description and body are needed")
    names = [item.get("id") for item in page["body"]]
    check(len(names) == len(set(names)), f"{path}: two fields have one id")
    for item in page["body"]:
        check(item["type"] in FIELDS and item["attributes"].get("label"), f"{path}: {item}")


def workflow(path, yaml):
    page = yaml.safe_load(read(path))
    check(True in page or "on" in page, f"{path}: it never runs")  # YAML 1.1 reads "on" as true
    for name, job in page["jobs"].items():
        check(job.get("runs-on") and job.get("timeout-minutes") and job.get("steps"), f"{path}: job {name}")
        for step in job["steps"]:
            check(("run" in step) != ("uses" in step), f"{path}: {name}: a step runs or uses: {step}")
            commands(step.get("run", ""), path)


# Pages in which a single word in italics is one of the glossary's
EXPLAINED = ["README.md", "docs/lesson.md", "docs/semantics.md", "docs/design.md", "docs/guarantees.md"]
# From here a reader finds it
LEADING = [*EXPLAINED, "tools/mkdocs.yml", "tools/reference.py", "examples/digits_story.h", "examples/labs/README.md"]


def glossary():
    """Its words: tables in order, no word twice, none without a meaning."""
    known, tables = [], re.split(r"^## .*", read("docs/glossary.md"), flags=re.M)[1:]
    for table in tables:
        rows = re.findall(r"^\| (?!word |-)(.*?) \| (.*?) \|$", table, re.M)
        check(len(rows) > 20 and all(meaning for _, meaning in rows), "docs/glossary.md: a table with %d words" % len(rows))
        firsts = [word.lower() for word, _ in rows]
        check(firsts == sorted(firsts), f"docs/glossary.md is not in order: {[a for a, b in zip(firsts, sorted(firsts)) if a != b][:1]}")
        known += [w.strip().lower() for word, _ in rows for w in re.sub(r"\(.*?\)", "", word).split(",")]
    check(len(known) == len(set(known)), f"docs/glossary.md: twice: {[w for w in known if known.count(w) > 1]}")
    return set(known)


def words():
    known = glossary()
    for path in EXPLAINED:
        text = re.sub(r"^```.*?^```", "", read(path), flags=re.M | re.S)
        for word in re.findall(r"(?<![*\w])\*([A-Za-z][\w -]*)\*(?![*\w])", text):
            check({word.lower(), word.lower() + " weights", word.lower() + " scale"} & known or word in {"lower", "F32", "widest", "enqueue"}, f"{path}: {word} is not in the glossary")
    for path in LEADING:
        check("glossary.md" in read(path), f"{path} does not lead to the glossary")


words()
commands(read("CONTRIBUTING.md"), "CONTRIBUTING.md")
container = json.loads(read(".devcontainer/devcontainer.json"))
check(os.path.exists(".devcontainer/" + container["build"]["dockerfile"]), "the container has no Dockerfile")
commands(container["postCreateCommand"], "devcontainer.json")
try:
    import yaml as reader

    for each in glob.glob(".github/ISSUE_TEMPLATE/*.yml"):
        form(each, reader)
    for each in glob.glob(".github/workflows/*.yml"):
        workflow(each, reader)
except ImportError:
    skipped += 1
    print("skipped: builds: no PyYAML, so issue forms and workflows were not read")
print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(failed > 0)
