# What takes long, and what `make check` needs of it: the walker's checks, the tables' checkers, fuzz
# targets, benchmarks and programs of others.

.PHONY: fuzz hosts bench performance

# ---- The walker: code compiled for its tests with and without frame pointers, by both compilers, two
# libraries of one layout and different code, to be loaded in turn at one address, and a preloaded
# library that holds the walker against libunwind inside other programs. Another name for each kind.
U := $(T)/unwind
UNWIND_SRC  := tests/unit/library/unwind
CHAIN_FLAGS := -O2 -g -fPIC -Wall -Wextra -Werror -Isrc/libmtrace -Isrc -Itests
KINDS  := gcc_nofp gcc_fp clang_nofp clang_fp
CHAINS := $(KINDS:%=$(U)/chain_%.o)
FRAMES := $(KINDS:%=$(U)/frames_%.o)
kind   = $(word $(1),$(subst _, ,$(basename $(@F))))
chain  = $(call run,CXX,$@)$($(call kind,2)_cxx) $(CHAIN_FLAGS) $($(call kind,3))
$(CHAINS): $(UNWIND_SRC)/chain.cc $(ready)
	$(chain) -DCHAIN=$(basename $(@F)) -c $< -o $@
$(FRAMES): tests/walkcheck/frames.cc tests/walkcheck/frames.h $(ready)
	$(chain) -fno-builtin -DFRAMES=$(basename $(@F)) -c $< -o $@
# Hand-written frames, for x86_64.
$(U)/frames.o: $(UNWIND_SRC)/x86_64/frames.S $(ready)
	$(call run,CC,$@)$(CC) -g -c $< -o $@
$(T)/unit_library: $(CHAINS) $(if $(filter x86_64,$(ARCH)),$(U)/frames.o)
UNWIND_PLUGS := $(U)/libplug_small.so $(U)/libplug_large.so
$(U)/libplug_small.so: PLUG = 24
$(U)/libplug_large.so: PLUG = 4104
$(UNWIND_PLUGS): $(UNWIND_SRC)/$(ARCH)/plug.S $(ready)
	$(call run,CC,$@)$(CC) -shared -nostdlib -Wl,--build-id=sha1 -DPLUG_FRAME=$(PLUG) $< -o $@
PROGRAM_LIBS_random_frames := $(FRAMES)
$(PROGRAMS)/random_frames: $(FRAMES)
# libgcc is linked in: programs written in C have none loaded.
WALKCHECK     := $(PROGRAMS)/walkcheck.so
WALKCHECK_OBJ := $(CFI_OBJ) $(filter $(foreach f,base modules unwind python,$(BUILD)/obj/src/libmtrace/$(f)/%),$(LIB_OBJ))
$(WALKCHECK): tests/walkcheck/walkcheck.cc tests/walkcheck/walkcheck.h $(WALKCHECK_OBJ) $(ready)
	$(call run,LINK,$@)$(CXX) $(CPPFLAGS) -Itests $(filter-out -MMD -MP,$(LIB_FLAGS)) -shared \
	    -static-libgcc -o $@ $< $(WALKCHECK_OBJ) -lgcc_eh

# ---- The tables in every order of a few threads: the library's own sources, with a scheduler in place
# of base/atomic.h; and the same with each of bugs.txt in a copy of the source, which must be found. Of
# the sources that are part of the scenarios only what these call: the rest needs the rest.
S := $(BUILD)/schedule
SCHEDULE_FLAGS := -std=c++20 $(WARN) -MMD -MP -ffunction-sections -Wl,--gc-sections -Itests/schedule \
                  -Isrc/libmtrace -DMTRACE_ATOMICS='"stepped_atomic.h"'
SCHEDULE_BUGS  := $(shell sed -n 's/^\([a-z][a-z-]*\)|.*/\1/p' tests/schedule/bugs.txt)
SCHEDULE_OBJ   := $(S)/scheduler.o $(S)/memory.o
$(SCHEDULE_OBJ): $(S)/%.o: tests/schedule/%.cc $(ready)
	$(call run,CXX,$<)$(CXX) $(CPPFLAGS) $(SCHEDULE_FLAGS) -O2 -g -c $< -o $@
