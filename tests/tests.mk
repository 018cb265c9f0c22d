# Tests: the programs under test, the test binaries, and the targets check and demo.
#
#   tests/unit/library   units of libmtrace.so, linked with its PARTS_OBJ and its options
#   tests/unit/tool      units of memlog, linked with its objects
#   tests/host           programs run under the library; no product code is linked
#   tests/structure      what the sources include and what the built library needs and exports
#   tests/support        directories, files, processes and shell commands of all of these
#   tests/programs       the programs that the host tests run
#   tools/bench          benchmarks: bench.mk
#   tests/schedule       the tables in every order of a few threads: schedule.mk
#   tests/tsan           the tables' tests under ThreadSanitizer: tsan.mk
#   tests/fuzz           libFuzzer targets: fuzz.mk
#   tools/hosts          programs of others, each plain and under the library: hosts.mk

TEST_BUILD   := $(BUILD)/tests
PROGRAMS     := $(TEST_BUILD)/programs
TEST_BINARIES :=
TEST_EXTRA   := share
CHECKERS     :=
LONG_EXTRA    = $(CHECKERS)
PROGRAM_LIST :=

# clang compiles for each processor.
clang_target := $(if $(CROSS),--target=$(CROSS:%-=%))
-include tests/walker.mk
include tools/bench/bench.mk
include tests/fuzz/fuzz.mk
include tests/tsan/tsan.mk
include tests/schedule/schedule.mk
include tools/hosts/hosts.mk

# Not optimised: the tests wait for the programs they run, not the other way round.
TEST_FLAGS := $(filter-out -O%,$(COMMON)) -O0 -g1 -Itests/support -Itests/host
# Each half of the unit tests sees one half of the sources.
$(TEST_BUILD)/obj/unit/library/%.o: TEST_FLAGS += -Isrc/libmtrace -Itests/unit/library
$(TEST_BUILD)/obj/unit/tool/%.o: TEST_FLAGS += -Isrc/memlog $(TOOL_SANITIZE)
$(TEST_BUILD)/unit_tool: LDFLAGS += $(TOOL_SANITIZE)
$(TEST_BUILD)/unit_library $(TEST_BUILD)/unit_tool: LDFLAGS += $(if $(COVERAGE),--coverage)
# But for what reads every memlog of every test; it is linked first (below), since of functions that
# several objects have, the linker takes those of the first.
$(TEST_BUILD)/obj/host/memlog_file.o: TEST_FLAGS += -O2
# And what looks at every line of src.
$(TEST_BUILD)/obj/structure/%.o: TEST_FLAGS += -O1
test_headers = -include $(TEST_BUILD)/headers.h
# g++ 12 crashed on headers that were compiled for another optimisation, once in many builds.
$(TEST_BUILD)/obj/host/memlog_file.o $(TEST_BUILD)/obj/structure/%.o: test_headers :=
compile_test = $(CXX) $(KEEP_GARBAGE) $(CPPFLAGS) $(TEST_FLAGS) $(CXXFLAGS)
$(TEST_BUILD)/obj/%.o: tests/%.cc tests/tests.mk $(TEST_BUILD)/headers.h.gch | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(compile_test) $(test_headers) -c $< -o $@
$(TEST_BUILD)/obj/%.o: $(TEST_BUILD)/obj/%.cc tests/tests.mk $(TEST_BUILD)/headers.h.gch | $(BUILD)/.test-deps
	$(call say,CXX,tests/$(subst unity/,,$*).cc ...)
	$(Q)$(compile_test) $(UNITY_FLAGS) $(test_headers) -c $< -o $@
$(TEST_BUILD)/headers.h.gch: tests/headers.h Makefile tests/tests.mk | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	@echo '#include "$(abspath $<)"' > $(@:.gch=)
	$(Q)$(call all_headers,$(compile_test)) $(@:.gch=) -o $@
# Compiled some at a time, as memlog's sources are: a third of the time.
TEST_UNITY   := $(if $(filter-out 0,$(UNITY)),6)
TESTS_ALONE  := tests/host/memlog_file.cc tests/unit/library/string_functions_test.cc
test_sources  = $(sort $(wildcard $(1)))
test_chunks   = $(if $(TEST_UNITY),$(call unity_chunks,$(TEST_BUILD)/obj/$(patsubst tests/%/,%,$(dir $(1))),\
                  $(filter-out $(TESTS_ALONE),$(test_sources)),$(TEST_UNITY)))
