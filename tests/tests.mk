# tests.mk - every target that tests, included by the top Makefile: make test | check-full | check-gpu | check-torch | check-labs | matrix | fuzz
.PHONY: test check-full check-gpu check-torch fingerprint exhaustive matrix floor fuzz mutants run-cuda-on-cpu

# ---- programs --------------------------------------------------------------------------------------------------------------
TEST_OBJ := $(patsubst %.c,$(BUILD)/%.o,tests/main.c $(sort $(wildcard tests/test_*.c)) tests/impl.c)
# Tests compile in half the time; what they test is in impl.o. Not those of the inline functions, and not where flags are given.
$(filter-out %/test_formats.o,$(filter $(BUILD)/tests/test_%,$(TEST_OBJ))): TEST_FLAGS := $(if $(filter-out -O2,$(CFLAGS)),,-O1)

$(BUILD)/test_cpu: $(TEST_OBJ) $(CPU_ONLY)
	$(CC) $(CFLAGS) $^ -o $@ $(LIBS)
$(BUILD)/test_gpu: $(TEST_OBJ) $(WITH_GPU)
	$(NVCC) $(NVCC_GENCODE) $^ -o $@ -lcublasLt -lm -lpthread
$(BUILD)/selftest: $(BUILD)/tests/selftest.o $(BUILD)/tests/impl.o $(CPU_ONLY)
	$(CC) $(CFLAGS) $^ -o $@ $(LIBS)
$(BUILD)/tests/selftest.o: tests/main.c
$(BUILD)/state_files: tests/state_files.c $(HEADERS) $(BUILD)/flags
	$(CC) $(C99) $(CFLAGS) -O1 -DAMP_NO_SIMD $< -o $@ $(LIBS)
$(BUILD)/process: $(BUILD)/tests/process.o $(BUILD)/tests/impl.o
	$(CC) $(CFLAGS) $^ -o $@ $(LIBS)
$(BUILD)/fuzz_%: $(BUILD)/tests/fuzz_%.o $(BUILD)/tests/impl.o
	$(CC) $(CFLAGS) $^ -o $@ $(LIBS)
$(BUILD)/exhaustive: $(BUILD)/tests/exhaustive.o
	$(CC) $(CFLAGS) $^ -o $@ $(LIBS)

# ---- make test -------------------------------------------------------------------------------------------------------------
# A part is a target part-NAME: tests/run.sh runs its command, prints one line and keeps the counts. Two parts at a time.
PARTS := compile retrofit hostcuda-suite unit cuda-verbs hostcuda examples page labs state fuzz process style headers selftest ptx sass readme install builds torch gpu check-gpu # the long ones first
LIMIT := 300 # CPU seconds of a part
# of what make test deals over days: tests/today.sh
ifndef AMP_DAY
AMP_DAY := $(shell expr $$(date +%s) / 86400)
endif
export AMP_DAY
RUN_PART = @tests/run.sh part $(@:part-%=%) $(LIMIT)
PARTS_MAKE = $(MAKE) --no-print-directory -s -k -O $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j2)
skipped = $(RUN_PART) sh -c 'echo "skipped: $1"; echo "0 passed, 0 failed, 1 skipped"'

test: cuda-line ## every test that this machine can run, in 5 to 8 minutes of CPU time with nvcc, by the processor; ends with the counts
	@rm -rf $(BUILD)/log; mkdir -p $(BUILD)/log
	+@STARTER=$$PPID tests/run.sh all $(PARTS_MAKE) $(PARTS:%=part-%) || true; tests/run.sh sum $(PARTS)

check-full: cuda-line ## the same with nothing left out, in parts of minutes: PART=--list, PART='unit-1 suite-*'; resumes after a stop
	@NVDISASM='$(NVDISASM)' HCU_VARIANTS='$(HCU_VARIANTS)' HCU_SKIPPED='$(or $(strip $(HCU_SKIPPED)),$(if $(CUDA_HOME),,"skipped: no CUDA headers"))' tests/full.sh $(PART)

.PHONY: $(PARTS:%=part-%)
part-unit: $(BUILD)/test_cpu
	$(RUN_PART) tests/unit.sh $(RUN_ENV) $(BUILD)/test_cpu --counts
mutants: ## faults planted one at a time: does a test notice? ARGS='--seed 7 --count 50 --only scaler', tests/mutants/mutants.py --help (long)
	@$(PYTHON) tests/mutants/mutants.py $(ARGS)
