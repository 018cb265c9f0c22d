# Benchmarks. tools/bench/bench.py measures; tools/bench/document.py makes doc/performance.md of it.
#
#   make bench                 everything, about ten minutes; the table also in build/bench
#   make bench BENCH=ARGS      options of bench.py: --quick, --only REGEX, --rounds N, --list, ...
#   make bench-tool            memlog on many reports, in build/bench-tool (REPORTS=1000, 12 GB)
#   make performance           the same, and doc/performance.md with its pictures
#   make bench-serve           memlog serve over many processes, and what its readers cost; the table
#                              of doc/serve.md
#   make bench-events          what an event log costs, beside heaptrack; the table in doc/events.md

BENCH_BUILD := $(BUILD)/tools/bench
BENCH       ?=
BENCH_RUN    = tools/bench/bench.py --build $(BUILD) --output $(BUILD)/bench
BENCH_TOOLS := $(addprefix $(BENCH_BUILD)/,churn churn.fp news paths paths.fp measure lsan_signals.so)

# As programs are built: without frame pointers. Once with, for LeakSanitizer, which needs them.
BENCH_FLAGS := -O2 -g -fno-builtin -Wall -Wextra -Werror -D_GNU_SOURCE -pthread
$(addprefix $(BENCH_BUILD)/,churn paths): BENCH_FRAMES := -fomit-frame-pointer
$(addprefix $(BENCH_BUILD)/,churn.fp paths.fp): BENCH_FRAMES := -fno-omit-frame-pointer
$(BENCH_BUILD)/news: BENCH_FRAMES := -fomit-frame-pointer -DNEWS
define bench_program
$(BENCH_BUILD)/$(1) $(BENCH_BUILD)/$(1).fp $(2): tools/bench/$(1).cc tools/bench/calls.h tools/bench/bench.mk | $$(BUILD)/.test-deps
	@mkdir -p $$(@D)
	$$(call say,MAKE,$$@)
	$$(Q)$$(CXX) $$(BENCH_FLAGS) $$(BENCH_FRAMES) -std=c++20 -o $$@ $$<
endef
$(eval $(call bench_program,churn,$(BENCH_BUILD)/news))
$(eval $(call bench_program,paths))
# Static, so that its own memory is less than that of any program it measures.
$(BENCH_BUILD)/measure: tools/bench/measure.c tools/bench/bench.mk | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(call say,MAKE,$@)
	$(Q)$(CC) $(BENCH_FLAGS) -std=gnu11 -static -o $@ $<
$(BENCH_BUILD)/lsan_signals.so: tools/bench/lsan_signals.c tools/bench/bench.mk | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(call say,MAKE,$@)
	$(Q)$(CC) $(BENCH_FLAGS) -std=gnu11 -shared -fPIC -o $@ $<

# Linked with the library's objects, as the unit tests are, and optimised as the library is.
MICRO_FLAGS := -Isrc/libmtrace $(COMMON) -fno-omit-frame-pointer
MICRO_OBJ   := $(patsubst tools/bench/micro/%.cc,$(BENCH_BUILD)/obj/%.o,$(sort $(wildcard tools/bench/micro/*.cc)))
$(BENCH_BUILD)/obj/%.o: tools/bench/micro/%.cc tools/bench/bench.mk | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) $(CPPFLAGS) $(MICRO_FLAGS) $(CXXFLAGS) -c $< -o $@
$(BENCH_BUILD)/micro: $(MICRO_OBJ) $(PARTS_OBJ)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LDFLAGS) -o $@ $^ -lbenchmark -lpthread

TEST_EXTRA += $(BENCH_TOOLS) $(BENCH_BUILD)/micro

.PHONY: bench bench-events bench-serve bench-tool performance
bench-events: all $(BENCH_TOOLS)
	@tools/bench/events.py --build $(BUILD) --document doc/events.md $(BENCH)
bench-serve: all $(BENCH_BUILD)/churn
	@tools/bench/bench_serve.py --build $(BUILD) $(BENCH)
REPORTS ?= 100
bench-tool: all
	@tools/bench/bench_tool.py $(BUILD)/bench-tool $(REPORTS) 10000
bench: all $(BENCH_TOOLS) $(BENCH_BUILD)/micro
	@$(BENCH_RUN) $(BENCH)
performance: bench
	@tools/bench/document.py --results $(BUILD)/bench/results.json --document doc/performance.md

-include $(MICRO_OBJ:.o=.d)
