# Tests: the programs under test, the test binaries, and the targets that run them.
#
#   tests/unit/library   units of libmtrace.so, linked with its PARTS_OBJ and its options
#   tests/unit/tool      units of memlog, linked with its objects
#   tests/host           programs run under the library; no product code is linked
#   tests/structure      what the sources include and what the built library needs and exports
#   tests/support        directories, files, processes and shell commands of all of these
#   tests/programs       the programs that the host tests run

T        := $(BUILD)/tests
PROGRAMS := $(T)/programs
clang_target := $(if $(CROSS),--target=$(CROSS:%-=%))

# Not optimised: the tests wait for the programs they run, not the other way round. But for what
# reads every memlog of every test, which is linked first, since of functions that several objects
# have, the linker takes those of the first; and what looks at every line of src.
TEST_FLAGS := $(filter-out -O% -Isrc/memlog,$(TOOL_FLAGS)) -O0 -Itests/support -Itests/host
MEMLOG_FILE := $(call objects,tests/host/memlog_file.cc)
STRING_TEST := $(call objects,tests/unit/library/string_functions_test.cc)
test_units   = $(call units,12 $(filter-out tests/host/memlog_file.cc %/string_functions_test.cc,$(wildcard $(1))))
LIBRARY_TESTS   := $(call test_units,tests/unit/library/*.cc tests/unit/library/$(ARCH)/*.cc) $(STRING_TEST)
TOOL_TESTS      := $(call test_units,tests/unit/tool/*.cc)
HOST_TESTS      := $(MEMLOG_FILE) $(call test_units,tests/host/*.cc)
STRUCTURE_TESTS := $(call test_units,tests/structure/*.cc)
SUPPORT         := $(call test_units,tests/support/*.cc)
TEST_OBJ := $(LIBRARY_TESTS) $(TOOL_TESTS) $(HOST_TESTS) $(STRUCTURE_TESTS) $(SUPPORT)
$(TEST_OBJ): FLAGS = $(TEST_FLAGS)
$(TOOL_TESTS): FLAGS = $(TEST_FLAGS) -Isrc/memlog
$(LIBRARY_TESTS): FLAGS = $(TEST_FLAGS) -Isrc/libmtrace -Itests/unit/library
# Its loops are not to become calls of what they define.
$(STRING_TEST): FLAGS = $(TEST_FLAGS) -Isrc/libmtrace -Itests/unit/library -fno-builtin
$(MEMLOG_FILE): FLAGS = $(TEST_FLAGS) -O2
$(STRUCTURE_TESTS): FLAGS = $(TEST_FLAGS) -O1
$(TEST_OBJ): | $(BUILD)/.test-deps
# g++ 12 crashed on headers that were compiled for another optimisation, once in many builds.
PRECOMPILED_TESTS := $(filter-out $(MEMLOG_FILE) $(STRUCTURE_TESTS),$(TEST_OBJ))
$(PRECOMPILED_TESTS): PCH = -include $(T)/headers.h
$(PRECOMPILED_TESTS): $(T)/headers.h.gch
$(T)/headers.h.gch: tests/headers.h $(BUILD)/flags | $(BUILD)/.test-deps
	$(call headers_rule,$(CXX),$(TEST_FLAGS) $(CXXFLAGS))

link_test = $(call run,LINK,$@)$(CXX) $(LDFLAGS) $(if $(COVERAGE),--coverage) -o $@ $^
$(T)/unit_library: $(LIBRARY_TESTS) $(SUPPORT) $(PARTS_OBJ) $(call objects,src/libmtrace/life/environment.cc src/libmtrace/life/options.cc)
	$(link_test) -lgtest -lgtest_main -lpthread $(TOOL_LIBS)
$(T)/unit_tool: $(TOOL_TESTS) $(SUPPORT) $(filter-out %/commands/main.o,$(TOOL_OBJ))
	$(link_test) $(TOOL_SANITIZE) -lgtest -lgtest_main -lpthread $(TOOL_LIBS)
$(T)/host_tests: $(HOST_TESTS) $(SUPPORT)
	$(link_test) -lgtest -lgtest_main -lpthread -lfmt
$(T)/structure_tests: $(STRUCTURE_TESTS) $(SUPPORT)
	$(link_test) -lgtest -lgtest_main -lpthread -lfmt
# The longest first.
TEST_BINARIES := $(addprefix $(T)/,host_tests structure_tests unit_library unit_tool)

# ---- The programs under test. plugin_NAME.cc becomes a library to load. -fno-builtin: no allocation
# is left out because its result is not used.
PROGRAM_FLAGS := -g -fno-builtin -Wall -Wextra -Werror -D_GNU_SOURCE -Iinclude -Itests/programs -pthread
PROGRAM_OPT   ?= -O1
c   := -std=gnu11
cxx := -std=c++20 -fsized-deallocation
PROGRAM_LIBS_model := $(ABSL_LIBS)
PROGRAM_LIBS_gtest_leaky := -lgtest
$(T)/program_flags: always
	$(call keep,$(CC) $(CXX) $(PROGRAM_FLAGS) $(PROGRAM_OPT))
PROGRAM_NEEDS := $(wildcard include/*.h tests/programs/*.h) $(T)/program_flags | $(BUILD)/.build-deps
ready := | $(BUILD)/.test-deps
$(PROGRAMS)/gtest_leaky: $(ready)
$(PROGRAMS)/%: tests/programs/%.c $(PROGRAM_NEEDS)
	$(call run,MAKE,$@)$(CC) $(PROGRAM_FLAGS) $(PROGRAM_OPT) $(c) -o $@ $< $(PROGRAM_LIBS_$*)
$(PROGRAMS)/%: tests/programs/%.cc $(PROGRAM_NEEDS)
	$(call run,MAKE,$@)$(CXX) $(PROGRAM_FLAGS) $(PROGRAM_OPT) $(cxx) -o $@ $< $(PROGRAM_LIBS_$*)
$(PROGRAMS)/%.so: tests/programs/%.cc $(PROGRAM_NEEDS)
	$(call run,MAKE,$@)$(CXX) $(PROGRAM_FLAGS) $(PROGRAM_OPT) -std=c++20 -shared -fPIC -fsemantic-interposition -o $@ $<
PLUGINS      := $(wildcard tests/programs/plugin_*.cc)
PROGRAM_LIST := $(patsubst tests/programs/%,$(PROGRAMS)/%,$(PLUGINS:.cc=.so) $(basename \
                  $(filter-out $(PLUGINS) %/truth_c.c %/truth_cxx.cc %/sanitized.c,$(wildcard tests/programs/*.c tests/programs/*.cc))))

# The truth programs in every combination, truth_c.gcc.O2.pie.nofp and so on; and one with each
# sanitizer that has an allocator: sanitized.gcc.address.
part = $(word $(1),$(subst ., ,$(@F)))
gcc_c     := $(CROSS)gcc $(c)
clang_c   := clang $(clang_target) $(c)
gcc_cxx   := $(CROSS)g++ $(cxx)
clang_cxx := clang++ $(clang_target) $(cxx)
pie       := -fPIE -pie
nopie     := -fno-pie -no-pie
fp        := -fno-omit-frame-pointer
nofp      := -fomit-frame-pointer
TRUTHS_C  := $(foreach w,gcc clang,$(foreach o,O0 O2,$(foreach p,pie nopie,$(foreach f,fp nofp,$(PROGRAMS)/truth_c.$(w).$(o).$(p).$(f)))))
TRUTHS    := $(TRUTHS_C) $(TRUTHS_C:$(PROGRAMS)/truth_c.%=$(PROGRAMS)/truth_cxx.%)
$(TRUTHS_C): tests/programs/truth_c.c
$(filter-out $(TRUTHS_C),$(TRUTHS)): tests/programs/truth_cxx.cc
$(TRUTHS): $(PROGRAM_NEEDS) $(BUILD)/.test-deps
	$(call run,MAKE,$@)$($(call part,2)_$(patsubst truth_%,%,$(call part,1))) $(PROGRAM_FLAGS) -$(call part,3) \
	    $($(call part,4)) $($(call part,5)) -Wl,--build-id -o $@ $(filter %/$(call part,1).c %/$(call part,1).cc,$^)
SANITIZED := $(addprefix $(PROGRAMS)/sanitized.,gcc.address gcc.leak gcc.thread clang.address clang.leak clang.thread clang.memory)
$(SANITIZED): tests/programs/sanitized.c $(ready)
	$(call run,MAKE,$@)$(call part,2) -g -O1 -fno-builtin -pthread -fsanitize=$(call part,3) -o $@ $<
PROGRAM_LIST += $(TRUTHS) $(SANITIZED)

# Of another libc, and of another word size. foreign_loader's loader is musl's under a name that nobody
# knows. Debian's musl-gcc leaves the table of call-frame information out, which compilers of systems
# with musl make.
MUSL_GCC   := $(if $(CROSS),$(CROSS)gcc -specs=/usr/lib/$(ARCH)-linux-musl/musl-gcc.specs,musl-gcc)
MUSL_FLAGS := $(PROGRAM_FLAGS) $(c) -Dpvalloc=valloc -Wl,--eh-frame-hdr -Wl,--build-id
MUSL_TRUTH := $(foreach level,O0 O2,$(foreach pie,pie nopie,$(PROGRAMS)/musl/truth_c.$(level).$(pie)))
foreign_musl   := musl-gcc -O1
foreign_loader := cp -L /lib/ld-musl-$(MACHINE).so.1 $(PROGRAMS)/unknown-loader.so && \
                  musl-gcc -O1 -Wl,--dynamic-linker='$(abspath $(PROGRAMS))/unknown-loader.so'
foreign_i386   := gcc -m32 -O1 -fpie -pie -fno-stack-protector -nostdlib -ffreestanding -Wl,--dynamic-linker=/lib/ld-linux.so.2
$(PROGRAMS)/foreign_loader: tests/programs/foreign/musl.c
$(PROGRAMS)/foreign_%: tests/programs/foreign/%.c $(ready)
	$(call run,MAKE,$@)$(foreign_$*) -o $@ $<
$(MUSL_TRUTH): tests/programs/truth_c.c $(PROGRAM_NEEDS) $(BUILD)/.test-deps
	$(call run,MAKE,$@)$(MUSL_GCC) $(MUSL_FLAGS) -$(call part,2) $($(call part,3)) -o $@ $<
$(PROGRAMS)/musl/ways: tests/programs/foreign/musl_ways.c $(PROGRAM_NEEDS) $(BUILD)/.test-deps
	$(call run,MAKE,$@)$(MUSL_GCC) $(MUSL_FLAGS) -O2 -o $@ $<
$(PROGRAMS)/musl/plugin.so: tests/programs/foreign/musl_plugin.c $(PROGRAM_NEEDS) $(BUILD)/.test-deps
	$(call run,MAKE,$@)$(MUSL_GCC) $(MUSL_FLAGS) -O2 -shared -fPIC -o $@ $<
PROGRAM_LIST += $(addprefix $(PROGRAMS)/foreign_,musl loader i386) $(MUSL_TRUTH) $(PROGRAMS)/musl/ways $(PROGRAMS)/musl/plugin.so

# Stripped, with the debug information in a file beside it (debuglink) or by build-id elsewhere.
STRIPPED := $(PROGRAMS)/stripped
$(STRIPPED)/truth_c: $(PROGRAMS)/truth_c.gcc.O2.pie.nofp
	$(call run,MAKE,$@)cp $< $@ && objcopy --only-keep-debug $@ $@.debug && strip $@ && \
	    cd $(@D) && objcopy --add-gnu-debuglink=$(@F).debug $(@F)
$(STRIPPED)/truth_cxx: $(PROGRAMS)/truth_cxx.gcc.O2.pie.nofp
	$(call run,MAKE,$@)id=$$(readelf -n $< | sed -n 's/.*Build ID: //p') && [ -n "$$id" ] && \
	    directory=$(STRIPPED)/symbols/.build-id/$${id:0:2} && mkdir -p $$directory && \
	    objcopy --only-keep-debug $< $$directory/$${id:2}.debug && cp $< $@ && strip $@
PROGRAM_LIST += $(STRIPPED)/truth_c $(STRIPPED)/truth_cxx

# Another processor's: not those that name registers and instructions of x86_64, that are linked with
# more than libc, or that have an emulator take part in what they measure.
NOT_CROSSED := $(addprefix $(PROGRAMS)/,blocking_calls continuations deaths dispatches filters gtest_leaky \
    held_blocks jit_frames misaligned model partitions plugin_unaligned.so python_embedded random_frames \
    sandboxes state unaligned sanitized.% foreign_% stripped/%)
programs: $(if $(CROSS),$(filter-out $(NOT_CROSSED),$(PROGRAM_LIST)),$(PROGRAM_LIST))

include tests/long.mk

# ---- The targets. That clang++ takes the library's sources, too, but for code generation:
$(T)/clang.ok: $(LIB_SRC) $(wildcard src/format/*.h src/cfi/*.h src/libmtrace/*/*.h) $(ready)
	$(call run,CLANG,src)printf '%s\n' $(LIB_SRC) | xargs -P $(JOBS) -I{} clang++ -fsyntax-only \
	    $(CPPFLAGS) $(filter-out -MMD -MP,$(LIB_FLAGS)) {} && touch $@