floor: ## tests/expected/floor.txt, from the last `make test`
	@tests/run.sh floor
part-compile: $(BUILD)/tests/impl.o
	$(RUN_PART) env IMPL=$(BUILD)/tests/impl.o 'IMPL_FLAGS=$(CFLAGS)' tests/compile.sh
for-examples: $(BUILD)/digits $(BUILD)/gpt $(BUILD)/tests/impl.o
for-examples-full: for-examples
part-examples: for-examples
	$(RUN_PART) env IMPL=$(BUILD)/tests/impl.o tests/examples.sh
part-page: $(BUILD)/digits
	$(RUN_PART) tests/page.sh
check-labs: $(BUILD)/tests/impl.o ## the labs' checkers: each solution passes, each of the planted wrong ones is refused with the right sentence
	@IMPL=$(BUILD)/tests/impl.o tools/labs.sh check $(N)
part-labs: $(BUILD)/tests/impl.o
	$(RUN_PART) env IMPL=$(BUILD)/tests/impl.o tools/labs.sh check --quick
.PHONY: for-examples for-examples-full for-install for-cuda-verbs for-fuzz lab check-labs
for-install: $(BUILD)/operations $(BUILD)/products $(BUILD)/memory $(BUILD)/roofline $(if $(wildcard bench/bench.mk),$(BUILD)/bench/train)
part-install: for-install
	$(RUN_PART) tests/install.sh
part-builds:
	$(RUN_PART) env CC='$(CC)' CXX='$(CXX)' PYTHON='$(PYTHON)' tests/builds.sh
part-state: $(BUILD)/state_files
	$(RUN_PART) $(BUILD)/state_files $(BUILD)/state_files.tmp
part-fuzz: for-fuzz
	$(RUN_PART) tests/fuzz.sh
for-fuzz: $(patsubst tests/%.c,$(BUILD)/%,$(wildcard tests/fuzz_*.c))
fuzz: ## any verb, any argument; changed state files; programs everywhere: SECONDS=60 each, libFuzzer and sanitizers (long)
	tests/fuzz.sh $(or $(SECONDS),60)
part-process: $(BUILD)/process
	$(RUN_PART) $(BUILD)/process
part-selftest: $(BUILD)/selftest
	$(RUN_PART) tests/selftest.sh
part-style:
	$(RUN_PART) tests/style.sh
part-headers:
	$(RUN_PART) tests/headers.sh
part-readme: $(BUILD)/tests/impl.o
	$(RUN_PART) env IMPL=$(BUILD)/tests/impl.o tests/readme_snippets.sh --look