test_objects  = $(patsubst %.cc,%.o,$(call unity_files,$(test_chunks))) \
                $(patsubst tests/%.cc,$(TEST_BUILD)/obj/%.o,$(if $(TEST_UNITY),$(filter $(TESTS_ALONE),$(test_sources)),$(test_sources)))

# Its loops are not to become calls of what they define.
$(TEST_BUILD)/obj/unit/library/string_functions_test.o: TEST_FLAGS += -fno-builtin
UNIT_LIBRARY_OBJ := $(call test_objects,tests/unit/library/*.cc) $(call test_objects,tests/unit/library/$(ARCH)/*.cc)
UNIT_TOOL_OBJ    := $(call test_objects,tests/unit/tool/*.cc)
SUPPORT_OBJ      := $(call test_objects,tests/support/*.cc)
HOST_TEST_OBJ    := $(call test_objects,tests/host/*.cc)
STRUCTURE_OBJ    := $(call test_objects,tests/structure/*.cc)

TEST_CHUNKS      := $(foreach folder,unit/library unit/library/$(ARCH) unit/tool support host structure,$(call test_chunks,tests/$(folder)/*.cc))
UNITY_CHUNKS     += $(TEST_CHUNKS)
$(call unity_files,$(TEST_CHUNKS)): unity ;

$(TEST_BUILD)/unit_library: $(UNIT_LIBRARY_OBJ) $(SUPPORT_OBJ) $(PARTS_OBJ) \
                            $(addprefix $(BUILD)/obj/libmtrace/life/,environment.o options.o)
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LDFLAGS) -o $@ $^ $(TEST_LIBS) $(UNIT_LIBRARY_LIBS)
$(TEST_BUILD)/unit_tool: $(UNIT_TOOL_OBJ) $(SUPPORT_OBJ) $(filter-out $(BUILD)/obj/memlog/surface/commands/main.o,$(TOOL_OBJ))
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LDFLAGS) -o $@ $^ $(TEST_LIBS) $(UNIT_TOOL_LIBS)
$(TEST_BUILD)/host_tests: $(TEST_BUILD)/obj/host/memlog_file.o \
                          $(filter-out %/memlog_file.o,$(HOST_TEST_OBJ)) $(SUPPORT_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LDFLAGS) -o $@ $^ -lgtest -lgtest_main -lpthread -lfmt $(HOST_TEST_LIBS)
$(TEST_BUILD)/structure_tests: $(STRUCTURE_OBJ) $(SUPPORT_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LDFLAGS) -o $@ $^ -lgtest -lgtest_main -lpthread -lfmt

# The longest first.
TEST_BINARIES += $(TEST_BUILD)/host_tests $(TEST_BUILD)/structure_tests \
                 $(if $(UNIT_LIBRARY_OBJ),$(TEST_BUILD)/unit_library) \
                 $(if $(UNIT_TOOL_OBJ),$(TEST_BUILD)/unit_tool)

# ---- The programs under test. plugin_NAME.cc becomes a library to load.
# -fno-builtin: no allocation is left out because its result is not used.
PROGRAM_FLAGS := -g -fno-builtin -Wall -Wextra -Werror -D_GNU_SOURCE -Iinclude -Itests/programs \
                 -pthread
PROGRAM_OPT   ?= -O1
PROGRAM_LIBS_model := $(ABSL_LIBS)
PROGRAM_LIBS_gtest_leaky := -lgtest
$(PROGRAMS)/many_stacks $(PROGRAMS)/sampling: tests/programs/call_paths.h
$(PROGRAMS)/hostile $(PROGRAMS)/shortage: tests/programs/two_ways.h
$(PROGRAMS)/gtest_leaky: include/mtrace.h include/mtrace_gtest.h
$(PROGRAMS)/resources: include/mtrace_resources.h
$(PROGRAMS)/%: tests/programs/%.c tests/programs/truth.h include/mtrace.h \
    tests/tests.mk | $(BUILD)/.build-deps
	@mkdir -p $(@D)
	$(call say,MAKE,$@)
	$(Q)$(CC) $(PROGRAM_FLAGS) $(PROGRAM_OPT) -std=gnu11 -o $@ $< $(PROGRAM_LIBS_$*)
$(PROGRAMS)/%: tests/programs/%.cc tests/programs/truth.h include/mtrace.h tests/tests.mk | $(BUILD)/.build-deps
	@mkdir -p $(@D)
	$(call say,MAKE,$@)
	$(Q)$(CXX) $(PROGRAM_FLAGS) $(PROGRAM_OPT) -std=c++20 -fsized-deallocation -o $@ $< \
	    $(PROGRAM_LIBS_$*)
$(PROGRAMS)/%.so: tests/programs/%.cc tests/tests.mk | $(BUILD)/.build-deps
	@mkdir -p $(@D)
	$(call say,MAKE,$@)
	$(Q)$(CXX) $(PROGRAM_FLAGS) $(PROGRAM_OPT) -std=c++20 -shared -fPIC \
	    -fsemantic-interposition -o $@ $<

$(PROGRAMS)/gtest_leaky: | $(BUILD)/.test-deps

PROGRAM_SOURCES := $(notdir $(wildcard tests/programs/*.c tests/programs/*.cc))
PLUGIN_SOURCES  := $(filter plugin_%.cc,$(PROGRAM_SOURCES))
TRUTH_SOURCES   := truth_c.c truth_cxx.cc
PROGRAM_LIST += $(addprefix $(PROGRAMS)/,$(basename \
                  $(filter-out $(PLUGIN_SOURCES) $(TRUTH_SOURCES) sanitized.c,$(PROGRAM_SOURCES)))) \
                $(patsubst %.cc,$(PROGRAMS)/%.so,$(PLUGIN_SOURCES))

# The truth programs in every combination: truth_c.gcc.O2.pie.nofp and so on.
truth_gcc_c     := $(CROSS)gcc -std=gnu11
truth_clang_c   := clang $(clang_target) -std=gnu11
truth_gcc_cxx   := $(CROSS)g++ -std=c++20
truth_clang_cxx := clang++ $(clang_target) -std=c++20 -fsized-deallocation
truth_pie       := -fPIE -pie
truth_nopie     := -fno-pie -no-pie
truth_fp        := -fno-omit-frame-pointer
truth_nofp      := -fomit-frame-pointer
# $(1) source $(2) language $(3) compiler $(4) level $(5) pie $(6) frame pointer
define truth_rule
$(PROGRAMS)/$(basename $(1)).$(3).$(4).$(5).$(6): tests/programs/$(1) tests/programs/truth.h \
    tests/tests.mk | $$(BUILD)/.test-deps
	@mkdir -p $$(@D)
	$$(call say,MAKE,$$@)
	$$(Q)$$(truth_$(3)_$(2)) $$(PROGRAM_FLAGS) -$(4) $$(truth_$(5)) $$(truth_$(6)) -Wl,--build-id \
	    -o $$@ $$<
PROGRAM_LIST += $(PROGRAMS)/$(basename $(1)).$(3).$(4).$(5).$(6)
endef
$(foreach compiler,gcc clang,$(foreach level,O0 O2,$(foreach pie,pie nopie,$(foreach fp,fp nofp,\
  $(eval $(call truth_rule,truth_c.c,c,$(compiler),$(level),$(pie),$(fp)))\
  $(eval $(call truth_rule,truth_cxx.cc,cxx,$(compiler),$(level),$(pie),$(fp)))))))

# With each sanitizer that has an allocator: sanitized.gcc.address and so on.
SANITIZED := $(addprefix gcc.,address leak thread) $(addprefix clang.,address leak thread memory)
define sanitized_rule
$(PROGRAMS)/sanitized.$(1): tests/programs/sanitized.c tests/tests.mk | $$(BUILD)/.test-deps
	@mkdir -p $$(@D)
	$$(call say,MAKE,$$@)
	$$(Q)$(word 1,$(subst ., ,$(1))) -g -O1 -fno-builtin -pthread \
	    -fsanitize=$(word 2,$(subst ., ,$(1))) -o $$@ $$<
PROGRAM_LIST += $(PROGRAMS)/sanitized.$(1)
endef
$(foreach one,$(SANITIZED),$(eval $(call sanitized_rule,$(one))))

# Of another libc, and of another word size.
$(PROGRAMS)/foreign_musl: tests/programs/foreign/musl.c tests/tests.mk | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(call say,MAKE,$@)
	$(Q)musl-gcc -O1 -o $@ $<
# Its loader is musl's under a name that nobody knows.
$(PROGRAMS)/foreign_loader: tests/programs/foreign/musl.c tests/tests.mk | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(call say,MAKE,$@)
	$(Q)cp -L /lib/ld-musl-$(MACHINE).so.1 $(@D)/unknown-loader.so
	$(Q)musl-gcc -O1 -Wl,--dynamic-linker='$(abspath $(@D))/unknown-loader.so' -o $@ $<
$(PROGRAMS)/foreign_i386: tests/programs/foreign/i386.c tests/tests.mk | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(call say,MAKE,$@)
	$(Q)gcc -m32 -O1 -fpie -pie -fno-stack-protector -nostdlib -ffreestanding \
	    -Wl,--dynamic-linker=/lib/ld-linux.so.2 -o $@ $<
PROGRAM_LIST += $(PROGRAMS)/foreign_musl $(PROGRAMS)/foreign_loader $(PROGRAMS)/foreign_i386

# With musl: truth_c, and what is special there. Debian's musl-gcc leaves the table of call-frame
# information out, which compilers of systems with musl make.
MUSL_GCC   := $(if $(CROSS),$(CROSS)gcc -specs=/usr/lib/$(ARCH)-linux-musl/musl-gcc.specs,musl-gcc)
MUSL_FLAGS := $(PROGRAM_FLAGS) -std=gnu11 -Dpvalloc=valloc -Wl,--eh-frame-hdr -Wl,--build-id
MUSL_TRUTH := $(foreach level,O0 O2,$(foreach pie,pie nopie,$(PROGRAMS)/musl/truth_c.$(level).$(pie)))
$(MUSL_TRUTH): tests/programs/truth_c.c tests/programs/truth.h tests/tests.mk | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(call say,MAKE,$@)
	$(Q)$(MUSL_GCC) $(MUSL_FLAGS) -$(word 2,$(subst ., ,$(@F))) $(truth_$(word 3,$(subst ., ,$(@F)))) -o $@ $<
$(PROGRAMS)/musl/%: tests/programs/foreign/musl_%.c include/mtrace.h tests/tests.mk | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(call say,MAKE,$@)
	$(Q)$(MUSL_GCC) $(MUSL_FLAGS) -O2 -o $@ $<
$(PROGRAMS)/musl/%.so: tests/programs/foreign/musl_%.c tests/tests.mk | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(call say,MAKE,$@)
	$(Q)$(MUSL_GCC) $(MUSL_FLAGS) -O2 -shared -fPIC -o $@ $<
PROGRAM_LIST += $(MUSL_TRUTH) $(PROGRAMS)/musl/ways $(PROGRAMS)/musl/plugin.so

# Stripped, with the debug information in a file beside it (debuglink) or by build-id elsewhere.
STRIPPED := $(PROGRAMS)/stripped
$(STRIPPED)/truth_c: $(PROGRAMS)/truth_c.gcc.O2.pie.nofp
	@mkdir -p $(@D)
	$(call say,MAKE,$@)
	$(Q)cp $< $@ && objcopy --only-keep-debug $@ $@.debug && strip $@ && \
	    cd $(@D) && objcopy --add-gnu-debuglink=$(@F).debug $(@F)
$(STRIPPED)/truth_cxx: $(PROGRAMS)/truth_cxx.gcc.O2.pie.nofp
	@mkdir -p $(@D)
	$(call say,MAKE,$@)
	$(Q)id=$$(readelf -n $< | sed -n 's/.*Build ID: //p') && [ -n "$$id" ] && \
	    directory=$(STRIPPED)/symbols/.build-id/$${id:0:2} && mkdir -p $$directory && \
	    objcopy --only-keep-debug $< $$directory/$${id:2}.debug && cp $< $@ && strip $@
PROGRAM_LIST += $(STRIPPED)/truth_c $(STRIPPED)/truth_cxx

# That clang++ takes the library's sources, too, but for code generation.
$(TEST_BUILD)/clang.ok: $(LIB_SRC) $(wildcard src/format/*.h src/cfi/*.h src/libmtrace/*/*.h) tests/tests.mk | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(call say,CLANG,src)
	$(Q)printf '%s\n' $(LIB_SRC) | xargs -P $(JOBS) -I{} clang++ -fsyntax-only \
	    $(CPPFLAGS) $(filter-out -MMD -MP,$(LIB_FLAGS)) {}
	@touch $@
