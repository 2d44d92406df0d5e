# hostcuda.mk - builds the host runtime and its self-tests.  Included by the top Makefile; alone: make -C tests/hostcuda check
#
#   inputs      CC CXX CLANG CLANGXX CUDA_HOME BUILD
#   libraries   $(HCU_LIB_plain) $(HCU_LIB_asan) $(HCU_LIB_tsan) $(HCU_LIB_msan) $(HCU_LIB_vg); the same in user/ without the
#               interpreters of PTX and machine code, in half of the compile time: for hostcuda-run and the labs
#   a test      $(HCU_CXX_v) $(HCU_CXXFLAGS) $(HCU_FLAGS_v) $(HCU_SHIM) file.cu -c -o file.o      (the one .cu of the backend)
#               $(HCU_CXX_v) $(HCU_FLAGS_v) main.o file.o $(HCU_LIB_v) $(HCU_LDLIBS) -o test       (main.o: any C or C++ object)
#   targets     hostcuda-libs   hostcuda-check (plain)   hostcuda-check-full   hostcuda-clean
#
# $(HCU_VARIANTS) are the variants this machine can build; $(HCU_SKIPPED) holds a line for each that it cannot.

HCU_DIR := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
BUILD ?= build
CLANG ?= clang
CLANGXX ?= clang++
ifndef CUDA_HOME
CUDA_HOME := $(firstword $(foreach d,$(patsubst %/bin/nvcc,%,$(realpath $(shell command -v nvcc))) $(CUDA_PATH) /usr/local/cuda,$(if $(realpath $(d)/include/cuda_runtime_api.h),$(d))))
endif
HCU_BUILD := $(BUILD)/hostcuda

HCU_CXXFLAGS = -std=c++17 -Wall -Wextra -ffp-contract=off -fno-math-errno -fno-omit-frame-pointer -isystem $(CUDA_HOME)/include -I$(HCU_DIR)
HCU_SHIM = -x c++ -include hostcuda.h
HCU_LDLIBS = -lpthread -ldl

# Flags of the code under test, then (RT) of the runtime where they differ.  TSan: the runtime itself stays uninstrumented,
# and blocks are small because each CUDA thread is an identity of its own.
HCU_CXX_plain = $(CXX)
HCU_CXX_asan = $(CXX)
HCU_CXX_tsan = $(CXX)
HCU_CXX_msan = $(CLANGXX)
HCU_CXX_vg = $(CXX)
HCU_CC_plain = $(CC)
HCU_CC_asan = $(CC)
HCU_CC_tsan = $(CC)
HCU_CC_msan = $(CLANG)
HCU_CC_vg = $(CC)
HCU_FLAGS_plain = -O1# compiled in half of the time, and as fast
hcu_variant = -g $(shell . $(HCU_DIR)/variants.sh; variant $(1); echo "$$variant_flags")
HCU_FLAGS_asan := $(call hcu_variant,asan)
HCU_FLAGS_tsan := $(call hcu_variant,tsan) -DAMP_BLOCK=64
HCU_FLAGS_msan := $(call hcu_variant,msan)
HCU_FLAGS_vg := $(call hcu_variant,vg)
HCU_RT_plain = -O1
HCU_RT_asan = $(HCU_FLAGS_asan)
HCU_RT_tsan = -g -O2 -DHCU_TSAN
HCU_RT_msan = $(HCU_FLAGS_msan)
HCU_RT_vg = $(HCU_FLAGS_vg)