# The CUDA source, executed on the CPU by tests/hostcuda: first that runtime's own tests, then the unit suite on its CUDA context.
ifneq ($(and $(CUDA_HOME),$(shell command -v $(CXX))),)
include tests/hostcuda/hostcuda.mk
# The object of tests/$2.c in variant $1. Plain takes those of test_cpu where it can, but for the files that know of the host runtime.
HCU_SHARED := $(if $(RUN_ENV)$(filter -f% -m%,$(CFLAGS)),,$(filter-out $(shell grep -l AMP_HOSTCUDA tests/*.c),$(TEST_OBJ:$(BUILD)/%.o=%.c)))
hostcuda_object = $(if $(and $(filter plain,$1),$(filter tests/$2.c,$(HCU_SHARED))),$(BUILD)/tests/$2.o,$(HCU_BUILD)/$1/$2.c.o)
hostcuda_objects = $(foreach f,$(TEST_OBJ:$(BUILD)/tests/%.o=%),$(call hostcuda_object,$1,$f))
export HCU_IMPL := $(call hostcuda_object,plain,impl)
HCU_FUZZ := $(patsubst tests/fuzz_%.c,%,$(shell grep -l FUZZ_CUDA tests/fuzz_*.c)) # those that run on CUDA contexts, too
# A vector where none may lie stops the program, as it stops a GPU (asan's flags have that already).
HCU_ALIGNED_plain := -fsanitize=alignment -fsanitize-undefined-trap-on-error
define hostcuda_suite # the unit suite, all of it compiled as variant $1 of the host runtime wants it
$(HCU_BUILD)/$1/%.c.o: tests/%.c $(HEADERS)
	@mkdir -p $$(@D)
	$(HCU_CXX_$1) -x c $(C99) $(HCU_FLAGS_$1) -DAMP_HOSTCUDA -I$(HCU_DIR) -c $$< -o $$@
$(HCU_BUILD)/$1/cuda_impl.o: tests/cuda_impl.cu $(HEADERS) $(HCU_HEADERS)
	@mkdir -p $$(@D)
	$(HCU_CXX_$1) $(HCU_CXXFLAGS) $(HCU_FLAGS_$1) $$(HCU_ALIGNED_$1) -I. $(HCU_SHIM) $$< -c -o $$@
$(HCU_BUILD)/$1/fuzz_%: tests/fuzz_%.c $(HEADERS) $(call hostcuda_object,$1,impl) $(HCU_BUILD)/$1/cuda_impl.o $(HCU_LIB_$1)
	$(HCU_CXX_$1) -x c $(C99) $(HCU_FLAGS_$1) -DAMP_HOSTCUDA -DFUZZ_CUDA -I$(HCU_DIR) -c $$< -o $$@.o
	$(HCU_CXX_$1) $(HCU_FLAGS_$1) $$@.o $(call hostcuda_object,$1,impl) $(HCU_BUILD)/$1/cuda_impl.o $(HCU_LIB_$1) $(HCU_LDLIBS) -lm -o $$@
$(HCU_BUILD)/$1/suite: $(call hostcuda_objects,$1) $(HCU_BUILD)/$1/cuda_impl.o $(HCU_LIB_$1)
	$(HCU_CXX_$1) $(HCU_FLAGS_$1) $$^ $(HCU_LDLIBS) -lm -o $$@
endef
$(foreach v,$(HCU_ALL),$(eval $(call hostcuda_suite,$v)))
# The machine code, executed and counted: tests/sass.c. nvcc makes it; nvdisasm, of the toolkit or from PyPI, says it as text.
SITE_PACKAGES = $(foreach p,build/tools/bin/python3 $(PYTHON),$(shell $p -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null))
NVDISASM ?= $(firstword $(shell command -v nvdisasm 2>/dev/null) $(wildcard $(CUDA_HOME)/bin/nvdisasm) $(wildcard $(SITE_PACKAGES:%=%/nvidia/*/bin/nvdisasm)))
SASS_ARCH ?= 75 80 86 89 90 100 120
SASS := $(BUILD)/sass
.PRECIOUS: $(SASS)/sm_%.cubin $(SASS)/gpt_sm_%.cubin $(SASS)/fast/sm_%.ptx $(SASS)/fast/sm_%.cubin $(SASS)/thin/sm_%.ptx $(SASS)/thin/sm_%.cubin
$(SASS)/sm_%.cubin: tests/sass_code.cu tests/cuda_impl.cu tests/naive_tail.cu tests/naive_tail.h amp.h amp_cuda.cuh
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O2 -I. -cubin -arch=sm_$* $< -o $@
# Under --use_fast_math, which must change nothing that matters: `make test` looks at this PTX, and executes and counts its machine code.
$(SASS)/fast/sm_%.ptx: tests/sass_code.cu tests/cuda_impl.cu tests/naive_tail.cu tests/naive_tail.h amp.h amp_cuda.cuh
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O2 -I. -Werror all-warnings --use_fast_math -ptx -arch=compute_$* $< -o $@
$(SASS)/fast/sm_%.cubin: $(SASS)/fast/sm_%.ptx
	$(NVCC) -O2 -cubin -arch=sm_$* $< -o $@
$(SASS)/mid/sm_%.ptx: tests/cuda_impl.cu amp.h amp_cuda.cuh # nvcc's short way: tests/suite_ptx.sh
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O2 -I. --Ofast-compile=mid -ptx -arch=compute_$* $< -o $@
# Of them those of some kernels, one of a kind: for `make test`.
THIN := ampi_k_cast ampi_k_cast_wide ampi_k_finite ampi_k_quantize ampi_k_clip ampi_k_update<0> ampi_k_update_pairs<0>
$(SASS)/thin/code.cu: amp_cuda.cuh amp.h tests/sass_thin.awk
	@mkdir -p $(@D)
	awk -v kernels='$(THIN)' -f tests/sass_thin.awk $< > $@
$(SASS)/thin/sm_%.ptx: $(SASS)/thin/code.cu
	$(NVCC) -std=c++17 -O2 -I. -Werror all-warnings -diag-suppress 177 --use_fast_math -ptx -arch=compute_$* $< -o $@