TEST_EXTRA += $(TEST_BUILD)/clang.ok

# Another processor's: not those that name registers and instructions of x86_64, that are linked with
# more than libc, or that have an emulator take part in what they measure.
NOT_CROSSED := blocking_calls continuations deaths dispatches filters gtest_leaky held_blocks jit_frames misaligned model \
    partitions plugin_unaligned.so python_embedded random_frames sandboxes state unaligned
CROSSED := $(filter-out $(PROGRAMS)/sanitized.% $(PROGRAMS)/foreign_% $(STRIPPED)/%,$(PROGRAM_LIST))
PROGRAM_LIST := $(if $(CROSS),$(filter-out $(addprefix $(PROGRAMS)/,$(NOT_CROSSED)),$(CROSSED)),$(PROGRAM_LIST))
programs: $(PROGRAM_LIST)
tests: $(TEST_BINARIES) programs $(TEST_EXTRA)

# libmtrace.so and programs of aarch64 under an emulator, with this machine's memlog. What runs there is in
# doc/internals/processors.md.
check-aarch64: $(BUILD)/.aarch64-deps all $(TEST_BUILD)/host_tests
	@$(MAKE) --no-print-directory ARCH=aarch64 BUILD=$(BUILD)-aarch64 emulated
	@MTRACE_SOURCE_DIR='$(CURDIR)' MTRACE_BUILD_DIR='$(abspath $(BUILD)-aarch64)' \
	    $(EMULATOR) $(BUILD)-aarch64/tests/unit_library --gtest_brief=1 \
	    --gtest_filter="-$$(sed '/^#/d' tests/unit/library/not_emulated.txt | paste -sd:)"
	@MTRACE_TARGET_DIR='$(abspath $(BUILD)-aarch64)' MTRACE_EMULATOR='$(EMULATOR)' \
	    GTEST_FILTER="$$(sed '/^#/d' tests/host/emulated.txt | paste -sd: | sed 's/:-/-/')" \
	    tests/run_tests.sh $(BUILD) $(TEST_BUILD)/host_tests
