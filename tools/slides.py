"""docs/teaching/slides.md as one HTML file: python3 tools/slides.py SLIDES.md > slides.html

Slides are separated by a line "---". A slide has a heading, text, lists, a table or a picture, and after "note: " what the speaker says.
Pictures become part of the file. Keys: arrows, space, Home, End; n shows the notes; printing gives a page for each slide, with its notes.
"""
import html
import os
import re
import sys

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>%(title)s</title>
<style>
:root { color-scheme: light dark; --back: #fff; --text: #1b1b1b; --dim: #666; --line: #c8c8c8 }
@media (prefers-color-scheme: dark) { :root { --back: #16181b; --text: #ececec; --dim: #a5a5a5; --line: #444 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--back); color: var(--text); font: 1.6rem/1.4 system-ui, sans-serif }
section { display: none; min-height: 100vh; padding: 4vh 7vw 12vh }
section.shown { display: block }
h1 { font-size: 2.4rem; line-height: 1.2; margin: 0 0 1.2rem }
li { margin: .5rem 0 }
figure { margin: 0 auto; max-width: 75rem; overflow-x: auto; background: #fff; border-radius: .4rem; padding: .5rem }
figure svg { display: block; width: 100%%; height: auto; max-height: 72vh }
table { border-collapse: collapse } th, td { text-align: left; padding: .3rem 1.4rem .3rem 0; border-bottom: 1px solid var(--line) }
aside { display: none; margin-top: 2rem; padding-top: 1rem; border-top: 1px solid var(--line); font-size: 1.1rem; color: var(--dim) }
.notes aside { display: block }
footer { position: fixed; right: 1rem; bottom: .7rem; font-size: .9rem; color: var(--dim) }
footer button { font: inherit; padding: .3rem .9rem }
@media (max-width: 40rem) { body { font-size: 1.1rem } h1 { font-size: 1.6rem } section { padding: 1.2rem 1rem 4rem } }
@media print { section { display: block; page-break-after: always; min-height: 0 } aside { display: block } footer { display: none } }
</style>
<body>
%(slides)s
<footer><button id="back" aria-label="previous slide">&larr;</button> <span id="at"></span>
<button id="next" aria-label="next slide">&rarr;</button> <button id="notes">notes (n)</button></footer>
<script>
"use strict";
const slides = [...document.querySelectorAll("section")];
let at = 0;
function show(n) {
    at = Math.max(0, Math.min(slides.length - 1, n));
    slides.forEach((s, i) => s.classList.toggle("shown", i === at));
    document.getElementById("at").textContent = (at + 1) + " / " + slides.length;
    history.replaceState(null, "", "#" + (at + 1));
}
const notes = () => document.body.classList.toggle("notes");
document.addEventListener("keydown", e => {
    if (["ArrowRight", "PageDown", " "].includes(e.key)) show(at + 1);
    else if (["ArrowLeft", "PageUp"].includes(e.key)) show(at - 1);
    else if (e.key === "Home") show(0);
    else if (e.key === "End") show(slides.length - 1);
    else if (e.key === "n") notes();
    else return;
    e.preventDefault();
});
document.getElementById("back").onclick = () => show(at - 1);
document.getElementById("next").onclick = () => show(at + 1);
document.getElementById("notes").onclick = notes;
show(parseInt(location.hash.slice(1) || "1", 10) - 1);
</script>
"""


def inline(text):
    text = html.escape(text, quote=False)
    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", text)
    text = re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)
    return re.sub(r"\^(\([^)]*\)|-?\w+)", lambda m: f"<sup>{m.group(1).strip('()')}</sup>", text)


def picture(folder, line, number):
    """The SVG itself; its ids get the slide's number, as several pictures stand in one page."""
    words, path = re.fullmatch(r"!\[(.*)\]\((.*)\)", line).groups()
    with open(os.path.join(folder, path), encoding="utf-8") as f:
        svg = re.sub(r"^.*?(?=<svg)|<style>.*?</style>\n", "", f.read(), flags=re.S)  # slides are light
    for name in set(re.findall(r'\bid="([^"]+)"', svg)):
        svg = re.sub(rf'\bid="{re.escape(name)}"', f'id="s{number}-{name}"', svg)
        svg = re.sub(rf"#{re.escape(name)}(?![\w-])", f"#s{number}-{name}", svg)
    return f'<figure role="img" aria-label="{html.escape(words)}">{svg}</figure>'


def block(folder, lines, number):
    """The HTML of lines of one kind."""
    first = lines[0]
    if first.startswith("# "):
        return "".join(f"<h1>{inline(x[2:])}</h1>" for x in lines)
    if first.startswith("!["):
        return "".join(picture(folder, x, number) for x in lines)
    if first.startswith("- "):
        return "<ul>" + "".join(f"<li>{inline(x[2:])}</li>" for x in lines) + "</ul>"
    if re.match(r"\d+\. ", first):
        return "<ol>" + "".join(f"<li>{inline(x.split('. ', 1)[1])}</li>" for x in lines) + "</ol>"
    if first.startswith("|"):
        rows = [[c.strip() for c in x.strip("|").split("|")] for x in lines if not re.fullmatch(r"[|\s-]+", x)]
        cells = ["".join(f"<{'td' if i else 'th'}>{inline(c)}</{'td' if i else 'th'}>" for c in row) for i, row in enumerate(rows)]
        return "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"
    if first.startswith("note: "):
        return f"<aside>{inline(' '.join(lines)[6:])}</aside>"
    return f"<p>{inline(' '.join(lines))}</p>"


def kind(line):
    for mark in ("# ", "![", "- ", "|", "note: "):
        if line.startswith(mark):
            return mark
    return "1." if re.match(r"\d+\. ", line) else "text"


def slide(folder, text, number):
    blocks, before = [], None
    for line in text.strip().split("\n"):
        if line.strip() and kind(line) == before:
            blocks[-1].append(line)
        elif line.strip():
            blocks.append([line])
        before = kind(line) if line.strip() else None
    if not any(b[0].startswith("note: ") for b in blocks) or not blocks[0][0].startswith("# "):
        raise SystemExit(f"slides: slide {number} has no heading or no note")
    return f"<section>{''.join(block(folder, b, number) for b in blocks)}</section>"


def main():
    path = sys.argv[1]
    with open(path, encoding="utf-8") as f:
        parts = re.split(r"^---$", f.read(), flags=re.M)
    slides = "\n".join(slide(os.path.dirname(path), text, i + 1) for i, text in enumerate(parts))
    print(PAGE % {"title": html.escape(parts[0].strip().split("\n")[0][2:]), "slides": slides})


if __name__ == "__main__":
    main()
