"""site.py BROWSER FOLDER    What `make site` promises, in a real browser, from file://: nothing on the console, nothing from another host (the
build looks), no sideways scroll at 360 pixels, light and dark, and a search that finds functions. Last line: N passed, N failed, N skipped."""
import os
import sys
import tempfile
import time

from page import Browser, check, counts

PAGES = ["index.html", "reference/index.html", "reference/amp-page-step.html", "reference/amp-page-products.html", "docs/lesson.html", "docs/recipes.html"]
SEARCH = """(() => { const q = document.querySelector('[data-md-component=search-query]'); q.focus(); q.value = '%s';
    for (const kind of ['keyup', 'input']) q.dispatchEvent(new Event(kind, {bubbles: true})); })()"""
FOUND = "[...document.querySelectorAll('.md-search-result__item')].map(x => x.textContent).join(' ')"


def main():
    program, folder = sys.argv[1:]
    site = "file://" + os.path.abspath(folder) + "/"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        b = Browser(program, home)
        for path in PAGES:
            for width, dark in ((1280, False), (360, True)):
                b.open(site + path, width, dark)
                check(b.value("document.documentElement.scrollWidth") <= width, f"{path} is wider than {width} pixels")
                check(not b.complaints(), f"{path}: the console says {b.complaints()}")
        b.open(site + "docs/faq.html", 1280)
        for word in ("amp_scaler_create", "swamping"):
            found = ""
            for _ in range(60):
                b.value(SEARCH % word)
                time.sleep(0.5)
                found = b.value(FOUND)
                if word in found:
                    break
            check(word in found, f"the search does not find {word}: {found[:200]}")
        check(not b.complaints(), f"search: the console says {b.complaints()}")
        b.end()
    print(f"{counts[True]} passed, {counts[False]} failed, 0 skipped")
    return counts[False] > 0


if __name__ == "__main__":
    sys.exit(main())