$(S)/scenarios: tests/schedule/scenarios.cc $(SCHEDULE_OBJ)
	$(call run,LINK,$@)$(CXX) $(CPPFLAGS) $(SCHEDULE_FLAGS) -O1 -g -o $@ $< $(SCHEDULE_OBJ)
$(S)/bugs/%/scenarios: tests/schedule/scenarios.cc $(SCHEDULE_OBJ) tests/schedule/bugs.txt tests/schedule/make_bug.sh
	$(call run,BUG,$*)tests/schedule/make_bug.sh $* $(@D) && \
	    $(CXX) -I$(@D) $(CPPFLAGS) $(SCHEDULE_FLAGS) -Wno-error -w -O0 -o $@ $< $(SCHEDULE_OBJ)

# ---- The tests of the tables under ThreadSanitizer, by clang whatever builds the rest.
TSAN_TESTS := $(patsubst %,tests/unit/library/%_test.cc,block_hash block_table notes peak region_table resource_table \
                stack_table thread_slots turn)
TSAN_SRC   := $(filter-out %/syscall.cc,$(wildcard src/libmtrace/base/*.cc)) $(wildcard src/libmtrace/ledger/*.cc) \
              src/libmtrace/report/notes.cc tests/tsan/mapped_memory.cc tests/tsan/no_events.cc $(TSAN_TESTS)
TSAN_OBJ   := $(TSAN_SRC:%.cc=$(BUILD)/tsan/%.o)
$(TSAN_OBJ): $(BUILD)/tsan/%.o: %.cc $(ready)
	$(call run,TSAN,$<)clang++ $(CPPFLAGS) -Isrc/libmtrace -Itests/support -std=c++20 -O1 -g1 $(WARN) -MMD -MP -fsanitize=thread -c $< -o $@
$(BUILD)/tsan/tables: $(TSAN_OBJ)
	$(call run,LINK,$@)clang++ -fsanitize=thread -o $@ $^ -lgtest -lgtest_main $(ABSL_LIBS)
CHECKERS := $(S)/scenarios $(SCHEDULE_BUGS:%=$(S)/bugs/%/scenarios) $(BUILD)/tsan/tables

# ---- Fuzzing: make check gives the seeds to the targets as they are built here. make fuzz and
# check-long build them again, with all that they call, for libFuzzer (FUZZER=1).
FUZZ_TARGETS := cfi memlog elf options decode ledger events request
FUZZ         ?= $(FUZZ_TARGETS)
SECONDS      ?= 600
# The parts of the library that two targets are about, with what a system call of the library's takes.
# The others take all of memlog but main; decode has a worker.cc of its own when it is fuzzed.
KERNEL       := $(patsubst %,src/libmtrace/base/%.cc,clock file filters own_memory probe process spawn syscall writer)
FUZZ_SRC_cfi     := $(wildcard src/cfi/*.cc) src/libmtrace/unwind/$(ARCH)/compile.cc src/libmtrace/unwind/stack_memory.cc \
                    $(patsubst %,src/libmtrace/modules/%.cc,c_library linkage object) $(KERNEL)
FUZZ_SRC_options := $(patsubst %,src/libmtrace/%.cc,life/environment life/options modules/c_library modules/linkage \
                    modules/object base/table_file base/turn report/host) $(KERNEL)
FUZZ_OBJ := $(call objects,$(wildcard tests/fuzz/*.cc))
$(FUZZ_OBJ): FLAGS = $(TEST_FLAGS) -Isrc/libmtrace -Isrc/memlog
$(FUZZ_OBJ): $(if $(FUZZER),,$(ready))
define fuzz_rule
$(T)/seeds/$(1): $(BUILD)/obj/tests/fuzz/$(1)_fuzz.o $(if $(FUZZER),,$(BUILD)/obj/tests/fuzz/replay.o) \
    $(if $(FUZZ_SRC_$(1)),$(call objects,$(FUZZ_SRC_$(1))),$(filter-out %/commands/main.o $(if $(FUZZER),$(1:decode=%/symbols/worker.o)),$(TOOL_OBJ)))
	$$(call run,LINK,$$@)$(CXX) $(LDFLAGS) $(FUZZER:1=-fsanitize=fuzzer,address,undefined) -o $$@ $$^ $(TOOL_LIBS) -lpthread
endef
$(foreach target,$(FUZZ_TARGETS),$(eval $(call fuzz_rule,$(target))))
SEEDS := $(FUZZ_TARGETS:%=$(T)/seeds/%)
F     := $(BUILD)/fuzz/tests/seeds
build_fuzzers = +@$(MAKE) --no-print-directory BUILD=$(BUILD)/fuzz CXX=clang++ FUZZER=1 OPT=-O1 $(FUZZ:%=$(F)/%)
fuzz: $(ready)
	$(build_fuzzers)
	@tests/fuzz/run.sh $(F) --seconds $(SECONDS) $(FUZZ)

# ---- Benchmarks: tools/bench/bench.py measures, tools/bench/document.py makes doc/performance.md of
# it, and doc/internals/measurements.md.
# BENCH: options of bench.py (--quick, --only REGEX, --rounds N, --list). As programs are built, without
# frame pointers; once with, for LeakSanitizer, which needs them. measure is static, so that its own
# memory is less than that of any program it measures.
B     := $(BUILD)/tools/bench
BENCH ?=
BENCH_TOOLS := $(addprefix $(B)/,churn churn.fp news paths paths.fp measure lsan_signals.so micro)
BENCH_FLAGS := -O2 -g -fno-builtin -Wall -Wextra -Werror -D_GNU_SOURCE -pthread
$(B)/%.fp: tools/bench/%.cc tools/bench/calls.h $(ready)
	$(call run,MAKE,$@)$(CXX) $(BENCH_FLAGS) -fno-omit-frame-pointer -std=c++20 -o $@ $<
$(B)/%: tools/bench/%.cc tools/bench/calls.h $(ready)
	$(call run,MAKE,$@)$(CXX) $(BENCH_FLAGS) -fomit-frame-pointer -std=c++20 -o $@ $<
$(B)/news: tools/bench/churn.cc tools/bench/calls.h $(ready)
	$(call run,MAKE,$@)$(CXX) $(BENCH_FLAGS) -fomit-frame-pointer -DNEWS -std=c++20 -o $@ $<
$(B)/measure: KIND = -static
$(B)/%.so: tools/bench/%.c $(ready)
	$(call run,MAKE,$@)$(CC) $(BENCH_FLAGS) -std=gnu11 -shared -fPIC -o $@ $<
$(B)/%: tools/bench/%.c $(ready)
	$(call run,MAKE,$@)$(CC) $(BENCH_FLAGS) -std=gnu11 $(KIND) -o $@ $<
# Linked with the library's objects, as the unit tests are, and optimised as the library is.
MICRO := $(call objects,$(wildcard tools/bench/micro/*.cc))
$(MICRO): FLAGS = -Isrc/libmtrace $(COMMON) -fno-omit-frame-pointer
$(MICRO): $(ready)
$(B)/micro: $(MICRO) $(PARTS_OBJ)
	$(call run,LINK,$@)$(CXX) $(LDFLAGS) -o $@ $^ -lbenchmark -lpthread
bench: all $(BENCH_TOOLS)
	@tools/bench/bench.py --build $(BUILD) --output $(BUILD)/bench $(BENCH)
performance: bench
	@tools/bench/document.py --results $(BUILD)/bench/results.json --document doc/performance.md \
		--details doc/internals/measurements.md

# ---- Programs of others under the library, one at a time, as root (namespaces). HOSTS=NAME: one or
# more, with the reasons and where the logs are. All of them make the table of doc/internals/notebook.
HOSTS_RUN = /usr/bin/python3 -B tools/hosts/run.py --build $(BUILD) --output $(BUILD)/hosts
$(T)/check_memlogs: tools/hosts/check_memlogs.cc $(MEMLOG_FILE)
	$(call run,LINK,$@)$(CXX) $(CPPFLAGS) $(filter-out -MMD -MP,$(TEST_FLAGS)) $(CXXFLAGS) $(LDFLAGS) -o $@ $^
hosts: $(if $(filter list,$(HOSTS)),,all $(T)/check_memlogs)
	@$(if $(HOSTS),$(HOSTS_RUN) $(HOSTS:list=--list),rm -rf $(BUILD)/hosts; $(HOSTS_RUN); status=$$?; \
	    /usr/bin/python3 -B tools/hosts/document.py --results $(BUILD)/hosts/results \
	    --document doc/internals/notebook/hosts.md && exit $$status)