.PHONY: check check-quick check-tool check-long check-aarch64 coverage demo pictures programs tests
tests: $(TEST_BINARIES) programs share $(T)/clang.ok $(UNWIND_PLUGS) $(SEEDS) $(BENCH_TOOLS) $(T)/check_memlogs
run_tests = tests/run_tests.sh $(BUILD)
filter_of = $(subst $(empty) $(empty),:,$(patsubst %,%.*,$(1)))
# The checkers of the tables and of the walker, and what runs at random for a while, are for a night.
# make check runs the first of these, too, when what they check is not what they last found good:
# tests/checked has that sum, and $(T)/checked has those of this build.
LONG_SUITES := CheckersTest *FuzzTest SoakTest *WalkerAgainstLibunwind
ifneq ($(filter check check-long,$(MAKECMDGOALS)),)
CHECKED_SUM := $(shell cat $(sort $(wildcard $(foreach folder,base ledger record unwind unwind/$(ARCH),\
                 src/libmtrace/$(folder)/*.*) tests/schedule/*.* tests/tsan/*.*)) | sha256sum | cut -c1-16)
UNCHECKED   := $(if $(filter $(CHECKED_SUM),$(shell cat tests/checked $(T)/checked 2>/dev/null)),,CheckersTest)
endif
check: all tests $(if $(UNCHECKED),$(CHECKERS))
	@GTEST_FILTER="$${GTEST_FILTER:--$(call filter_of,$(filter-out $(UNCHECKED),$(LONG_SUITES)))}" $(run_tests) $(TEST_BINARIES)
	@[ -n "$$GTEST_FILTER" ] || echo $(CHECKED_SUM) >>$(T)/checked
check-long: all tests $(CHECKERS) $(WALKCHECK)
	$(build_fuzzers)
	@GTEST_FILTER="$${GTEST_FILTER:-$(call filter_of,$(LONG_SUITES))}" $(run_tests) $(T)/host_tests
	@[ -n "$$GTEST_FILTER" ] || echo $(CHECKED_SUM) >tests/checked
# The units and the structure, with the few programs that they run and libraries that they load. Not
# the suites that take more than two seconds: nine tenths of the time.
UNIT_PROGRAMS := $(addprefix $(PROGRAMS)/,accounting attached deaths gtest_leaky many_stacks shop temporaries)
QUICK_WITHOUT := BlockPlaces BuildSystems Check Completion Compressed DebugFiles Decode EhFrame Event Facts Install \
    Lean MadeReports Manual Pack Partial Peak PythonLines Reachability Region Report Resolve ResourceTable Run Simulated \
    Snapshot Sql StackTable Strip Tasks Terminal Trend Walk Worker $(addprefix Of/Transcript.IsAsExpected/,backtraces \
    browser check event_blocks large programs run sql_agrees)
check-quick: all $(T)/unit_library $(T)/unit_tool $(T)/structure_tests $(UNIT_PROGRAMS) $(UNWIND_PLUGS) share
	@GTEST_FILTER="$${GTEST_FILTER:--$(subst $(empty) $(empty),:,$(QUICK_WITHOUT:%=%*))}" \
	    $(run_tests) $(T)/unit_library $(T)/unit_tool $(T)/structure_tests
check-tool: all $(T)/unit_tool $(UNIT_PROGRAMS)
	@$(run_tests) $(T)/unit_tool
# Which lines the unit tests reach, of memlog and of what libmtrace.so is made of. The library itself
# has no runtime for counters: what the host tests reach inside programs is not in it.
coverage: all $(UNIT_PROGRAMS) $(UNWIND_PLUGS) share
	@$(MAKE) --no-print-directory BUILD=$(BUILD)-coverage COVERAGE=1 OPT='-O0 -g' \
	    $(BUILD)-coverage/tests/unit_library $(BUILD)-coverage/tests/unit_tool
	@tests/coverage.sh $(BUILD) $(BUILD)-coverage $(addprefix $(BUILD)-coverage/tests/,unit_library unit_tool)
# libmtrace.so and programs of aarch64 under an emulator, with this machine's memlog. What runs there
# is in doc/internals/processors.md.
check-aarch64: $(BUILD)/.aarch64-deps all $(T)/host_tests
	@$(MAKE) --no-print-directory ARCH=aarch64 BUILD=$(BUILD)-aarch64 $(addprefix $(BUILD)-aarch64/,libmtrace.so \
	    tests/unit_library tests/programs/walkcheck.so tests/unwind/libplug_small.so tests/unwind/libplug_large.so) programs
	@MTRACE_SOURCE_DIR='$(CURDIR)' MTRACE_BUILD_DIR='$(abspath $(BUILD)-aarch64)' \
	    $(EMULATOR) $(BUILD)-aarch64/tests/unit_library --gtest_brief=1 \
	    --gtest_filter="-$$(sed '/^#/d' tests/unit/library/not_emulated.txt | paste -sd:)"
	@MTRACE_TARGET_DIR='$(abspath $(BUILD)-aarch64)' MTRACE_EMULATOR='$(EMULATOR)' \
	    GTEST_FILTER="$$(sed '/^#/d' tests/host/emulated.txt | paste -sd: | sed 's/:-/-/')" $(run_tests) $(T)/host_tests
demo: all $(PROGRAMS)/demo_service
	@tests/demo.sh $(BUILD)
pictures: all
	@doc/pictures/make.sh $(BUILD)
