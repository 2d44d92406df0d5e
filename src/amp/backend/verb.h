/* ---- verbs: how one fails, what it logs, and the body that takes it through the door (>>front-door).
   tests: tests/test_context.c, tests/test_threads.c, tests/called.h ---- */

/* Records and logs a failure, and returns its status: return amp_fail(ctx, AMP_ERR_CUDA, "%s failed", call). The name
   of the verb that runs goes in front, here and in the log. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((__format__(__printf__, 3, 4)))
#endif
AMP_API amp_status amp_fail(amp_ctx *ctx, amp_status status, const char *format, ...);
/* A log line that does not report a failure. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((__format__(__printf__, 3, 4)))
#endif
AMP_API void amp_log_event(const amp_ctx *ctx, amp_log_level level, const char *format, ...);
/* The body of a verb, and of a public function of a backend's own that works on a context: `call` has the context for
   itself, runs in the default floating-point environment, and its sentences begin with the name, a literal. */
#define AMPI_BUSY \
    ": a different thread is inside a call of this context, or a call never returned (an exception or longjmp left " \
    "it: only destroying is left). A context serves one thread at a time: make one for each thread (on the CPU with " \
    "amp_cpu_desc.threads = 1), or one call after the other"
#define AMP_VERB(ctx, name, call) \
    do { \
        amp_ctx *in_ = (ctx); \
        amp_status st_ = amp_verb_begin(in_, name AMPI_BUSY); \
        return st_ == AMP_OK ? amp_verb_end(in_, call) : st_; \
    } while (0)
AMP_API amp_status amp_verb_begin(amp_ctx *ctx, const char *verb); /* the name, a colon, what a second thread is told */
AMP_API amp_status amp_verb_end(amp_ctx *ctx, amp_status status);

#define AMPI_TRY(call) \
    do { \
        amp_status try_ = (call); \
        if (try_ != AMP_OK) return try_; \
    } while (0)

