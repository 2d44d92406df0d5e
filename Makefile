# amp: mixed precision for C and CUDA in two headers. The headers need no build; this builds the examples and the tests.
# Targets: `make help`.  Variables, each may be given on the command line:
#   CC CXX CFLAGS     compilers, and flags for everything here        NVCC       nvcc; NVCC= builds without CUDA
#   BUILD             where everything goes (build)                   NVCC_ARCH  GPU targets: native, or numbers: "80 90"
#   PREFIX DESTDIR    for install (/usr/local)                        DEVICE     what `make run` uses: cpu or cuda
#   RUN_ENV           put before every test program, e.g. RUN_ENV=qemu-s390x-static or RUN_ENV="valgrind -q"
#   HIDE              avx512, or avx2: as on a processor without it (avx2: with SSE2 only), e.g. make test HIDE=avx512
SHELL := /bin/sh
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

ifeq ($(origin CC),default)
CC := $(firstword $(foreach c,cc gcc clang,$(if $(shell command -v $c),$c)) cc)
endif
CFLAGS  ?= -O2
BUILD   ?= build$(HIDE:%=/hide-%)
PREFIX  ?= /usr/local
RUN_ENV ?=
PYTHON  ?= python3
WARN    := -Wall -Wextra
C99     := -std=c99 $(WARN) -I. -Itests
LIBS    := -lm -pthread
VERSION := $(shell awk '/^\#define AMP_VERSION_M[AI][JN]OR |^\#define AMP_VERSION_PATCH / { v = v s $$3; s = "." } END { print v }' amp.h)

