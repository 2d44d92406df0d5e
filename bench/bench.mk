# bench.mk - CPU benches, included by the top Makefile.   make bench | bench-gemm | bench-step | bench-exhaustive
# BENCH_ARGS: more arguments, as --cpu-time or --part casts.  BENCH_OUT: where the CSV files and the chart go.  Speed is reported, never pass or fail; a wrong result fails.
BENCH_OUT ?= $(if $(BUILD),$(BUILD),build)/bench
BENCH_CFLAGS ?= -O2
BENCH_HEADER = printf '%s\n' "machine: $$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -1), $$(nproc 2>/dev/null) processors; $$($(CC) --version | head -1); $(BENCH_CFLAGS)"

$(BENCH_OUT)/bench $(BENCH_OUT)/exhaustive: $(BENCH_OUT)/%: bench/%.c amp.h
	@mkdir -p $(BENCH_OUT)
	$(CC) -std=c99 -Wall -Wextra $(BENCH_CFLAGS) $< -o $@ -lm -pthread -ldl

.PHONY: bench bench-gemm bench-step bench-exhaustive
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