.PHONY: check-aarch64 check-long emulated
emulated: $(BUILD)/libmtrace.so programs $(TEST_BUILD)/unit_library $(UNWIND_PLUGS) $(WALKCHECK)

# The checkers of the tables and of the walker, and what runs at random for a while, are for a night.
# make check runs the first of these, too, when what they check is not what they last found good:
# tests/checked has that sum, and $(TEST_BUILD)/checked has those of this build.
LONG_SUITES := CheckersTest *FuzzTest SoakTest *WalkerAgainstLibunwind
suites_filter = $(subst $(empty) ,:,$(patsubst %,%.*,$(1)))
ifneq ($(filter check check-long,$(MAKECMDGOALS)),)
CHECKED_SUM := $(shell cat $(sort $(wildcard $(foreach folder,base ledger record unwind unwind/$(ARCH),\
                 src/libmtrace/$(folder)/*.*) tests/schedule/*.* tests/tsan/*.*)) | sha256sum | cut -c1-16)
UNCHECKED   := $(if $(filter $(CHECKED_SUM),$(shell cat tests/checked $(TEST_BUILD)/checked 2>/dev/null)),,CheckersTest)
endif
check: all tests $(if $(UNCHECKED),$(CHECKERS))
	@GTEST_FILTER="$${GTEST_FILTER:--$(call suites_filter,$(filter-out $(UNCHECKED),$(LONG_SUITES)))}" \
	    tests/run_tests.sh $(BUILD) $(TEST_BINARIES)
	@[ -n "$$GTEST_FILTER" ] || echo $(CHECKED_SUM) >>$(TEST_BUILD)/checked
check-long: all tests $(LONG_EXTRA)
	@GTEST_FILTER='$(call suites_filter,$(LONG_SUITES))' tests/run_tests.sh $(BUILD) $(TEST_BUILD)/host_tests
	@echo $(CHECKED_SUM) >tests/checked
# The units and the structure, with the few programs that they run and libraries that they load.
QUICK := $(addprefix $(TEST_BUILD)/,unit_library unit_tool structure_tests)
UNIT_TOOL_PROGRAMS := $(addprefix $(PROGRAMS)/,accounting attached deaths gtest_leaky shop temporaries)
# Not the suites that take more than two seconds, by the beginnings of their names: nine tenths of
# the time.
QUICK_WITHOUT := BlockPlaces Browser BuildSystems Check Compare Completion Compressed DebugFiles Decode EhFrame \
    Event Facts Install Lean Leaks MadeReports Manual Of/Transcript.IsAsExpected/check \
    Of/Transcript.IsAsExpected/large Pack Partial Peak PythonLines Reachability Region Report \
    Resolve ResourceTable Run Simulated Snapshot Sql StackTable Strip Tasks Terminal Trend Walk \
    Worker
check-quick: all $(QUICK) $(UNIT_TOOL_PROGRAMS) $(UNWIND_PLUGS) share
	@GTEST_FILTER="$${GTEST_FILTER:--$(subst $(empty) ,:,$(QUICK_WITHOUT:%=%*))}" tests/run_tests.sh $(BUILD) $(QUICK)
# Which lines the unit tests reach, of memlog and of what libmtrace.so is made of. The library itself
# has no runtime for counters: what the host tests reach inside programs is not in it.
coverage: all $(UNIT_TOOL_PROGRAMS) $(UNWIND_PLUGS) share
	@$(MAKE) --no-print-directory BUILD=$(BUILD)-coverage COVERAGE=1 OPT='-O0 -g' coverage-run
coverage-run: $(TEST_BUILD)/unit_library $(TEST_BUILD)/unit_tool
	@find $(BUILD) -name '*.gcda' -delete
	@tests/coverage.sh $(patsubst %-coverage,%,$(BUILD)) $(BUILD) $^
.PHONY: coverage coverage-run check-quick check-tool walks
check-tool: all $(TEST_BUILD)/unit_tool $(UNIT_TOOL_PROGRAMS)
	@tests/run_tests.sh $(BUILD) $(TEST_BUILD)/unit_tool
# The long forms of what `make check` does shortly; figures on standard output.
SOAK_SECONDS ?= 1800
long_tests = MTRACE_SOURCE_DIR='$(CURDIR)' MTRACE_BUILD_DIR='$(abspath $(BUILD))' \
             $(TEST_BUILD)/host_tests --gtest_brief=1 --gtest_filter=
soak: all tests
	MTRACE_SOAK_SECONDS=$$(($(SOAK_SECONDS) / 2)) $(long_tests)'SoakTest.*:StormTest.*:Descriptor*'
# Servers of five kinds attached to and detached from ATTACH_ROUNDS times each.
ATTACH_ROUNDS ?= 1000
attach-soak: all tests
	MTRACE_ATTACH_ROUNDS=$(ATTACH_ROUNDS) $(long_tests)'AttachProgramsTest.*'
# memlog serve under hostile load for so long.
HOSTILE_SECONDS ?= 300
hostile: all tests
	MTRACE_HOSTILE_SECONDS=$(HOSTILE_SECONDS) $(long_tests)'HostileLoadTest.*'
# SCAN_ROUNDS times two looks of memlog unreachable at a redis and a python server under load.
SCAN_ROUNDS ?= 1000
unreachable-soak: all tests
	MTRACE_SCAN_ROUNDS=$(SCAN_ROUNDS) $(long_tests)'UnreachableProgramsTest.*'
# The walker against libunwind at every allocation of real programs, and at WALKS of random frames.
WALKS ?= 1000000
walks: all tests $(WALKCHECK)
	MTRACE_WALKS=$(WALKS) $(long_tests)'*/WalkerAgainstLibunwind.*'
faults: all tests
	MTRACE_THOROUGH=1 $(long_tests)'FaultTest.*'
suites: all tests
	MTRACE_SUITES=1 $(long_tests)'SuitesTest.*'
demo: all $(PROGRAMS)/demo_service
	@tests/demo.sh $(BUILD)
pictures: all
	@doc/pictures/make.sh $(BUILD)

-include $(UNIT_LIBRARY_OBJ:.o=.d) $(UNIT_TOOL_OBJ:.o=.d) $(SUPPORT_OBJ:.o=.d) $(HOST_TEST_OBJ:.o=.d) \
         $(STRUCTURE_OBJ:.o=.d) $(TEST_BUILD)/headers.h.gch.d
