/* ==== >>state ====================================================================================================
   Everything a run needs to continue, in one file: little-endian tagged sections, and an XXH64 checksum of all of them.
   Parameters are matched by name, count and dtype. A file written on one context can be read on any other, by any
   amp with this file format. Save writes a separate file beside `path` ("PATH.16 digits.tmp"), flushes it to disk and
   renames it. So `path` is always one whole file, old or new, even after a crash and with several savers. It keeps the
   old file's mode. A symbolic link is followed; a directory, device or fifo is refused (not so on Windows). Temporary
   files in use are locked: a later save removes those of writers that died. Without locks (Windows, some network disks)
   they stay. */

typedef struct amp_state_desc {
    uint32_t _begin, flags;    /* 0 */
    amp_params *const *params; /* n_params sets, in the same order when saving and loading */
    size_t n_params;
    amp_scaler *const *scalers; /* a NULL entry: as a scaler that is OFF */
    size_t n_scalers;
    amp_fp8 *const *fp8;
    size_t n_fp8;
    void *user;        /* your own bytes (epoch, position in the data, ...): saved, and filled on load */
    size_t user_bytes; /* must be equal when loading */
    uint64_t _end;
} amp_state_desc;

/* Saved: masters (or the only copies), moments, step counts, scalers, FP8 scales and histories. Not saved: gradients,
   which parameters are in use, model copies that follow from masters. STAGE between unscale and update, and inside an
   accumulation window. IO, with the system's reason. FORMAT, with a sentence that says what differs; unknown sections
   are refused. Load reads the whole file into host memory, verifies it there and then copies it in: after a
   failed load nothing has changed. Only if the device fails during those copies does the sentence say "state
   undefined". Class: query. */
AMP_API amp_status amp_state_save(amp_ctx *ctx, const char *path, const amp_state_desc *state);
AMP_API amp_status amp_state_load(amp_ctx *ctx, const char *path, const amp_state_desc *state);

