"""The pages of the site: python3 tools/reference.py FOLDER    (make site: docs/build.md)

FOLDER gets reference/*.md, one page for each section of the public API, made from the comments of amp.h's parts in src/; the pages of docs/
and of the labs; and the files that they link to, so that every link works from file://. A function without a comment that names its class, and
a name in two sections, are errors: then nothing is written. The example of a function is a statement of a program that the tests run.
"""
import glob
import html
import os
import re
import shutil
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
SECTIONS = [  # file, title
    ("amp/page/status.h", "Status"), ("amp/page/types.h", "Types"), ("amp/page/context.h", "Context"), ("amp/page/formats.h", "Formats"),
    ("amp/page/arrays.h", "Arrays"), ("amp/page/params.h", "Parameters"), ("amp/page/scaler.h", "Loss scaler"), ("amp/page/step.h", "Step"),
    ("amp/page/policy.h", "Autocast"), ("amp/page/products.h", "Products, layers, losses"), ("amp/page/state.h", "State files"),
    ("amp/advanced/levels.h", "Levels O0 to O3"), ("amp/advanced/fp8.h", "FP8"), ("amp/advanced/plan.h", "Memory planning"),
    ("amp/advanced/recompute.h", "Recomputation"), ("amp_cuda/page.cuh", "CUDA"),
]
IN_BROWSER = [  # pages that compute, where they were made: file, its name and what it is
    ("play.html", ("Digits that train on this page", "choose format, masters, loss scale and learning rate.")),
    ("figures.html", ("Six figures for labs 1 to 6", "rounding, sums, autocast, the loss scale, a scaler, masters.")),
]
PROGRAMS = ["examples/*.c", "examples/*.cu", "examples/retrofit*/*.cu", "README.md", "docs/*.md", "tests/test_promises.c"]


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read()


# ---- a section: comments, each with the declarations that follow it ----

def comment_text(comment):
    """The lines between the marks, without the indentation of a comment."""
    lines = comment.strip()[2:-2].rstrip().split("\n")
    return [lines[0].strip()] + [re.sub(r"^ {0,3}", "", x.rstrip()) for x in lines[1:]]


def pieces(text):
    """(comment, declarations) pairs, in order; a banner's comment has no declarations."""
    out, comment = [], None
    parts = re.split(r"(^/\*.*?\*/$)", text, flags=re.M | re.S)
    for i, part in enumerate(parts):
        if i % 2:
            if comment:
                out.append((comment, []))
            comment = comment_text(part)
            continue
        blocks = [x for x in re.split(r"\n\s*\n", part.strip("\n")) if x.strip()]
        if part[:2] != "\n\n" and comment and blocks:  # a comment is for what follows it without an empty line
            out.append((comment, blocks[:1]))
            comment, blocks = None, blocks[1:]
        if comment and blocks:
            out.append((comment, []))
            comment = None
        out += [(None, [x]) for x in blocks]
    return out + ([(comment, [])] if comment else [])


def declarations(code):
    """(kind, name, text) of everything public in a block of code."""
    for m in re.finditer(r"^typedef (struct|enum) (\w+) \{.*?^\} ?(?:AMP_INT )?\w+;|^typedef (struct) (\w+) \{[^\n]*\} \w+;|"
                         r"^typedef struct (amp_\w+) \w+;|^typedef [^;{]*?\(\*(amp_\w+)\)\([^;]*;|^AMP_(?:API|INLINE|HD)[^;{]*?\b(amp_\w+)\([^;{]*[;{]|^#define (AMP_\w+|amp_\w+)[^\n]*(?:\\\n[^\n]*)*",
                         code, re.M | re.S):
        names = [(k, g) for k, g in (("type", m.group(2)), ("type", m.group(4)), ("type", m.group(5)), ("type", m.group(6)), ("function", m.group(7)), ("macro", m.group(8))) if g]
        yield names[0][0], names[0][1], m.group(0)


# ---- Markdown ----

def paragraphs(lines):
    """Comment lines as Markdown; what is indented by more stays as it is."""
    out, text = [], []
    for line in lines + [""]:
        if line.startswith("    ") or line.startswith("  -"):
            out, text = out + ([" ".join(text)] if text else []), []
            out.append("\x00" + line)
        elif line.strip():
            text.append(line.strip())
        elif text:
            out, text = out + [" ".join(text)], []
    return out