$(SASS)/thin/sm_%.cubin: $(SASS)/thin/sm_%.ptx
	$(NVCC) -O2 -cubin -arch=sm_$* $< -o $@
$(SASS)/gpt_sm_%.cubin: examples/gpt.c $(HEADERS) # its own layers' kernels
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O2 -I. -cubin -arch=sm_$* -DAMP_LINKED -x cu $< -o $@
$(SASS)/%.sass: $(SASS)/%.cubin
	$(NVDISASM) -c $< > $@
$(SASS)/naive_tail.o: tests/naive_tail.cu tests/naive_tail.h $(HCU_HEADERS)
	@mkdir -p $(@D)
	$(HCU_CXX_plain) $(HCU_CXXFLAGS) $(HCU_FLAGS_plain) $(HCU_SHIM) $< -c -o $@
$(SASS)/sass: tests/sass.c $(HEADERS) $(HCU_HEADERS) $(SASS)/naive_tail.o $(HCU_IMPL) $(HCU_BUILD)/plain/cuda_impl.o $(HCU_LIB_plain)
	$(CC) $(C99) -O1 -DAMP_HOSTCUDA -I$(HCU_DIR) -c $< -o $@.o
	$(CXX) $@.o $(SASS)/naive_tail.o $(HCU_IMPL) $(HCU_BUILD)/plain/cuda_impl.o $(HCU_LIB_plain) $(HCU_LDLIBS) -lm -o $@
$(SASS)/gpt2: tests/sass_gpt2.c tests/sass_bound.h
	@mkdir -p $(@D)
	$(CC) $(C99) -O1 $< -o $@ -lm
SASS_GPT2 = $(SASS)/gpt2 $(HCU_BUILD)/plain/gpt $(1:%=$(SASS)/sm_%.sass) $(1:%=$(SASS)/gpt_sm_%.sass)
.PHONY: for-sass for-sass-gpt2 bench-sass sass-table
for-sass: $(SASS)/sass $(SASS)/fast/sm_90.sass
for-sass-gpt2: $(call SASS_GPT2,90)
ifneq ($(and $(NVCC_VERSION),$(NVDISASM)),)
part-sass: $(SASS)/sass $(SASS)/thin/sm_90.sass
	$(RUN_PART) tests/sass.sh --thin 90
bench-sass: $(SASS)/sass $(call SASS_GPT2,$(SASS_ARCH)) ## counts from the kernels' machine code, bounds on ten GPUs (SASS_ARCH='86 90' ARGS='--row inspect')
	@for a in $(SASS_ARCH); do $(SASS)/sass --code $(SASS)/sm_$$a --archs '$(SASS_ARCH)' $(ARGS) || exit 1; done
	@$(if $(ARGS),,for a in $(SASS_ARCH); do $(SASS)/sass --code $(SASS)/sm_$$a --chain && tests/sass_gpt2.sh $$a || exit 1; done)
sass-table: $(SASS)/sass $(SASS_ARCH:%=$(SASS)/sm_%.sass) $(BUILD)/roofline ## makes tests/expected/sass.txt again
	tests/sass.sh --record $(SASS_ARCH)
else
part-sass:
	$(call skipped,$(if $(NVCC_VERSION),no nvdisasm (pip install nvidia-cuda-nvdisasm),no nvcc))
bench-sass sass-table:
	@echo '$@ needs nvcc and nvdisasm (pip install nvidia-cuda-nvdisasm)'; exit 1
endif
part-hostcuda: $(call hcu_programs,$(HCU_THIN))
	$(RUN_PART) $(MAKE) -s hostcuda-check
part-labs: $(HCU_BUILD)/translate $(HCU_BUILD)/user/libhostcuda-plain.a # by this make: tools/labs.sh finds them made
part-hostcuda-suite: $(HCU_BUILD)/plain/suite
	$(RUN_PART) tests/hostcuda_suite.sh $<
# what cuBLASLt is asked, by NVIDIA's library on a GPU and by the host runtime, which need not have the interpreters for it
$(BUILD)/lt_probe: tests/lt_probe.cpp $(BUILD)/flags
	$(NVCC) -std=c++17 -O1 $< -o $@ -lcublasLt
$(HCU_BUILD)/plain/lt_probe: tests/lt_probe.cpp $(HCU_BUILD)/user/libhostcuda-plain.a
	$(HCU_CXX_plain) -std=c++17 -O1 -Wall -Wextra -isystem $(CUDA_HOME)/include $< $(HCU_BUILD)/user/libhostcuda-plain.a $(HCU_LDLIBS) -o $@
