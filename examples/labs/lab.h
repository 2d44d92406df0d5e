/* lab.h - what the labs' checkers share: one sentence as the verdict, also when the student's code crashes or does not
 * end. tools/labs.sh compiles a file that includes the student's file and then the checker, so names that begin with
 * check_ or lab_ are taken. The sentence goes to stdout as "lab N: ..."; "lab N: passed" alone means passed.
 *
 *     LAB_TODO("the rounding")      in the student's file: this part is still to be written
 *     lab_doing("f(%g)", x)         what comes next: a crash in it is told with these words
 *     lab_wrong("...")              the verdict: refused
 *     lab_passed("...")             the verdict: passed
 */
#ifndef LAB_H
#define LAB_H

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "variant.h"

#ifndef LAB_NUMBER
#  define LAB_NUMBER 0
#endif
#ifndef LAB_SECONDS
#  define LAB_SECONDS 8 /* of CPU time; tools/labs.sh sets the limit */
#endif
#ifdef __GNUC__
#  define LAB_FUNCTION(text, first) __attribute__((unused, format(printf, text, first))) static
#else
#  define LAB_FUNCTION(text, first) static
#endif

static char lab_now[200] = "your program"; /* what is being tried */
static char lab_name[16] = "lab";
static int lab_done; /* 1: the verdict was given */

LAB_FUNCTION(1, 2) void lab_doing(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(lab_now, sizeof lab_now, format, list);
    va_end(list);
}

LAB_FUNCTION(2, 0) void lab_verdict(int status, const char *format, va_list list) {
    printf("\nlab %d: ", LAB_NUMBER);
    vprintf(format, list);
    printf("\n");
    lab_done = 1;
    exit(status);
}

LAB_FUNCTION(1, 2) void lab_wrong(const char *format, ...) {
    va_list list;
    va_start(list, format);
    lab_verdict(1, format, list);
    va_end(list);
}

/* The word "passed" goes first, then what was shown. */
LAB_FUNCTION(1, 2) void lab_passed(const char *format, ...) {
    char text[400];
    va_list list;
    snprintf(text, sizeof text, "passed: %s", format);
    va_start(list, format);
    lab_verdict(0, text, list);
    va_end(list);
}

#define LAB_TODO(what) lab_todo(__FILE__, __LINE__, what)
LAB_FUNCTION(3, 0) void lab_todo(const char *file, int line, const char *what) {
    const char *name = strrchr(file, '/');
    lab_wrong("%s:%d: %s is still to be written", name ? name + 1 : file, line, what);
}

/* Only write() may be called here: the program is in an unknown state. */
static void lab_say(const char *text) {
    ssize_t n = write(1, text, strlen(text));
    (void)n;
}

static void lab_signal(int number) {
    lab_say(lab_name);
    lab_say(lab_now);
    if (number == SIGXCPU || number == SIGALRM) {
        lab_say(" does not end: it was stopped; look at the condition of each loop\n");
    } else if (number == SIGFPE) {
        lab_say(" crashes: an integer is divided by 0\n");
    } else if (number == SIGABRT) {
        lab_say(" crashes: it calls abort, or an assert in it fails\n");
    } else {
        lab_say(" crashes: it uses memory that is not its own; look at each index, and where a recursion ends\n");
    }
    _exit(1);
}

/* A program that calls exit itself has not been checked. */
static void lab_exit(void) {
    if (lab_done) return;
    fflush(stdout);
    lab_say(lab_name);
    lab_say(lab_now);
    lab_say(" calls exit, so nothing after it was checked\n");
    _exit(1);
}

/* First in main. Signals have a stack of their own, because a recursion without end uses up the ordinary one. The host
   runtime of CUDA has handlers of its own for memory, which know more. */
__attribute__((unused)) static void lab_begin(void) {
    static char stack[65536];
    static const int numbers[] = {SIGXCPU, SIGALRM, SIGFPE, SIGABRT, SIGSEGV, SIGBUS, SIGILL};
    size_t i, n = sizeof numbers / sizeof *numbers;
    stack_t place;
    struct sigaction action;
    memset(&place, 0, sizeof place);
    memset(&action, 0, sizeof action);
    place.ss_sp = stack;
    place.ss_size = sizeof stack;
    sigaltstack(&place, NULL);
    action.sa_handler = lab_signal;
    action.sa_flags = SA_ONSTACK;
#if defined(__CUDACC__) || defined(AMP_HOSTCUDA)
    n = 2;
#endif
    for (i = 0; i < n; i++)
        sigaction(numbers[i], &action, NULL);
    snprintf(lab_name, sizeof lab_name, "\nlab %d: ", LAB_NUMBER);
    atexit(lab_exit);
    alarm(10 * LAB_SECONDS); /* for a program that waits: it uses no CPU time */
}

#endif