class Reference:
    def __init__(self):
        self.where, self.faults, self.uses = {}, [], {}  # name: page
        self.pages = [(path, title, os.path.splitext(path)[0].replace("/", "-") + ".md", pieces(read("src/" + path))) for path, title in SECTIONS]
        for _, title, page, parts in self.pages:
            for _, code in parts:
                for block in code:
                    for _, name, _ in declarations(block):
                        if self.where.setdefault(name, page) != page:
                            self.faults.append(f"{name} is in two sections: {title}")
        self.find_uses()

    def find_uses(self):
        functions = {n for n in self.where if n.startswith("amp_")}
        for pattern in PROGRAMS:
            for path in sorted(glob.glob(os.path.join(TOP, pattern))):
                path = os.path.relpath(path, TOP)
                text = read(path)
                if path.endswith(".md"):
                    text = "\n".join(re.findall(r"^```c(?:pp)? run[^\n]*\n(.*?)^```", text, re.M | re.S))
                for m in re.finditer(r"^[ \t]*[^\n/*#]*?\b(amp_\w+)\([^;{]*?;", text, re.M):
                    name = m.group(1)
                    if name in functions and name not in self.uses and len(m.group(0)) < 400:
                        self.uses[name] = (path, re.sub(r"^" + re.match(r"[ \t]*", m.group(0)).group(0), "", m.group(0), flags=re.M).strip("\n"))

    def linked(self, text, page):
        """Names as code, with links to where they are declared."""
        def one(m):
            name = m.group(0)
            at = self.where.get(name.split(".")[0]) or self.where.get(name.split("->")[0])
            if not at:
                return f"`{name}`"
            return f"[`{name}`]({'' if at == page else at}#{name.split('.')[0].lower()})"
        text = html.escape(text, quote=False).replace("|", "\\|").replace("*", "\\*").replace("_", "_")
        text = re.sub(r"`[^`]*`|\bamp_\w+(?:\.\w+)?|\bAMP_\w+", lambda m: m.group(0) if m.group(0)[0] == "`" else one(m), text)
        return re.sub(r">>(\w[\w-]*)|&gt;&gt;(\w[\w-]*)", lambda m: f"*{m.group(1) or m.group(2)}*", text)

    def comment(self, lines, page):
        out, block = [], []
        for p in paragraphs(lines) + ["end"]:
            if p.startswith("\x00"):
                block.append(p[1:])
                continue
            if block:
                out.append("```text\n" + "\n".join(x[4:] if x.startswith("    ") else x for x in block) + "\n```")
                block = []
            out.append(self.linked(p, page))
        return "\n\n".join(out[:-1])

    def fields(self, name, text, page):
        """A table of a struct's fields or an enum's names, each with its comment."""
        body = text[text.index("{") + 1:text.rindex("}")]
        rows, before = [], ""
        for m in re.finditer(r"/\*(.*?)\*/|([^;" + ("," if "enum" in text[:14] else "") + r"/]*(?:\{[^}]*\})?[" + (",;" if "enum" in text[:14] else ";") + r"]|[A-Z_][\w =<-]*(?=\s*/\*|\s*$))", body, re.S):
            said, item = m.group(1), m.group(2)
            if said is not None:
                said = " ".join(x.strip() for x in said.split("\n")).strip()
                between = body[:m.start()].rsplit("\n", 1)[-1].strip()
                if between and rows:
                    rows[-1][1] = (rows[-1][1] + " " + said).strip()
                else:
                    before = said
            elif item.strip(" ;,\n"):
                rows.append([" ".join(item.strip(" ;,\n").split()), before])
                before = ""
        shown = [r for r in rows if not r[0].endswith((" _begin", " _end"))]
        if not shown:
            return ""
        return f"| {'name' if 'enum' in text[:14] else 'field'} | |\n|---|---|\n" + "".join(f"| `{a}` | {self.linked(b, page)} |\n" for a, b in shown)

    def declared(self, lines, blocks, page):
        """Everything that one comment is for."""
        out, found = [], [d for b in blocks for d in declarations(b)]
        real = lines and re.match(r"(?:const )?\w+ \*?(amp_\w+)\(", " ".join(lines))  # the function that a macro and its _checked stand for
        names = [n for k, n, _ in found if k == "function" and not n.endswith("_checked")]
        headed = names or [n for k, n, _ in found if k != "macro"] or [n for _, n, _ in found]
        if real:
            headed = [real.group(1)]
            whole = "\n".join(lines)
            signature = whole[:whole.index(")") + 1]
            lines = whole[len(signature):].lstrip("\n").split("\n")
            blocks = [signature + ";"] + [t for k, n, t in found if k == "function" and not n.endswith("_checked")]
        for name in headed:
            out.append(f"## {name} {{ #{name.lower()} }}")
        for kind, name, text in found:
            if kind == "function" and not name.endswith("_checked"):
                own = re.search(re.escape(text) + r"[ ]*/\*(.*?)\*/", "\n".join(blocks), re.S)
                said = " ".join(lines or []) + (own.group(1) if own else "")
                if "AMP_API" in text and "Class:" not in said:
                    self.faults.append(f"{name} ({page}): its comment names no class")
        if lines:
            out.append(self.comment(lines, page))
        if blocks:
            out.append("```c\n" + "\n\n".join(b.strip("\n") for b in blocks) + "\n```")
        for kind, name, text in found:
            if kind == "type" and "{" in text and text.count("\n") > 1:
                out.append(self.fields(name, text, page))
        for name in headed:
            if name in self.uses:
                path, statement = self.uses[name]
                out.append(f'Example, from [{path}](../{path}):\n\n```c\n{statement}\n```')
        return "\n\n".join(x for x in out if x)

    def page(self, title, page, parts):
        out = [f"# {title}"]
        for lines, blocks in parts:
            if lines and lines[0].startswith("===="):
                tag = re.search(r">>([\w-]+)", lines[0]).group(1)
                out.append(f"*Section `>>{tag}` of the header.*")
                lines = lines[1:]
                if blocks:
                    out.append(self.comment(lines, page))
                    lines = None
            out.append(self.declared(lines, blocks, page) if blocks else self.comment(lines or [], page))
        return "\n\n".join(x for x in out if x) + "\n"

    def index(self):
        out = ["# Reference", "Made from the comments of the headers. Every name links to its declaration. Words such as verb, desc, context and class are in the "
               "[glossary](../docs/glossary.md).", "| section | functions |", "|---|---|"]
        for _, title, page, _ in self.pages:
            names = sorted(n for n, p in self.where.items() if p == page and n.startswith("amp_") and not n.endswith(("_checked", "_desc", "_s")))
            out.append(f"| [{title}]({page}) | {', '.join(f'[`{n}`]({page}#{n.lower()})' for n in names)} |")
        return "\n\n".join(out[:2]) + "\n\n" + "\n".join(out[2:]) + "\n"