# ---- what this machine can build ---------------------------------------------------------------------------------------
hcu_file = $(filter /%,$(shell $(CXX) -print-file-name=$(1) 2>/dev/null))
HCU_CAN_plain := $(if $(CUDA_HOME),yes)
HCU_CAN_asan := $(if $(CUDA_HOME),$(call hcu_file,libasan.so)$(findstring clang,$(CXX)))
HCU_CAN_tsan := $(if $(CUDA_HOME),$(call hcu_file,libtsan.so)$(findstring clang,$(CXX)))
HCU_CAN_msan := $(if $(CUDA_HOME),$(wildcard $(shell $(CLANGXX) -print-runtime-dir 2>/dev/null)/libclang_rt.msan*.a $(shell $(CLANGXX) -print-resource-dir 2>/dev/null)/lib/linux/libclang_rt.msan*.a))
HCU_CAN_vg := $(if $(CUDA_HOME),$(and $(shell command -v valgrind),$(wildcard /usr/include/valgrind/memcheck.h)))
HCU_WHY_asan = $(CXX) has no address sanitizer
HCU_WHY_tsan = $(CXX) has no thread sanitizer
HCU_WHY_msan = no $(CLANGXX) with a memory sanitizer
HCU_WHY_vg = no valgrind
HCU_ALL := plain asan tsan msan vg
HCU_VARIANTS := $(foreach v,$(HCU_ALL),$(if $(HCU_CAN_$(v)),$(v)))
ifeq ($(CUDA_HOME),)
HCU_SKIPPED := "skipped: hostcuda: no CUDA headers (set CUDA_HOME)"
else
HCU_SKIPPED := $(foreach v,$(HCU_ALL),$(if $(HCU_CAN_$(v)),,"skipped: hostcuda $(v): $(HCU_WHY_$(v))"))
endif

