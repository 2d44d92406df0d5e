/* hostcuda_ctl.h - how a test steers and questions the host runtime (plain C and C++).
 *
 * Everything here exists only when a program is linked with the host runtime; guard its use with
 * #ifdef AMP_HOSTCUDA in tests that also build for a real GPU.  All functions may be called from any host thread,
 * none of them from inside a kernel.
 *
 * The same switches come from the environment, read at the first CUDA call:
 *   HCU_MODE=eager|lazy|random   HCU_ORDER=forward|reverse|shuffle   HCU_SEED=n   HCU_DEVICES=n
 *   HCU_ABORT=0|1                HCU_PROTECT=0|1                     HCU_PTX=file.ptx
 *   HCU_SASS=name                HCU_SMS=n                           HCU_ARCH=n (89)
 *   HCU_EPILOGUES=names: cuBLASLt rounds as its kernels of odd shapes do, FP8 sums are an H100's; but for sm_90 FP8 has
 *                        those epilogues only that kernels are named after */
#ifndef HOSTCUDA_CTL_H
#define HOSTCUDA_CTL_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

/* ---- schedule -------------------------------------------------------------------------------------------------- */

enum hcu_mode {
    HCU_EAGER = 0, /* stream work runs as it is enqueued: easiest to debug, hides missing synchronisation           */
    HCU_LAZY = 1,  /* (default) it runs only when a synchronisation needs it, and only what that one needs          */
    HCU_RANDOM = 2 /* at each API call a seeded number of ready operations of seeded streams runs                   */
};
enum hcu_order { HCU_FORWARD = 0, HCU_REVERSE = 1, HCU_SHUFFLE = 2 }; /* of threads, warps and blocks in a launch   */

void hcu_set_mode(int mode, unsigned seed); /* waits for all pending work first                                   */
void hcu_set_order(int order, unsigned seed);
void hcu_gemm_order(int how, unsigned seed); /* cuBLASLt sums: -1 by algo, 0 forward, 1 reverse, 2 split-K, 3 fp64 */
unsigned hcu_reductions(void); /* the ways to add partial sums that the last search for an algorithm allowed        */

/* ---- the machine ----------------------------------------------------------------------------------------------- */

void hcu_set_devices(int count);                     /* 0..8, default 2; call it before handles exist            */
void hcu_set_arch(int device, int major, int minor); /* default 9.0; older ones refuse bf16 and fp8 products     */
void hcu_set_sms(int device, int count);             /* default 132                                              */
void hcu_set_occupancy(int blocks);                  /* that an SM holds of any kernel; 0 (default): by threads  */
void hcu_unload(int in_capture);            /* no kernel is loaded and no device in use; may one be while a stream is
                                                        captured? 1 (default), 0: drivers before 12.3           */
unsigned hcu_devices_in_use(void);          /* a bit for each that has a primary context                */
void hcu_set_context(void *context);        /* current on the thread, of its device, and not the primary one (as
                                                        after cuCtxCreate): what was made is not its; NULL: none */
void *hcu_context(void);                    /* that one, or NULL: a primary one is current             */
void hcu_kill(int device, int error);       /* a fault that the runtime has not noticed yet             */
void hcu_set_compiled(int ptx, int driver); /* what kernels were compiled for, 80 for compute_80, and the driver's
                                               version, 12020 for CUDA 12.2; 0: the device's kind; the runtime's */
void hcu_dead_search(int status);           /* what a search for algorithms says on a dead device, if not
                                                        that it failed; 0: that                                  */
void hcu_fail_start(int error, int driver); /* the driver cannot be started: every call fails, for ever;
                                                        its version, 0: there is none. error 0: it can again     */
long hcu_loads(void);                       /* kernels loaded since, each at its first use on a device  */
void hcu_set_memory_limit(int device, size_t bytes); /* default 4 GiB; beyond it cudaErrorMemoryAllocation       */
size_t hcu_device_bytes(int device);                 /* live bytes                                               */
size_t hcu_pinned_bytes(void);                       /* the same of page-locked and managed memory               */

/* ---- checks ---------------------------------------------------------------------------------------------------- */

void hcu_set_protect(int on);     /* device memory PROT_NONE while host code runs (default 1; costs mprotect calls)  */
void hcu_set_scan_params(int on); /* look for host pointers inside struct parameters of kernels (default 1)          */
void hcu_set_abort(int on);       /* 1 (default): a diagnosed bug aborts with a stack; 0: it is printed and counted  */
int hcu_bugs(void);               /* bugs diagnosed so far                                                           */
int hcu_leaks(int print);         /* live buffers, pinned memory, streams, events, graphs, handles, descriptors      */
long hcu_pending(void);           /* operations enqueued and not yet executed                                        */

/* Looks at (changes) device memory as it is now: no synchronisation, no stream work, no counter.  0 = not device
   memory. */
int hcu_peek(void *host_dst, const void *device_src, size_t bytes);
int hcu_poke(void *device_dst, const void *host_src, size_t bytes);
void *hcu_last_pinned(void); /* what cudaHostAlloc or cudaMallocHost gave last                                      */

/* ---- counters -------------------------------------------------------------------------------------------------- */

