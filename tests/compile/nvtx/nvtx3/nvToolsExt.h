/* In place of NVIDIA's header: tests/compile/nvtx.c says what is done. */
int nvtxRangePushA(const char *message);
int nvtxRangePop(void);