# ---- CUDA: found when present, printed, never required ---------------------------------------------------------------------
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard $(if $(CUDA_HOME),$(CUDA_HOME)/bin/nvcc) /usr/local/cuda/bin/nvcc))
# the toolkit, or NVIDIA's headers alone, which is all that tests/hostcuda needs
ifndef CUDA_HOME
CUDA_HOME := $(firstword $(foreach d,$(if $(NVCC),$(patsubst %/bin/,%,$(dir $(realpath $(shell command -v $(NVCC)))))) $(CUDA_PATH) /usr/local/cuda /usr,$(if $(realpath $d/include/cuda_runtime_api.h),$d)))
endif
NVCC_VERSION := $(if $(NVCC),$(shell $(NVCC) --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p'))
GPU := $(if $(NVCC_VERSION),$(or $(shell nvidia-smi -L 2>/dev/null | sed -n '1s/ .UUID.*//p'),$(firstword $(wildcard /dev/nvidia0 /dev/nvidia1))))
NVCC_ARCH ?= $(if $(GPU),native,75 80 90)
NVCC_GENCODE = $(if $(filter native all all-major sm_%,$(NVCC_ARCH)),-arch=$(NVCC_ARCH),$(foreach a,$(NVCC_ARCH),-gencode arch=compute_$a,code=sm_$a) \
               -gencode arch=compute_$(lastword $(NVCC_ARCH)),code=compute_$(lastword $(NVCC_ARCH)))
NVCCFLAGS ?= -O2
DEVICE ?= $(if $(GPU),cuda,cpu)
CUDA_LINE = CUDA: $(if $(NVCC_VERSION),nvcc $(NVCC_VERSION),no nvcc), device: $(or $(GPU),none)$(if $(NVCC_VERSION),$(comma) NVCC_ARCH: $(NVCC_ARCH))
comma := ,
# The same words and decimal points in every locale; cd goes where it is told; Python writes nothing beside the sources.
export LC_ALL := C
export CDPATH :=
export PYTHONDONTWRITEBYTECODE := 1
ifneq ($(words $(BUILD)),1)
$(error BUILD has spaces, and make cannot: a folder below this one may be named without them, as BUILD=build)
endif
export BUILD CC CXX NVCC NVCC_ARCH CUDA_HOME RUN_ENV

# ---- HIDE: every compiler, whoever calls it, finds a <cpuid.h> that leaves features out (tests/hide/hidden.h) ----------------
ifneq ($(HIDE),)
$(if $(wildcard tests/hide/$(HIDE)/cpuid.h),,$(error HIDE is avx512 or avx2, not '$(HIDE)'))
export HIDE
export C_INCLUDE_PATH := $(CURDIR)/tests/hide/$(HIDE)$(if $(C_INCLUDE_PATH),:$(C_INCLUDE_PATH))
export CPLUS_INCLUDE_PATH := $(CURDIR)/tests/hide/$(HIDE)$(if $(CPLUS_INCLUDE_PATH),:$(CPLUS_INCLUDE_PATH))
endif

# ---- objects: $(BUILD)/a/b.o comes from a/b.c, in C99 ----------------------------------------------------------------------
HEADERS  := $(wildcard *.h *.cuh tests/*.h examples/*.h)
CPU_ONLY := $(BUILD)/tests/cuda_stub.o
WITH_GPU := $(BUILD)/tests/cuda_impl.o
# where it has mpi.h, too: Debian's mpich alone does not
MPICC := $(shell printf '\043include <mpi.h>\n' | mpicc -x c -E - >/dev/null 2>&1 && command -v mpicc)
EXAMPLES := $(filter-out $(if $(MPICC),,ranks_mpi),$(patsubst examples/%.c,%,$(sort $(wildcard examples/*.c))))

$(BUILD)/%.o: %.c $(HEADERS) $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(C99) $(CFLAGS) $(TEST_FLAGS) -c $< -o $@

$(BUILD)/%.o: %.cu $(HEADERS) $(BUILD)/flags
	@mkdir -p $(@D)
	$(if $(NVCC_VERSION),,@echo 'this needs nvcc, and none was found (NVCC=, CUDA_HOME=); DEVICE=cpu works without'; exit 1)
	$(NVCC) -std=c++17 -I. $(NVCCFLAGS) $(NVCC_GENCODE) -c $< -o $@

# rewritten only when a compiler or a flag has changed: then everything is rebuilt
$(BUILD)/flags: FORCE
	@mkdir -p $(BUILD); echo '$(CC) $(CFLAGS) $(HIDE) $(NVCC) $(NVCCFLAGS) $(NVCC_GENCODE)' | cmp -s - $@ || echo '$(CC) $(CFLAGS) $(HIDE) $(NVCC) $(NVCCFLAGS) $(NVCC_GENCODE)' > $@

.PHONY: FORCE all run gpt lesson docs gpu-row format headers install clean help cuda-line slides site play figures
FORCE:

all: $(addprefix $(BUILD)/,$(EXAMPLES)) ## the examples

cuda-line:
	@echo '$(CUDA_LINE)'

# ---- programs --------------------------------------------------------------------------------------------------------------
$(BUILD)/%: examples/%.c $(HEADERS) $(BUILD)/flags
	$(CC) $(C99) $(CFLAGS) $< -o $@ $(LIBS)
$(BUILD)/%: examples/%.cu $(HEADERS) $(BUILD)/flags
	$(if $(NVCC_VERSION),,@echo 'this needs nvcc, and none was found (NVCC=, CUDA_HOME=)'; exit 1)
	$(NVCC) -std=c++17 -I. $(NVCCFLAGS) $(NVCC_GENCODE) $< -o $@ -lcublasLt $(NCCL) -lm -lpthread
# these with the implementation's object, which the tests have too
$(BUILD)/digits $(BUILD)/gpt $(BUILD)/play $(BUILD)/figures: $(BUILD)/%: examples/%.c $(BUILD)/tests/impl.o $(HEADERS) $(BUILD)/flags
	$(CC) $(C99) $(CFLAGS) -DAMP_LINKED $< $(BUILD)/tests/impl.o -o $@ $(LIBS)
$(BUILD)/ranks_nccl: NCCL := -lnccl
$(BUILD)/ranks_mpi: examples/ranks_mpi.c $(HEADERS) $(BUILD)/flags
	$(if $(MPICC),,@echo 'this needs mpicc (Debian: libopenmpi-dev openmpi-bin)'; exit 1)
	$(MPICC) $(C99) $(CFLAGS) $< -o $@ $(LIBS)
$(BUILD)/digits_cuda: examples/digits.c $(BUILD)/tests/impl.o $(WITH_GPU) $(HEADERS)
	$(CC) $(C99) $(CFLAGS) -DWITH_CUDA -c $< -o $@.o
	$(NVCC) $(NVCC_GENCODE) $@.o $(BUILD)/tests/impl.o $(WITH_GPU) -o $@ -lcublasLt -lm -lpthread
WITH_KERNELS := gpt convnet debug release# examples that run on both contexts from one source (own layers have kernels)
$(WITH_KERNELS:%=$(BUILD)/%_cuda): $(BUILD)/%_cuda: examples/%.c $(BUILD)/tests/impl.o $(WITH_GPU) $(HEADERS)
	$(NVCC) -std=c++17 -I. $(NVCCFLAGS) $(NVCC_GENCODE) -DAMP_LINKED -x cu -c $< -o $@.o
	$(NVCC) $(NVCC_GENCODE) $@.o $(BUILD)/tests/impl.o $(WITH_GPU) -o $@ -lcublasLt -lm -lpthread
$(BUILD)/shakespeare.txt: examples/shakespeare.txt.gz
	@mkdir -p $(@D)
	gzip -dc $< > $@

# ---- make run --------------------------------------------------------------------------------------------------------------
DIGITS := $(BUILD)/digits$(if $(filter cuda,$(DEVICE)),_cuda)
run: cuda-line $(DIGITS) ## train real digits in six precisions, twice: tables, pictures, and a page about them (DEVICE=cpu|cuda)
	$(RUN_ENV) $(DIGITS) --device $(DEVICE) --net both --out $(BUILD)/pictures --report $(BUILD)/report.html

lab: ## builds lab N of examples/labs with your file, runs and checks it: N=3 FILE=elsewhere/lab.c
	@tools/labs.sh run '$(N)' $(FILE) || [ $$? = 1 ] # a wrong answer is said, and is no error of make's

GPT := $(BUILD)/gpt$(if $(filter cuda,$(DEVICE)),_cuda)
gpt: cuda-line $(GPT) $(BUILD)/shakespeare.txt ## train a small GPT on Shakespeare in six precisions (about 15 minutes on 2 cores)
	$(RUN_ENV) $(GPT) --device $(DEVICE) --data $(BUILD)/shakespeare.txt --out $(BUILD)/pictures $(GPT_ARGS)

# The programs of docs/lesson.md.
LESSON := first_half first_scaler digits debug autocast recompute gpt
lesson: $(LESSON:%=$(BUILD)/%) $(BUILD)/roofline $(BUILD)/shakespeare.txt ## the programs of docs/lesson.md, built
	@echo 'The programs are in $(BUILD). Open docs/lesson.md.'

# ---- tests and benches -----------------------------------------------------------------------------------------------------
include tests/tests.mk
ifneq ($(wildcard bench/bench.mk),)
include bench/bench.mk
bench: ## conversions, checks and a step beside memcpy and other libraries, with a chart
bench-gemm: ## products, beside OpenBLAS if installed
bench-peers: ## products, rows and casts beside OpenBLAS (OPENBLAS=its library) and hand-written loops, losses and updates beside PyTorch
bench-step: ## the optimizer step at 32 M parameters, beside a pass over the same bytes and PyTorch if installed
bench-moments: ## codes of 8 bits for Adam's moments, by the error of the update on gradients of gpt.c and convnet.c (minutes)
bench-scope: ## what an open autocast scope costs a small verb
bench-exhaustive: ## all floats through amp_cast on every code path, against the scalar functions (minutes)
bench-train: ## whole training steps on the CPU, beside PyTorch if installed
bench-gpu: ## casts, checks, losses, optimizer, products, whole steps on a GPU, beside PyTorch if installed (PART=casts: one of them)
endif

# ---- documents -------------------------------------------------------------------------------------------------------------
docs: $(BUILD)/operations $(BUILD)/products $(BUILD)/memory $(BUILD)/roofline ## docs/operations.md, products.md, memory.md and img/roofline.svg, made from amp.h and tables of tests
	$(BUILD)/operations > docs/operations.md
	$(BUILD)/products > docs/products.md
	$(BUILD)/memory > docs/memory.md
	$(BUILD)/roofline H100 --out docs/img/roofline.svg > $(BUILD)/roofline.txt
MKDOCS ?= $(firstword $(wildcard $(BUILD)/tools/bin/mkdocs) mkdocs)
site: ## build/site/index.html: reference, documents and search, to read in a browser without a server; needs mkdocs-material (PyPI)
	$(PYTHON) tools/reference.py build/site-src
	@command -v $(firstword $(MKDOCS)) >/dev/null || { echo 'make site needs MkDocs: pip install mkdocs-material==9.8.2, or MKDOCS=its path'; exit 1; }
	NO_MKDOCS_2_WARNING=1 $(MKDOCS) build -q --strict -f tools/mkdocs.yml
	@echo 'Open build/site/index.html.'
slides: ## $(BUILD)/slides.html: the slides of docs/teaching, one file for any browser, with speaker notes
	@mkdir -p $(BUILD)
	$(PYTHON) tools/slides.py docs/teaching/slides.md > $(BUILD)/slides.html
play: $(BUILD)/digits $(BUILD)/play ## $(BUILD)/play.html: digits trains in the page of a browser, one file; needs a compiler for WebAssembly
	@$(PYTHON) tools/play.py play $(BUILD)/play.html $(BUILD)/digits
figures: $(BUILD)/figures ## $(BUILD)/figures.html: a figure to try for each of labs 1 to 6, one file; needs the same compiler
	@$(PYTHON) tools/play.py figures $(BUILD)/figures.html
gpu-row: ## the row of a page of make check-gpu in docs/gpus.md: JSON=build/check-gpu.json
	@$(PYTHON) tools/gpu_row.py '$(or $(JSON),$(BUILD)/check-gpu.json)'
$(BUILD)/roofline: tools/roofline.c tests/sass_bound.h
	@mkdir -p $(@D)
	$(CC) $(C99) $(CFLAGS) $< -o $@ -lm
$(BUILD)/operations $(BUILD)/products $(BUILD)/memory: $(BUILD)/%: tools/%.c $(HEADERS) $(BUILD)/tests/impl.o
	$(CC) $(C99) $(CFLAGS) $< $(BUILD)/tests/impl.o -o $@ $(LIBS)

# ---- the rest --------------------------------------------------------------------------------------------------------------
format: ## the parts of src/ as tests/style.sh wants the headers (CLANG_FORMAT=, of the version that tests/limits.txt names)
	@$(PYTHON) tools/format.py $(or $(CLANG_FORMAT),$(wildcard $(BUILD)/tools/bin/clang-format),clang-format)
	@tools/headers.sh
headers: ## amp.h and amp_cuda.cuh from the parts in src/; LINES=1: with #line, so that compilers and debuggers name the parts
	@tools/headers.sh $(if $(LINES),lines,join)
INSTALLED := include/amp.h include/amp_cuda.cuh share/pkgconfig/amp.pc share/cmake/amp/ampConfig.cmake share/cmake/amp/ampConfigVersion.cmake
# A prefix may have any characters, and the shell takes it from the environment; amp.pc has it absolute and escaped.
install uninstall install-shared: export INTO = $(DESTDIR)$(PREFIX)
install: export FROM = $(if $(filter /%,$(firstword $(PREFIX))),,$(CURDIR)/)$(PREFIX)
install: ## the headers, amp.pc and CMake's package under $(DESTDIR)$(PREFIX)
	install -d "$$INTO/include" "$$INTO/share/pkgconfig" "$$INTO/share/cmake/amp"
	install -m 644 amp.h amp_cuda.cuh "$$INTO/include"
	install -m 644 cmake/ampConfig.cmake "$$INTO/share/cmake/amp"
	sed 's|@AMP_VERSION@|$(VERSION)|' cmake/ampConfigVersion.cmake.in > "$$INTO/share/cmake/amp/ampConfigVersion.cmake"
	@awk 'BEGIN { p = ENVIRON["FROM"]; gsub(/["\\`]/, "\\\\&", p); gsub(/#/, "\\#", p) } \
	    /^prefix=/ { $$0 = "prefix=" p } { sub(/@VERSION@/, "$(VERSION)"); sub(/@INCLUDEDIR@/, "include"); gsub(/@QUOTE@/, "\""); print }' amp.pc.in > "$$INTO/share/pkgconfig/amp.pc"
uninstall: ## what install and install-shared put there
	for f in $(INSTALLED) lib/libamp.so.$(VERSION) lib/libamp.so.$(SOVERSION) lib/libamp.so; do rm -f "$$INTO"/$$f; done
	-rmdir "$$INTO/share/cmake/amp" 2>/dev/null || true

# A library of the CPU context for those who want one: versioned symbols, only amp_*.
SOVERSION := $(basename $(VERSION))
SHARED := $(BUILD)/libamp.so.$(VERSION)
OF_SHARED := $(if $(filter Darwin,$(shell uname)),-install_name$(comma)@rpath/libamp.so.$(SOVERSION),-soname$(comma)libamp.so.$(SOVERSION)$(comma)--version-script$(comma)cmake/amp.map)
$(SHARED): tests/impl.c amp.h cmake/amp.map $(BUILD)/flags
	$(CC) $(C99) $(CFLAGS) -fPIC -shared -Wl,$(OF_SHARED) $< -o $@ $(LIBS)
shared: $(SHARED) ## libamp.so.$(VERSION), the CPU context with versioned symbols; install-shared installs it
install-shared: $(SHARED)
	install -d "$$INTO/lib"
	install -m 755 $(SHARED) "$$INTO/lib"
	ln -sf libamp.so.$(VERSION) "$$INTO/lib/libamp.so.$(SOVERSION)"
	ln -sf libamp.so.$(SOVERSION) "$$INTO/lib/libamp.so"
python: $(SHARED) ## $(BUILD)/python/amp: the package for numpy arrays, _amp.py and its types made from this amp.h, libamp.so
	@mkdir -p $(BUILD)/python/amp
	$(PYTHON) tools/python_bindings.py $(CC) > $(BUILD)/python/_amp.py.new && mv $(BUILD)/python/_amp.py.new $(BUILD)/python/amp/_amp.py
	$(PYTHON) tools/python_bindings.py --types $(CC) > $(BUILD)/python/_amp.pyi.new && mv $(BUILD)/python/_amp.pyi.new $(BUILD)/python/amp/_amp.pyi
	cp bindings/python/amp/*.py bindings/python/amp/*.pyi bindings/python/amp/py.typed $(BUILD)/python/amp
	cp $(SHARED) $(BUILD)/python/amp/libamp.so
python-cuda: python ## libamp_cuda.so beside it, for amp.Context(device=0); needs nvcc
	$(if $(NVCC_VERSION),,@echo 'this needs nvcc, and none was found (NVCC=, CUDA_HOME=)'; exit 1)
	$(NVCC) -std=c++17 -I. $(NVCCFLAGS) $(NVCC_GENCODE) -Xcompiler -fPIC -shared tests/cuda_impl.cu -o $(BUILD)/python/amp/libamp_cuda.so -lcublasLt
compile_commands.json: FORCE ## for editors: how each C and C++ file here is compiled
	@{ printf '['; comma=; for f in tests/*.c examples/*.c tests/compile/*.cpp; do case $$f in *.cpp) c='c++ -std=c++17 -I. -Itests';; *) c='cc $(C99)';; esac; \
	    printf '%s\n{"directory": "%s", "file": "%s", "command": "%s -c %s"}' "$$comma" "$$PWD" "$$f" "$$c" "$$f"; comma=,; done; printf '\n]\n'; } > $@
dist: ## $(BUILD)/dist: the tarball of this version, the two headers alone, SHA256SUMS; from a committed tree
	@tools/dist.sh $(VERSION) $(BUILD)/dist
.PHONY: uninstall shared install-shared python python-cuda dist
clean: ## removes $(BUILD)
	@[ ! -e $(BUILD) ] || [ -e $(BUILD)/flags ] || { echo 'make clean: $(BUILD) has no file "flags", so it was not made here; remove it yourself'; exit 1; }
	rm -rf $(BUILD)
help: ## this list
	@(awk -F':.*## ' '/^[a-z-]+:.*## / && !seen[$$1]++ { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST); echo; \
	  sed -n '2,8s/^# \{0,1\}//p' Makefile; echo; echo '$(CUDA_LINE)') || true # where a reader like head has gone away