part-check-gpu: $(if $(wildcard bench/bench.mk),$(HCU_BUILD)/plain/check_gpu) $(HCU_BUILD)/plain/lt_probe $(HCU_BUILD)/plain/suite
# on the host runtime: their kernels, and how many launches a step has
$(WITH_KERNELS:%=$(HCU_BUILD)/plain/%): $(HCU_BUILD)/plain/%: examples/%.c tests/probe.c $(HEADERS) $(HCU_HEADERS) $(HCU_BUILD)/plain/cuda_impl.o $(HCU_IMPL) $(HCU_LIB_plain)
	$(HCU_CXX_plain) $(HCU_CXXFLAGS) $(HCU_FLAGS_plain) -DAMP_LINKED -I. $(HCU_SHIM) $< -c -o $@.o
	$(CC) $(C99) -I$(HCU_DIR) -c tests/probe.c -o $@.probe.o
	$(HCU_CXX_plain) $(HCU_FLAGS_plain) $@.o $@.probe.o $(HCU_BUILD)/plain/cuda_impl.o $(HCU_IMPL) $(HCU_LIB_plain) $(HCU_LDLIBS) -lm -o $@
for-examples: $(HCU_BUILD)/plain/gpt
for-examples-full: $(WITH_KERNELS:%=$(HCU_BUILD)/plain/%)
# an example on the host runtime, linked with the implementations that the tests have; with CHECK compiled whole, for its tools
CUDA_EXAMPLES := $(patsubst examples/%.cu,%,$(sort $(wildcard examples/*.cu)))
$(CUDA_EXAMPLES:%=$(HCU_BUILD)/run/%): $(HCU_BUILD)/run/%: examples/%.cu $(HEADERS) $(HCU_HEADERS) $(HCU_BUILD)/plain/cuda_impl.o $(HCU_IMPL) $(HCU_LIB_plain)
	@mkdir -p $(@D)
	@(echo '#line 1 "$<"'; sed 's/^# *define AMP_\(CUDA_\)\{0,1\}IMPLEMENTATION.*//' $<) > $@.cu
	$(HCU_CXX_plain) $(HCU_CXXFLAGS) -Wno-maybe-uninitialized $(HCU_FLAGS_plain) -g -I. -iquote examples $(HCU_SHIM) $@.cu -x none $(HCU_BUILD)/plain/cuda_impl.o $(HCU_IMPL) $(HCU_LIB_plain) $(HCU_LDLIBS) -lm -o $@
EXAMPLE_ARGS = $(or $(ARGS),$(if $(filter tensor_core offload ranks_nccl,$(EXAMPLE)),--check))
ifeq ($(filter $(EXAMPLE),$(CUDA_EXAMPLES)),)
run-cuda-on-cpu:
	@echo 'run-cuda-on-cpu: EXAMPLE= one of $(CUDA_EXAMPLES)'; exit 1
else ifneq ($(CHECK),)
run-cuda-on-cpu:
	@$(MAKE) --no-print-directory -s hostcuda-run FILE=examples/$(EXAMPLE).cu ARGS='$(EXAMPLE_ARGS)' CHECK='$(CHECK)' FLAGS='-I. -DAMP_BLOCK=64 $(FLAGS)'
else
run-cuda-on-cpu: $(HCU_BUILD)/run/$(EXAMPLE)
	@HCU_LEAKS=1 HCU_LINES=1 HCU_DEVICES=4 $< $(EXAMPLE_ARGS)
endif
part-retrofit: for-cuda-verbs
for-install: $(if $(wildcard bench/bench.mk),$(HCU_BUILD)/plain/bench_gpu)
for-cuda-verbs: $(HCU_BUILD)/plain/cuda_impl.o $(HCU_IMPL) $(HCU_LIB_plain)
for-fuzz: $(patsubst %,$(HCU_BUILD)/plain/fuzz_%,$(HCU_FUZZ))
part-cuda-verbs: for-cuda-verbs # what each verb does to CUDA; its failures
	$(RUN_PART) tests/cuda_verbs.sh
else
part-hostcuda part-hostcuda-suite part-cuda-verbs part-sass:
	$(call skipped,needs hostcuda: g++ and the CUDA headers: $(if $(CUDA_HOME),no $(CXX),cuda_runtime_api.h not found; set CUDA_HOME))
hostcuda-run run-cuda-on-cpu:
	@echo '$@ needs $(CXX) and the CUDA headers (CUDA_HOME=)'; exit 1
bench-sass sass-table:
	@echo '$@ needs nvcc, nvdisasm (pip install nvidia-cuda-nvdisasm) and $(CXX)'; exit 1
endif

part-retrofit:
	$(RUN_PART) tests/retrofit.sh
part-check-gpu: # its page, without a GPU
	$(RUN_PART) tests/check_gpu_page.sh

ifneq ($(NVCC_VERSION),)
part-ptx: $(if $(CUDA_HOME),$(SASS)/thin/sm_90.ptx)# the machine code's, too
	$(RUN_PART) env FAST_PTX=$(if $(CUDA_HOME),$(SASS)/thin/sm_90.ptx) tests/ptx.sh
else
part-ptx:
	$(call skipped,no nvcc)
endif

ifneq ($(GPU),)
part-gpu: $(BUILD)/test_gpu
	$(RUN_PART) $(BUILD)/test_gpu
check-gpu: cuda-line $(BUILD)/test_gpu $(BUILD)/digits_cuda $(BUILD)/bench/check_gpu $(BUILD)/lt_probe $(HCU_BUILD)/plain/lt_probe ## the page that we ask for from your GPU: checks, agreement with the CPU, times beside bounds, what cuBLASLt does; FULL=1
	@$(BENCH_PEER); PEER="$$peer" tests/check_gpu.sh $(BUILD)/test_gpu $(BUILD)/bench/check_gpu $(BUILD)/lt_probe $(HCU_BUILD)/plain/lt_probe $(BUILD)/digits_cuda
else
part-gpu:
	$(call skipped,$(if $(NVCC_VERSION),no CUDA device,no nvcc))
check-gpu: cuda-line ## the page that we ask for from your GPU: checks, agreement with the CPU, times beside bounds, what cuBLASLt does; FULL=1
	@echo 'check-gpu needs nvcc and a CUDA device'; exit 1
endif

run-cuda-on-cpu: ## executes an example's kernels without a GPU: EXAMPLE=tensor_core ARGS='...' CHECK='tsan' (docs/hostcuda.md)
hostcuda-run: ## executes your own .cu without a GPU: FILE=x.cu ARGS='...' FLAGS='-I..' CHECK='asan tsan msan' (docs/hostcuda.md)
fingerprint: ## hashes of what every verb gives, on every CPU path and the CUDA source on the CPU, beside the recorded ones
	@tests/fingerprint.sh CHECK
exhaustive: $(BUILD)/exhaustive ## all 2^32 floats: to each small format against a second implementation, in each mode, 16+16 split, math (minutes)
	$(RUN_ENV) $(BUILD)/exhaustive
	for flags in -O2 $(if $(filter avx2,$(HIDE)),,$$(grep -qsw f16c /proc/cpuinfo && echo -mf16c)); do \
	    $(CC) $(C99) -O2 $$flags tests/compile/inline.c -o $(BUILD)/inline $(LIBS) && $(RUN_ENV) $(BUILD)/inline 1 && echo "inline conversions, $$flags: passed" || exit 1; done
check-torch: ## optimizers, gradients of gpt.c and convnet.c, Muon beside PyTorch; libtorch.cpp; if PyTorch is importable (PYTHON=python3)
	@PYTHON=$(PYTHON) tests/torch.sh --full
.PHONY: for-notebook
for-notebook: $(if $(HCU_VARIANTS),hostcuda-cc)
part-torch:
	$(RUN_PART) env PYTHON=$(PYTHON) tests/torch.sh
# found and not imported, which takes seconds
TORCH = $(shell $(PYTHON) -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
$(BUILD)/libtorch: examples/libtorch.cpp $(BUILD)/tests/impl.o $(HEADERS)
	$(CXX) -std=c++20 -O1 $(WARN) -I. -isystem $(TORCH)/include -isystem $(TORCH)/include/torch/csrc/api/include -DAMP_LINKED $< $(BUILD)/tests/impl.o \
	    -L$(TORCH)/lib -Wl,-rpath,$(TORCH)/lib -ltorch -ltorch_cpu -lc10 $(LIBS) -o $@
matrix: ## compilers, standards, sanitizers, architectures: ROWS='gcc-* tsan'; resumes after a stop, tests/matrix.sh --help (long)
	tests/matrix.sh $(ROWS)
