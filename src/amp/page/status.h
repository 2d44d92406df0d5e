/* ==== >>status =================================================================================================== */

/* clang-format off */
#define AMP_STATUS_LIST(X) \
    X(AMP_OK,                0, "success") \
    X(AMP_ERR_INVALID_ARG,  -1, "an argument is outside its documented range") \
    X(AMP_ERR_UNINIT,       -2, "a desc struct was not zero-initialised (its first or last member is not 0)") \
    X(AMP_ERR_VERSION,      -3, "header and implementation differ in version or struct size") \
    X(AMP_ERR_NO_MEMORY,    -4, "the allocator returned NULL") \
    X(AMP_ERR_NO_CUDA,      -5, "built without CUDA, or no CUDA device") \
    X(AMP_ERR_CUDA,         -6, "a CUDA or cuBLAS call failed; the context can still be used") \
    X(AMP_ERR_DEAD,         -7, "the device is in a sticky error state; only destroying the context is left") \
    X(AMP_ERR_UNSUPPORTED,  -8, "this combination is not available on this context") \
    X(AMP_ERR_STAGE,        -9, "called in the wrong order") \
    X(AMP_ERR_CAPTURE,     -10, "this call synchronises and the stream is being captured") \
    X(AMP_ERR_IO,          -11, "a file could not be read or written") \
    X(AMP_ERR_FORMAT,      -12, "not a state of this kind, or truncated, altered, or made for other parameters") \
    X(AMP_ERR_BUSY,        -13, "a different thread is inside this context, or a call never returned")
/* clang-format on */

typedef enum amp_status {
#define AMP_X(name, value, text) name = value,
    AMP_STATUS_LIST(AMP_X)
#undef AMP_X
        AMP_STATUS_FORCE_INT = 0x7fffffff
} AMP_INT amp_status;

/* One sentence per status, never NULL, also for unknown numbers. Class: host. Threads: safe. */
AMP_API const char *amp_strerror(amp_status status);
/* AMP_VERSION of the compiled implementation. Every *_create compares version and desc size with the header's, and
   returns AMP_ERR_VERSION; the other verbs do not check. Class: host. Threads: safe. */
AMP_API int amp_version(void);