enum hcu_group {
    HCU_ALLOC,     /* cudaMalloc, cudaMallocAsync, cudaHostAlloc, cudaMallocHost                                    */
    HCU_FREE,      /* their counterparts                                                                            */
    HCU_SYNC,      /* everything the host waits in: synchronise calls, cudaMemcpy, cudaFree, cudaFreeHost,
                      cudaMemcpyAsync with pageable host memory                                                     */
    HCU_LAUNCH,    /* kernel launches                                                                               */
    HCU_COPY,      /* cudaMemcpy, cudaMemcpyAsync                                                                   */
    HCU_FILL,      /* cudaMemset, cudaMemsetAsync                                                                   */
    HCU_MATMUL,    /* cublasLtMatmul                                                                                */
    HCU_HEURISTIC, /* cublasLtMatmulAlgoGetHeuristic, and the search hidden in cublasLtMatmul without an algo       */
    HCU_GRAPH,     /* cudaGraphLaunch                                                                               */
    HCU_OBJECT,    /* streams, events, graphs, handles and descriptors made or destroyed                            */
    HCU_GROUP_COUNT
};
long hcu_calls(const char *api); /* calls of one function, e.g. hcu_calls("cudaMalloc"); NULL: of all functions  */
long hcu_group_calls(int group); /* calls of one group                                                          */
long hcu_executed(int group);    /* HCU_LAUNCH, HCU_COPY, HCU_FILL, HCU_MATMUL, HCU_GRAPH: operations that ran;
                                    work issued inside a capture counts when a replay runs it                   */
long hcu_followers(void);        /* launches that may begin while the one before them runs (programmatic dependent
                                    launch), so far; here they never do                                       */
size_t hcu_largest_grid(void);   /* blocks of the largest launch                                                */
long hcu_warp_products(void);    /* nvcuda::wmma::mma_sync, once for each warp; hcu_reset_counts leaves it alone */
void hcu_reset_counts(void);
/* Events measure this of the next cublasLtMatmul, so much more of each one after it, and nothing of all else, until
 * hcu_reset. */
void hcu_product_time(double first_ms, double more_ms);

/* ---- fault injection --------------------------------------------------------------------------------------------
 * hcu_fail_call: the nth call from now of `api` (NULL: of any call that can fail) returns `err` and does nothing.
 *   err 0 picks the natural failure of that call.  sticky: the device is dead afterwards, as after a kernel fault.
 * hcu_fail_exec: the nth stream operation to run from now on faults: it and everything behind it on its device does not
 *   run, and calls return `err` (0: cudaErrorIllegalAddress) for as long as the device is dead.
 * A loop over nth until hcu_injected() stays 0 drives a verb through each of its failures. */
void hcu_fail_call(const char *api, long nth, int err, int sticky);
void hcu_fail_exec(long nth, int err);
long hcu_failable_calls(void);       /* calls since hcu_reset_counts that hcu_fail_call(NULL, ...) could have hit   */
long hcu_injected(void);             /* faults delivered since hcu_reset_counts                                     */
const char *hcu_last_injected(void); /* where                                                                       */
void hcu_reset(void);                /* devices alive, no error pending, no fault armed, no capture, counters zero  */

/* ---- nvcc's PTX ------------------------------------------------------------------------------------------------- */

int hcu_ptx_load(
    const char *path);       /* kernels of that file are interpreted from now on; returns how many, -1: no file */
long hcu_ptx_launches(void); /* launches that ran PTX                                                       */

/* ---- a GPU's machine code ---------------------------------------------------------------------------------------
 * name.cubin, and what nvdisasm -c says of it in name.sass: all launches run it from now on, and it is counted. Several
 * names have a space between them. */

enum hcu_pipe {
    HCU_PIPE_ALU,     /* integers, comparisons, selections, logic */
    HCU_PIPE_FMA,     /* FP32 */
    HCU_PIPE_IMAD,    /* integer multiply-add, a part of the FMA pipe */
    HCU_PIPE_FP64,    /* FP64 */
    HCU_PIPE_CVT64,   /* conversions from and to FP64 */
    HCU_PIPE_XU,      /* approximations, conversions, counts of bits */
    HCU_PIPE_LSU,     /* memory, shared memory, constants by LDC, shuffles */
    HCU_PIPE_BRANCH,  /* branches and barriers */
    HCU_PIPE_UNIFORM, /* once per warp */
    HCU_PIPE_OTHER,
    HCU_PIPES
};
typedef struct hcu_sass_count {
    long launches, blocks;
    int registers;                      /* the most of a kernel */
    unsigned long long issued;          /* instructions, each once per warp */
    unsigned long long pipe[HCU_PIPES]; /* by pipe */
    /* of hcu_sass_model: cycles of each launch at least, added up; of a launch the most instructions of a warp, and the
       longest chain of instructions that depend on one another, with those of them on the FP64 pipes */
    unsigned long long cycles, longest, longest_fp64, chain, chain_fp64;
    /* of the kernel that issued most: bytes that an SM full of its warps has asked memory for and not used, at most */
    unsigned long long under_way;
    size_t grid; /* blocks of the largest launch */
} hcu_sass_count;
int hcu_sass_load(const char *name); /* returns how many kernels can be run, -1: no such file */
const char *hcu_sass_kernel(int i);  /* mangled name of the one that ran as number i; NULL: no more */
void hcu_sass_partial(int on);       /* 1: kernels that the machine code lacks run as C++, no bug */
int hcu_sass_arch(void);             /* 90 for sm_90 */
void hcu_sass_grids(int only);       /* 1: launches are noted from now on, and nothing runs; 0: all runs */
void hcu_sass_model(int sms);        /* counts chains from now on, on a GPU of so many SMs; 0: no more */
long hcu_sass_launches(void);        /* launches that ran machine code since the reset */
void hcu_sass_reset(void);           /* counts become 0 */
hcu_sass_count hcu_sass_counts(const char *kernel); /* of the kernels whose mangled names contain it; NULL: all */
void hcu_sass_profile(const char *kernel, double per, int lines); /* prints opcodes and their counts / per */
void hcu_sass_listing(const char *kernel, double per);            /* prints the instructions that ran */

#ifdef __cplusplus
}
#endif
#endif
