/* facts.h - lines "KEY<tab>JSON" for tests/check_gpu.sh, which makes check-gpu.json of them: KEY[] is an entry of a
   list. For bench/check_gpu.cu. A line is written whole, so that a program that is stopped spoils none. C99 and C++;
   after amp.h. */
#ifndef FACTS_H
#define FACTS_H
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static FILE *facts; /* NULL: nobody wants them */

AMP_UNUSED
static void fact(const char *key, const char *format, ...) {
    va_list list;
    if (!facts) return;
    va_start(list, format);
    fprintf(facts, "%s\t", key);
    vfprintf(facts, format, list);
    fputs("\n", facts);
    fflush(facts);
    va_end(list);
}
/* A text as JSON has it; what does not fit is left out. */
AMP_UNUSED
static const char *fact_text(char *to, size_t bytes, const char *text) {
    size_t n = 0;
    to[n++] = '"';
    for (; *text && n + 8 < bytes; text++) {
        if (*text == '"' || *text == '\\') to[n++] = '\\';
        to[n++] = *text;
        if ((unsigned char)*text < 32) to[n - 1] = ' ';
    }
    to[n++] = '"';
    to[n] = 0;
    return to;
}
/* A number; null if it was not measured, which is said by 0, or is none. */
AMP_UNUSED
static const char *fact_number(char to[32], double x) {
    snprintf(to, 32, "%.6g", x);
    return x > 0 && x < 1e30 ? to : "null";
}
#endif
