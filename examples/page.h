/* page.h - a page of HTML that explains a run: facts, sentences that quote them, pictures inside of it. One file that
   needs no other. Every number of the text is a fact, shown once in a table cell with an id; a sentence names it as
   {id} and gets a link to that cell. The looks and the parts that move stand in page_text.h. */
#ifndef PAGE_H
#define PAGE_H

#include "program.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_FACTS = 256, PAGE_WORD = 64 };
typedef struct page {
    FILE *f;
    int n;
    struct page_fact {
        char id[PAGE_WORD], text[PAGE_WORD];
        const char *what; /* NULL: the fact is a cell of a table; else a row of the last one */
    } fact[PAGE_FACTS];
} page;

/* A fact: id, what it is (or NULL), the text as HTML. */
static void page_fact(page *p, const char *id, const char *what, const char *format, ...) {
    struct page_fact *fact = &p->fact[p->n];
    va_list args;
    if (p->n == PAGE_FACTS) fail("the page has more than %d facts", PAGE_FACTS);
    p->n++;
    snprintf(fact->id, PAGE_WORD, "%s", id);
    fact->what = what;
    va_start(args, format);
    vsnprintf(fact->text, PAGE_WORD, format, args);
    va_end(args);
}

static const char *page_text_of(const page *p, const char *id, size_t length) {
    int i;
    for (i = 0; i < p->n; i++)
        if (strlen(p->fact[i].id) == length && !strncmp(p->fact[i].id, id, length)) return p->fact[i].text;
    fail("the page has no fact '%.*s'", (int)length, id);
    return "";
}

/* Writes HTML in which {id} is a fact. */
static void page_say(const page *p, const char *html) {
    const char *end;
    for (; *html; html = end) {
        end = html + strcspn(html, "{");
        fwrite(html, 1, (size_t)(end - html), p->f);
        if (*end != '{') continue;
        html = end + 1;
        end = html + strcspn(html, "}");
        fprintf(p->f, "<a class=\"n\" href=\"#%.*s\">%s</a>", (int)(end - html), html,
            page_text_of(p, html, (size_t)(end - html)));
        end++;
    }
}

/* What a run shows, and what is said where it does not. */
static void page_say_if(const page *p, int holds, const char *yes, const char *no) { page_say(p, holds ? yes : no); }

static void page_escaped(const page *p, const char *text) {
    for (; *text; text++) {
        const char *as = *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : NULL;
        if (as)
            fputs(as, p->f);
        else
            putc(*text, p->f);
    }
}

static void page_cell(const page *p, const char *id) { /* where the fact stands */
    fprintf(p->f, "<td class=\"n\" id=\"%s\">%s</td>", id, page_text_of(p, id, strlen(id)));
}

static void page_begin_section(const page *p, const char *id, const char *heading) {
    fprintf(p->f, "\n<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">%s</h2>\n", id, id, heading);
}
static void page_end_section(const page *p) { fputs("</section>\n", p->f); }

/* A table that is wider than a phone scrolls by itself. A head that begins with < is of a column of text. */
static void page_begin_table(const page *p, const char *caption, const char *const *heads, int n) {
    int i;
    fprintf(p->f, "<div class=\"scroll\"><table>\n<caption>%s</caption>\n<thead><tr>", caption);
    for (i = 0; i < n; i++)
        fprintf(p->f, "<th scope=\"col\"%s>%s</th>", *heads[i] == '<' ? " class=\"text\"" : "",
            heads[i] + (*heads[i] == '<'));
    fputs("</tr></thead>\n<tbody>\n", p->f);
}
static void page_end_table(const page *p) { fputs("</tbody></table></div>\n", p->f); }

/* ---- pictures: files of plot.h, taken in ------------------------------------------------------------------------ */

static char *page_read(const char *path) {
    FILE *f = fopen(path, "rb");
    char *text;
    long size = 0;
    if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET)) fail("%s: cannot be read", path);
    text = (char *)allocate((size_t)size + 1, 1);
    if (fread(text, 1, (size_t)size, f) != (size_t)size) fail("%s: cannot be read", path);
    fclose(f);
    return text;
}

/* The words above the drawing go to its caption, which a phone can wrap; the drawing stays. */
typedef struct page_words {
    char title[300], finding[300], about[600];
    double top; /* where the drawing begins */
} page_words;

/* 1 if the line is a word of the given class; then it is added to `to`. */
static int page_take_word(const char *line, size_t length, const char *name, char *to, size_t room) {
    const char *mark = strstr(line, name), *from;
    size_t have = strlen(to);
    if (!mark || mark > line + length) return 0;
    from = strchr(mark, '>') + 1;
    snprintf(to + have, room - have, "%s%.*s", have ? " " : "", (int)(line + length - strlen("</text>") - from), from);
    return 1;
}
static int page_take_words(page_words *w, const char *line, size_t length) {
    if (page_take_word(line, length, " class=\"title\"", w->title, sizeof w->title)) return 1;
    if (page_take_word(line, length, " class=\"about\"", w->about, sizeof w->about)) return 1;
    if (!page_take_word(line, length, " class=\"finding\"", w->finding, sizeof w->finding)) return 0;
    w->top = strtod(strstr(line, " y=\"") + 4, NULL) + 8;
    return 1;
}

/* One form of a picture. Its own first lines: <svg ...> on two, <title>, <style>, and the sheet. */
static page_words page_drawing(const page *p, const char *path, const char *insert) {
    char *name = (char *)allocate(strlen(path) + strlen(insert) + 1, 1), *svg, *line, *end;
    double width = 0, height = 0;
    page_words w, again;
    memset(&w, 0, sizeof w);
    memset(&again, 0, sizeof again);
    sprintf(name, "%.*s%s.svg", (int)(strlen(path) - strlen(".svg")), path, insert);
    svg = page_read(name);
    line = strstr(svg, "<rect ");
    if (!line ||
        sscanf(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%lf\" height=\"%lf\"", &width, &height) != 2)
        fail("%s: not a picture of plot.h", name);
    for (end = line; *end; end += *end == '\n') {
        char *from = end;
        end += strcspn(end, "\n");
        (void)page_take_words(&w, from, (size_t)(end - from));
    }
    fprintf(p->f, "<svg class=\"%s\" viewBox=\"0 %.0f %.0f %.0f\" role=\"img\" ", *insert ? "phone" : "wide", w.top,
        width, height - w.top);
    fprintf(p->f, "aria-label=\"%s. %s\" font-size=\"13\" fill=\"#222222\">\n", w.title, w.finding);
    for (line += strcspn(line, "\n") + 1; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        if (!page_take_words(&again, line, (size_t)(end - line))) fprintf(p->f, "%.*s\n", (int)(end - line), line);
    }
    free(svg);
    free(name);
    return w;
}

static void page_picture(const page *p, const char *id, const char *path) {
    page_words w;
    fprintf(p->f, "<figure id=\"%s\">\n<div class=\"picture\">", id);
    (void)page_drawing(p, path, "_phone");
    w = page_drawing(p, path, "");
    fputs("</div>\n", p->f);
    fprintf(p->f, "<figcaption><b>%s</b> %s</figcaption>\n</figure>\n", w.finding, w.about);
}

#endif