# ---- libraries -----------------------------------------------------------------------------------------------------------
HCU_INTERPRETERS := hcu_ptx hcu_ptx_text hcu_sass hcu_sass_text
HCU_SOURCES := hcu_sched hcu_where hcu_reads hcu_wmma hcu_memory hcu_pinned hcu_runtime hcu_api hcu_copies hcu_ctl hcu_refused hcu_blas hcu_blas_product hcu_blas1 hcu_curand hcu_nccl $(HCU_INTERPRETERS)
HCU_USER_SOURCES := $(filter-out $(HCU_LEFT_OUT) $(HCU_INTERPRETERS) $(if $(wildcard $(CUDA_HOME)/include/cublasLt.h),,hcu_blas hcu_blas_product hcu_blas1),$(HCU_SOURCES)) hcu_lean
HCU_HEADERS := $(wildcard $(HCU_DIR)/*.h $(HCU_DIR)/*.inc)
$(HCU_BUILD)/hcu_refused.inc: $(HCU_DIR)/features.txt
	@mkdir -p $(@D)
	awk '($$3 == "refused" || $$2 ~ /^cuda(Get|Memcpy[FT]).*Symbol/) && $$1 ~ /^(runtime|driver|cublas|cublasLt|curand)$$/ { print "REFUSED(" $$2 ")" }' $< >$@
$(HCU_ALL:%=$(HCU_BUILD)/%/hcu_refused.o): $(HCU_BUILD)/hcu_refused.inc
# what runs most of the time
$(patsubst %,$(HCU_BUILD)/plain/%.o,hcu_sched hcu_blas_product hcu_ptx hcu_sass): HCU_RT_plain = -O2
define hcu_library
HCU_LIB_$(1) := $(HCU_BUILD)/libhostcuda-$(1).a
$(HCU_BUILD)/$(1)/%.o: $(HCU_DIR)/%.cpp $(HCU_HEADERS) $(HCU_DIR)/hostcuda.mk $(HCU_DIR)/variants.sh
	@mkdir -p $$(@D)
	$$(HCU_CXX_$(1)) $$(HCU_CXXFLAGS) -I$(HCU_BUILD) $$(HCU_RT_$(1)) -c $$< -o $$@
$(HCU_BUILD)/libhostcuda-$(1).a: $(HCU_SOURCES:%=$(HCU_BUILD)/$(1)/%.o)
	@rm -f $$@
	$$(AR) rcs $$@ $$^
$(HCU_BUILD)/user/libhostcuda-$(1).a: $(HCU_USER_SOURCES:%=$(HCU_BUILD)/$(1)/%.o)
	@mkdir -p $$(@D); rm -f $$@
	$$(AR) rcs $$@ $$^
endef
$(foreach v,$(HCU_ALL),$(eval $(call hcu_library,$(v))))

# ---- self-tests ----------------------------------------------------------------------------------------------------------
define hcu_selftest
$(HCU_BUILD)/$(1)/test_%: $(HCU_DIR)/selftest/test_%.cpp $(HCU_DIR)/selftest/selftest.h $(HCU_BUILD)/libhostcuda-$(1).a
	$$(HCU_CXX_$(1)) $$(HCU_CXXFLAGS) $$(HCU_FLAGS_$(1)) $$(HCU_SHIM) $$< -x none $$(HCU_LIB_$(1)) $$(HCU_LDLIBS) -o $$@
$(HCU_BUILD)/$(1)/user_main: $(HCU_DIR)/selftest/user_main.c $(HCU_DIR)/selftest/user_impl.cu $(HCU_BUILD)/libhostcuda-$(1).a
	$$(HCU_CC_$(1)) -std=c99 -Wall -Wextra -pedantic $$(HCU_FLAGS_$(1)) -I$(HCU_DIR) -c $(HCU_DIR)/selftest/user_main.c -o $$@.o
	$$(HCU_CXX_$(1)) $$(HCU_CXXFLAGS) $$(HCU_FLAGS_$(1)) $$(HCU_SHIM) $(HCU_DIR)/selftest/user_impl.cu -x none $$@.o $$(HCU_LIB_$(1)) $$(HCU_LDLIBS) -o $$@
$(HCU_BUILD)/$(1)/bugs: $(HCU_DIR)/selftest/bugs.cu $(HCU_DIR)/selftest/selftest.h $(HCU_BUILD)/libhostcuda-$(1).a
	$$(HCU_CXX_$(1)) $$(HCU_CXXFLAGS) $$(HCU_FLAGS_$(1)) $$(HCU_SHIM) $$< -x none $$(HCU_LIB_$(1)) $$(HCU_LDLIBS) -o $$@
endef
$(foreach v,$(HCU_ALL),$(eval $(call hcu_selftest,$(v))))
hcu_programs = $(HCU_BUILD)/translate $(foreach v,$(1),$(HCU_BUILD)/$(v)/test_lang $(HCU_BUILD)/$(v)/test_blas $(HCU_BUILD)/$(v)/test_wmma $(HCU_BUILD)/$(v)/bugs $(HCU_BUILD)/$(v)/user_main)
HCU_THIN := $(filter plain,$(HCU_VARIANTS))

# ---- other people's programs: docs/hostcuda.md ---------------------------------------------------------------------------
$(HCU_BUILD)/translate: $(HCU_DIR)/translate.cpp
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -O1 -Wall -Wextra $< -o $@
HCU_CHECK := $(if $(CHECK),$(CHECK),$(filter asan tsan,$(HCU_VARIANTS)) $(firstword $(filter msan vg,$(HCU_VARIANTS))))
hostcuda-run: $(HCU_BUILD)/translate $(HCU_CHECK:%=$(HCU_BUILD)/user/libhostcuda-%.a) $(if $(filter msan,$(HCU_CHECK)),$(if $(HCU_CAN_vg),$(HCU_BUILD)/user/libhostcuda-vg.a))
	@CHECK='$(HCU_CHECK)' FILES='$(FILES)' INCLUDE='$(INCLUDE)' FLAGS='$(FLAGS)' PROJECT='$(PROJECT)' RUN='$(RUN)' BUILD_WITH='$(BUILD_WITH)' JSON='$(JSON)' \
	    HCU_LIBS='$(HCU_BUILD)/user' HCU_LOGS='$(HCU_BUILD)/run' CUDA_HOME='$(CUDA_HOME)' CXX='$(CXX)' CLANGXX='$(CLANGXX)' \
	    $(HCU_DIR)/run.sh '$(FILE)' $(ARGS)
hostcuda-cc: $(BUILD)/hostcuda-cc ## build/hostcuda-cc, which takes nvcc's command line and makes programs for the CPU: CHECK='plain asan' (docs/hostcuda.md)
$(BUILD)/hostcuda-cc: $(HCU_DIR)/hostcuda-cc.sh $(HCU_BUILD)/translate $(HCU_CHECK:%=$(HCU_BUILD)/user/libhostcuda-%.a)
	@mkdir -p $(HCU_BUILD)/bin
	@printf '%s\n' '#!/bin/sh' "HCU_HOME='$(abspath $(HCU_DIR))' HCU_BUILD='$(abspath $(HCU_BUILD))' CUDA_HOME='$(CUDA_HOME)' CXX='$(CXX)' CLANGXX='$(CLANGXX)' \\" \
	    "    exec '$(abspath $(HCU_DIR))/hostcuda-cc.sh' \"\$$@\"" >$@
	@chmod +x $@; ln -sf ../../hostcuda-cc $(HCU_BUILD)/bin/nvcc

hostcuda-libs: $(HCU_VARIANTS:%=$(HCU_BUILD)/libhostcuda-%.a)
	@for s in $(HCU_SKIPPED); do echo "$$s"; done
hostcuda-check: $(call hcu_programs,$(HCU_THIN))
	@for s in $(HCU_SKIPPED); do echo "$$s"; done
	@CUDA_HOME="$(CUDA_HOME)" CXX="$(CXX)" CLANGXX="$(CLANGXX)" $(HCU_DIR)/selftest/run_all.sh thin $(HCU_BUILD) $(HCU_THIN)
hostcuda-check-full: $(call hcu_programs,$(HCU_VARIANTS))
	@for s in $(HCU_SKIPPED); do echo "$$s"; done
	@CUDA_HOME="$(CUDA_HOME)" CXX="$(CXX)" CLANGXX="$(CLANGXX)" $(HCU_DIR)/selftest/run_all.sh full $(HCU_BUILD) $(HCU_VARIANTS)
# is it true? The same tests and questions on a GPU: selftest/truth.sh
HCU_TRUTH := $(HCU_BUILD)/truth
HCU_NVCC = $(or $(NVCC),$(CUDA_HOME)/bin/nvcc) -std=c++17 -O1 -arch=native -x cu
$(HCU_TRUTH)/test_%.gpu: $(HCU_DIR)/selftest/test_%.cpp $(HCU_DIR)/selftest/selftest.h
	@mkdir -p $(@D)
	$(HCU_NVCC) $< -o $@ -lcublasLt -lcublas
$(HCU_TRUTH)/belief%.gpu: $(HCU_DIR)/selftest/belief%.cu $(HCU_DIR)/selftest/beliefs.h $(HCU_DIR)/selftest/selftest.h
	@mkdir -p $(@D)
	$(HCU_NVCC) $< -o $@ -lcublasLt -lcublas -lcurand
$(HCU_TRUTH)/belief%.host: $(HCU_DIR)/selftest/belief%.cu $(HCU_DIR)/selftest/beliefs.h $(HCU_DIR)/selftest/selftest.h $(HCU_BUILD)/user/libhostcuda-plain.a
	@mkdir -p $(@D)
	$(HCU_CXX_plain) $(HCU_CXXFLAGS) -O1 $(HCU_SHIM) $< -x none $(HCU_BUILD)/user/libhostcuda-plain.a $(HCU_LDLIBS) -o $@
hostcuda-truth: $(foreach t,test_lang test_blas test_wmma beliefs beliefs_numbers,$(HCU_TRUTH)/$t.gpu) $(foreach t,beliefs beliefs_numbers,$(HCU_TRUTH)/$t.host) ## on a GPU: is what the host runtime says of CUDA true?
	@$(HCU_DIR)/selftest/truth.sh $(HCU_BUILD) gpu || [ $$? = 77 ]
hostcuda-truth-here: $(foreach t,beliefs beliefs_numbers,$(HCU_TRUTH)/$t.host) ## the host runtime's answers, beside those of an H100 in h100.txt
	@$(HCU_DIR)/selftest/truth.sh $(HCU_BUILD) host
hostcuda-clean:
	rm -rf $(HCU_BUILD)
.PHONY: hostcuda-truth hostcuda-truth-here hostcuda-run hostcuda-cc hostcuda-libs hostcuda-check hostcuda-check-full hostcuda-clean