# ---- the site ----

def copy_pages(folder):
    """docs/, the labs and the README, with the files that they link to."""
    pages = {"README.md": "index.md"}
    pages.update({p: p for p in sorted(glob.glob("docs/**/*.md", recursive=True) + glob.glob("examples/**/*.md", recursive=True)) + ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]})

    def copied(path):
        if os.path.isfile(path):
            os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
            shutil.copy(path, os.path.join(folder, path))

    for source, target in pages.items():
        text = read(source)
        for picture in re.findall(r'\b(?:src|srcset)="([^":]+)"', text):  # in tags, with a form for phones
            copied(os.path.normpath(os.path.join(os.path.dirname(source), picture)))

        def moved(m, here=os.path.dirname(source), at=os.path.dirname(target)):
            path, mark = (m.group(2).split("#", 1) + [""])[:2]
            if re.match(r"[a-z]+:|#|$", m.group(2)):
                return m.group(0)
            real = os.path.normpath(os.path.join(here, path))
            real = real + "/README.md" if os.path.isdir(real) and os.path.exists(real + "/README.md") else real
            goal = pages.get(real, real)
            if real not in pages:
                copied(real)
            return f"{m.group(1)}({os.path.relpath(goal, at or '.')}{'#' + mark if mark else ''})"

        os.makedirs(os.path.join(folder, os.path.dirname(target)), exist_ok=True)
        with open(os.path.join(folder, target), "w", encoding="utf-8") as f:
            f.write(re.sub(r"(\[[^\]\n]*(?:\n[^\]\n]*)?\])\(([^)\s]*)\)", moved, re.sub(r"^```(\w+) run[^\n]*", r"```\1", text, flags=re.M)))


def main():
    os.chdir(TOP)
    folder = sys.argv[1]
    reference = Reference()
    made = {page: reference.page(title, page, parts) for _, title, page, parts in reference.pages}
    missing = sorted(n for n in re.findall(r"^AMP_API[^;{(]*?\b(amp_\w+)\(", read("amp.h").split(">>backend ====")[0], re.M) if n not in reference.where)
    reference.faults += [f"{n} of amp.h is on no page" for n in missing]
    if reference.faults:
        raise SystemExit("reference: " + "\nreference: ".join(reference.faults))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "reference"))
    for page, text in list(made.items()) + [("index.md", reference.index())]:
        with open(os.path.join(folder, "reference", page), "w", encoding="utf-8") as f:
            f.write(text)
    copy_pages(folder)
    made = [(name, text) for name, text in IN_BROWSER if os.path.exists(os.path.join("build", name))]
    for name, _ in made:
        shutil.copy(os.path.join("build", name), folder)
    with open(os.path.join(folder, "docs", "lesson.md"), "a", encoding="utf-8") as f:
        f.write("\n## In this browser\n" * bool(made) + "".join("\n[%s](../%s): %s\n" % (text[0], name, text[1]) for name, text in made))
    for path, _ in set(reference.uses.values()):
        if not path.endswith(".md"):
            os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
            shutil.copy(path, os.path.join(folder, path))
    os.makedirs(os.path.join(folder, "assets"), exist_ok=True)
    shutil.copy("tools/site_worker.js", os.path.join(folder, "assets", "worker.js"))
    functions = [n for n in reference.where if n.startswith("amp_") and not n.endswith("_checked")]
    print(f"{len(made)} pages of reference, {len(functions)} names, {len(reference.uses)} examples")


if __name__ == "__main__":
    main()
