# bench.mk - benches, included by the top Makefile.   make bench | bench-gemm | bench-step | bench-scope | bench-train | bench-exhaustive | bench-gpu [PART=...] [RESULTS=dir]
# BENCH_ARGS: more arguments, as --cpu-time or --part casts.  BENCH_OUT: where the CSV files and the chart go.  Speed is reported, never pass or fail; a wrong result fails.
BENCH_OUT ?= $(if $(BUILD),$(BUILD),build)/bench
BENCH_CFLAGS ?= -O2
BENCH_HEADER = printf '%s\n' "machine: $$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -1), $$(nproc 2>/dev/null) processors; $$($(CC) --version | head -1); $(BENCH_CFLAGS)"

$(BENCH_OUT)/bench $(BENCH_OUT)/exhaustive $(BENCH_OUT)/scope $(BENCH_OUT)/train: $(BENCH_OUT)/%: bench/%.c amp.h $(wildcard bench/*.h)
	@mkdir -p $(BENCH_OUT)
	$(CC) -std=c99 -Wall -Wextra $(BENCH_CFLAGS) $(BENCH_DEFINES) $< $(filter %.o,$^) -o $@ -lm -pthread -ldl
# with the object that the tests have, if it has the same flags
ifeq ($(BENCH_CFLAGS),$(CFLAGS))
$(BENCH_OUT)/train: BENCH_DEFINES := -DAMP_LINKED
$(BENCH_OUT)/train: $(BUILD)/tests/impl.o
endif

# make bench-peers OPENBLAS=/path/libopenblas.so [PEER_ROWS=" 1 x "]: products, rows and casts beside OpenBLAS and loops; losses, checks
# and updates beside PyTorch
$(BENCH_OUT)/loops_%.o: bench/loops.c bench/loops.h
	@mkdir -p $(BENCH_OUT)
	$(CC) -O3 -ffast-math -march=$* '-DLOOP(name)=$*_##name' -c $< -o $@
$(BENCH_OUT)/peers_cpu: bench/peers_cpu.c bench/common.h bench/loops.h amp.h $(BENCH_OUT)/loops_native.o $(BENCH_OUT)/loops_haswell.o
	$(CC) -std=c99 -Wall -Wextra $(BENCH_CFLAGS) $< $(filter %.o,$^) -o $@ -lm -pthread -ldl
.PHONY: bench-peers
bench-peers: $(BENCH_OUT)/peers_cpu
	@$(BENCH_HEADER) | tee $(BENCH_OUT)/peers.txt
	@for p in avx512 avx2; do OPENBLAS="$(OPENBLAS)" $(BENCH_OUT)/peers_cpu $$p $(PEER_ROWS) || exit 1; done | tee -a $(BENCH_OUT)/peers.txt
	@p=$(BENCH_PYTHON); if ! $${p:-false} -c 'import numpy, torch' 2>/dev/null; then echo "no python3 with numpy and torch: PyTorch's rows are skipped"; exit; fi; \
	$(MAKE) -s python PYTHON=$$p > /dev/null && for simd in avx512 avx2; do PYTHONPATH=$(BUILD)/python $$p bench/peers_torch.py $$simd $(PEER_ROWS) || exit 1; done | tee -a $(BENCH_OUT)/peers.txt

# make bench-moments [BENCH_STEPS=1000]: which code of 8 bits keeps Adam's moments best, on the gradients of two examples
BENCH_STEPS ?= 1000
$(BENCH_OUT)/moments_%: bench/moments.c examples/%.c $(wildcard examples/*.h) amp.h
	@mkdir -p $(BENCH_OUT)
	$(CC) -std=c99 -Wall -Wextra $(BENCH_CFLAGS) -I. '-DMOMENTS_OF="../examples/$*.c"' $< -o $@ -lm -pthread
.PHONY: bench-moments
bench-moments: $(BENCH_OUT)/moments_gpt $(BENCH_OUT)/moments_convnet $(BUILD)/shakespeare.txt
	$(BENCH_OUT)/moments_convnet --mode fp32 --seeds 1
	$(BENCH_OUT)/moments_gpt --mode fp32 --steps $(BENCH_STEPS) --sample 0 --data $(BUILD)/shakespeare.txt --out $(BENCH_OUT)

# make bench-masters: what weights lose that are kept in fewer bits than FP32, on the steps of a small GPT
$(BENCH_OUT)/masters: bench/masters.c examples/gpt.c $(wildcard examples/*.h) amp.h
	@mkdir -p $(BENCH_OUT)
	$(CC) -std=c99 -Wall -Wextra $(BENCH_CFLAGS) -I. $< -o $@ -lm -pthread
.PHONY: bench-masters
bench-masters: $(BENCH_OUT)/masters $(BUILD)/shakespeare.txt
	$(BENCH_OUT)/masters --mode fp32 --seeds 1 --layers 2 --width 64 --heads 4 --context 32 --steps $(BENCH_STEPS) --sample 0 --data $(BUILD)/shakespeare.txt --out $(BENCH_OUT)

.PHONY: bench bench-gemm bench-step bench-scope bench-exhaustive bench-train bench-gpu
bench: $(BENCH_OUT)/bench
	@$(BENCH_HEADER) | tee $(BENCH_OUT)/bench.txt
	$(BENCH_OUT)/bench $(BENCH_ARGS) --out $(BENCH_OUT) > $(BENCH_OUT)/bench.tmp; s=$$?; cat $(BENCH_OUT)/bench.tmp | tee -a $(BENCH_OUT)/bench.txt; rm -f $(BENCH_OUT)/bench.tmp; exit $$s
	$(BENCH_OUT)/bench --curve --out $(BENCH_OUT)
	@for p in python3 /usr/bin/python3; do if $$p -c "import numpy" 2>/dev/null; then $$p bench/peers.py; exit; fi; done; echo "no python3 with numpy: its peers are skipped"

bench-gemm: $(BENCH_OUT)/bench
	@$(BENCH_HEADER) | tee $(BENCH_OUT)/gemm.txt
	$(BENCH_OUT)/bench --gemm $(BENCH_ARGS) --out $(BENCH_OUT) > $(BENCH_OUT)/gemm.tmp; s=$$?; cat $(BENCH_OUT)/gemm.tmp | tee -a $(BENCH_OUT)/gemm.txt; rm -f $(BENCH_OUT)/gemm.tmp; exit $$s

bench-step: $(BENCH_OUT)/bench
	@$(BENCH_HEADER) | tee $(BENCH_OUT)/step.txt
	$(BENCH_OUT)/bench --step $(BENCH_ARGS) --out $(BENCH_OUT) > $(BENCH_OUT)/step.tmp; s=$$?; cat $(BENCH_OUT)/step.tmp | tee -a $(BENCH_OUT)/step.txt; rm -f $(BENCH_OUT)/step.tmp; exit $$s
	@for p in python3 /usr/bin/python3; do if $$p -c "import torch" 2>/dev/null; then $$p bench/peers.py --step | tee -a $(BENCH_OUT)/step.txt; exit; fi; done; echo "no python3 with torch: its step is skipped"

bench-exhaustive: $(BENCH_OUT)/exhaustive
	$(BENCH_OUT)/exhaustive

bench-scope: $(BENCH_OUT)/scope
	@$(BENCH_HEADER)
	@$(BENCH_OUT)/scope

# the first python3 with PyTorch, or any: peers_gpu.py says itself what is missing
BENCH_PYTHON = $$(for p in python3 /usr/bin/python3; do if $$p -c 'import torch' 2>/dev/null; then echo $$p; exit; fi; done; command -v python3)
BENCH_PEER = p=$(BENCH_PYTHON); [ -n "$$p" ] || echo "no python3: PyTorch's rows are skipped"; peer="$${p:+$$p bench/peers_gpu.py}"

bench-train: $(BENCH_OUT)/train
	@$(BENCH_HEADER) | tee $(BENCH_OUT)/train.txt
	@$(BENCH_PEER); $(BENCH_OUT)/train --out $(BENCH_OUT) --peer "$${peer:+$$peer --device cpu}" > $(BENCH_OUT)/train.tmp; s=$$?; cat $(BENCH_OUT)/train.tmp | tee -a $(BENCH_OUT)/train.txt; rm -f $(BENCH_OUT)/train.tmp; exit $$s

# ---- GPU: one log, CSV file and chart per part; RESULTS=dir copies them there ----
BENCH_GPU_PARTS = $(if $(filter command,$(firstword $(origin PART))),$(PART),casts checks act step gemm train)
BENCH_GPU_SOURCES := bench/bench_gpu.cu $(wildcard bench/*.h) amp.h amp_cuda.cuh
BENCH_GPU_HEADER = printf '%s\n' "driver: $$(nvidia-smi --query-gpu=driver_version,clocks.sm,clocks.mem,power.limit --format=csv,noheader 2>/dev/null | head -1) (driver, SM clock, memory clock, power limit); $$($(NVCC) --version | sed -n 's/.*release/nvcc/p')"
$(BENCH_OUT)/bench_gpu: $(BENCH_GPU_SOURCES) $(BUILD)/tests/cuda_impl.o $(BUILD)/tests/impl.o
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -I. -Xcompiler -Wall,-Wextra $(NVCCFLAGS) $(NVCC_GENCODE) -DBENCH_FLAGS='"$(NVCCFLAGS) $(NVCC_GENCODE)"' $< $(BUILD)/tests/cuda_impl.o $(BUILD)/tests/impl.o -o $@ -lcublasLt -lm -lpthread
ifneq ($(GPU),)
bench-gpu: $(BENCH_OUT)/bench_gpu
	@s=0; $(BENCH_PEER); for part in $(BENCH_GPU_PARTS); do \
	    log=$(BENCH_OUT)/gpu-$$part.txt; $(BENCH_GPU_HEADER) | tee $$log; \
	    { $(BENCH_OUT)/bench_gpu --part $$part --out $(BENCH_OUT) --peer "$$peer"; echo $$? > $$log.status; } | tee -a $$log; \
	    [ "$$(cat $$log.status)" = 0 ] || s=1; rm -f $$log.status; \
	    if [ -n "$(RESULTS)" ]; then mkdir -p "$(RESULTS)"; cp $(BENCH_OUT)/gpu-$$part.* "$(RESULTS)"; fi; \
	done; exit $$s
else
bench-gpu:
	@echo 'bench-gpu needs nvcc and a CUDA device: $(if $(NVCC_VERSION),there is no CUDA device,nvcc was not found)'; exit 1
endif
# the last part of make check-gpu
$(BUILD)/bench/check_gpu: bench/check_gpu.cu $(wildcard bench/*.h) tests/facts.h tests/sass_bound.h amp.h amp_cuda.cuh $(BUILD)/tests/cuda_impl.o $(BUILD)/tests/impl.o
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -I. -Xcompiler -Wall,-Wextra $(NVCCFLAGS) $(NVCC_GENCODE) $< $(BUILD)/tests/cuda_impl.o $(BUILD)/tests/impl.o -o $@ -lcublasLt -lm -lpthread
# these programs, executed on the CPU by tests/hostcuda: it compiles, runs and checks its results; no speed
ifneq ($(HCU_BUILD),)
$(HCU_BUILD)/plain/bench_gpu $(HCU_BUILD)/plain/check_gpu: $(HCU_BUILD)/plain/%: bench/%.cu $(BENCH_GPU_SOURCES) tests/facts.h tests/sass_bound.h $(HCU_HEADERS) $(HCU_BUILD)/plain/cuda_impl.o $(HCU_IMPL) $(HCU_LIB_plain)
	$(HCU_CXX_plain) $(HCU_CXXFLAGS) $(HCU_FLAGS_plain) $(HCU_SHIM) $< -c -o $@.o
	$(HCU_CXX_plain) $(HCU_FLAGS_plain) $@.o $(HCU_BUILD)/plain/cuda_impl.o $(HCU_IMPL) $(HCU_LIB_plain) $(HCU_LDLIBS) -lm -o $@
endif
