# What takes long, and what `make check` needs of it: the walker's checks, the tables' checkers, fuzz
# targets and benchmarks.

# ---- The walker: code compiled for its tests with and without frame pointers, by both compilers, two
# libraries of one layout and different code, to be loaded in turn at one address, and a preloaded
# library that holds the walker against libunwind inside other programs. Another name for each kind.
U := $(T)/unwind
UNWIND_SRC  := tests/unit/library/unwind
CHAIN_FLAGS := -O2 -g -fPIC -Wall -Wextra -Werror -Isrc/libmtrace -Isrc -Itests
$(foreach w,gcc clang,$(foreach f,fp nofp,\
    $(call built,$U/chain_$w_$f.o,$(UNWIND_SRC)/chain.cc,$($w_cxx) $(CHAIN_FLAGS) $($f) -DCHAIN=chain_$w_$f -c)\
    $(call built,$U/frames_$w_$f.o,tests/walkcheck/frames.cc,$($w_cxx) $(CHAIN_FLAGS) $($f) -fno-builtin -DFRAMES=frames_$w_$f -c)))
FRAMES := $(foreach w,gcc clang,$U/frames_$w_fp.o $U/frames_$w_nofp.o)
$(FRAMES): tests/walkcheck/frames.h
# Hand-written frames, for x86_64.
$(call built,$U/frames.o,$(UNWIND_SRC)/x86_64/frames.S,$(CC) -g -c)
$(T)/unit_library: $(FRAMES:$U/frames_%=$U/chain_%) $(if $(filter x86_64,$(ARCH)),$U/frames.o)
UNWIND_PLUGS := $U/libplug_small.so $U/libplug_large.so
plug := $(CC) -shared -nostdlib -Wl,--build-id=sha1 -DPLUG_FRAME
$(call built,$U/libplug_small.so,$(UNWIND_SRC)/$(ARCH)/plug.S,$(plug)=24)
$(call built,$U/libplug_large.so,$(UNWIND_SRC)/$(ARCH)/plug.S,$(plug)=4104)
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
FUZZ_OBJ     := $(call objects,$(wildcard tests/fuzz/*.cc))
SEEDS        := $(FUZZ_TARGETS:%=$(T)/seeds/%)
$(FUZZ_OBJ): FLAGS = $(TEST_FLAGS) -Isrc/libmtrace -Isrc/memlog
$(FUZZ_OBJ): $(if $(FUZZER),,$(ready))
# Two are about the library; what a target defines itself takes the place of what it would call.
$(T)/seeds/cfi $(T)/seeds/options: $(LIBRARY_PARTS)
$(filter-out %/cfi %/options,$(SEEDS)): $(filter-out %/commands/main.o,$(TOOL_OBJ))
$(SEEDS): $(T)/seeds/%: $(BUILD)/obj/tests/fuzz/%_fuzz.o $(if $(FUZZER),,$(BUILD)/obj/tests/fuzz/replay.o)
	$(call run,LINK,$@)$(CXX) $(LDFLAGS) $(FUZZER:1=-fsanitize=fuzzer,address,undefined -Wl,-z,muldefs) -o $@ $^ $(TOOL_LIBS) -lpthread
build_fuzzers = +@$(MAKE) --no-print-directory BUILD=$(BUILD)/fuzz CXX=clang++ FUZZER=1 OPT=-O1 $(FUZZ:%=$(BUILD)/fuzz/tests/seeds/%)
fuzz: $(ready)
	$(build_fuzzers)
	@tests/fuzz/run.sh $(BUILD)/fuzz/tests/seeds --seconds $(SECONDS) $(FUZZ)

# ---- Benchmarks. BENCH: options of bench.py (--quick, --only REGEX, --rounds N, --list). As programs are built, without
# frame pointers; once with, for LeakSanitizer, which needs them. measure is static, so that its own
# memory is less than that of any program it measures.
B     := $(BUILD)/tools/bench
BENCH_TOOLS := $(addprefix $(B)/,churn churn.fp news paths paths.fp measure lsan_signals.so micro)
BENCH_FLAGS := -O2 -g -fno-builtin -Wall -Wextra -Werror -D_GNU_SOURCE -pthread
$(foreach p,churn paths,$(call built,$B/$p,tools/bench/$p.cc,$(CXX) $(BENCH_FLAGS) -std=c++20 $(nofp))\
                        $(call built,$B/$p.fp,tools/bench/$p.cc,$(CXX) $(BENCH_FLAGS) -std=c++20 $(fp)))
$(call built,$B/news,tools/bench/churn.cc,$(CXX) $(BENCH_FLAGS) -std=c++20 $(nofp) -DNEWS)
$(call built,$B/measure,tools/bench/measure.c,$(CC) $(BENCH_FLAGS) -std=gnu11 -static)
$(call built,$B/lsan_signals.so,tools/bench/lsan_signals.c,$(CC) $(BENCH_FLAGS) -std=gnu11 -shared -fPIC)
$B/churn $B/churn.fp $B/news $B/paths $B/paths.fp: tools/bench/calls.h
# Linked with the library's objects, as the unit tests are, and optimised as the library is.
MICRO := $(call objects,$(wildcard tools/bench/micro/*.cc))
$(MICRO): FLAGS = -Isrc/libmtrace $(COMMON) -fno-omit-frame-pointer
$(MICRO): $(ready)
$(B)/micro: $(MICRO) $(PARTS_OBJ)
	$(call run,LINK,$@)$(CXX) $(LDFLAGS) -o $@ $^ -lbenchmark -lpthread
bench: all $(BENCH_TOOLS)
	@tools/bench/bench.py --build $(BUILD) --output $(BUILD)/bench $(BENCH)

# What the tests' own reader says of the memlogs of programs of others.
$(T)/check_memlogs: tools/hosts/check_memlogs.cc $(MEMLOG_FILE)
	$(call run,LINK,$@)$(CXX) $(CPPFLAGS) $(filter-out -MMD -MP,$(TEST_FLAGS)) $(CXXFLAGS) $(LDFLAGS) -o $@ $^
