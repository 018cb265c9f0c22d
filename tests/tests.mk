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
# have, the linker takes those of the first.
TEST_FLAGS := $(filter-out -O% -g% -Isrc/memlog,$(TOOL_FLAGS)) -O0 -Itests/support -Itests/host
MEMLOG_FILE := $(call objects,tests/host/memlog_file.cc)
test_units   = $(call units,30 $(filter-out tests/host/memlog_file.cc,$(wildcard $(1))))
LIBRARY_TESTS   := $(call test_units,tests/unit/library/*.cc tests/unit/library/$(ARCH)/*.cc)
TOOL_TESTS      := $(call test_units,tests/unit/tool/*.cc)
HOST_TESTS      := $(MEMLOG_FILE) $(call test_units,tests/host/*.cc)
STRUCTURE_TESTS := $(call test_units,tests/structure/*.cc)
SUPPORT         := $(call test_units,tests/support/*.cc)
TEST_OBJ := $(LIBRARY_TESTS) $(TOOL_TESTS) $(HOST_TESTS) $(STRUCTURE_TESTS) $(SUPPORT)
$(TEST_OBJ): FLAGS = $(TEST_FLAGS)
$(TOOL_TESTS): FLAGS = $(TEST_FLAGS) -Isrc/memlog
$(LIBRARY_TESTS): FLAGS = $(TEST_FLAGS) -Isrc/libmtrace -Itests/unit/library
$(MEMLOG_FILE): FLAGS = $(TEST_FLAGS) -O2
$(TEST_OBJ): PCH = -include $(T)/headers.h
$(TEST_OBJ): $(T)/headers.h.gch | $(BUILD)/.test-deps
# g++ 12 crashed on headers that were compiled for another optimisation, once in many builds.
$(MEMLOG_FILE): PCH =
$(T)/headers.h.gch: tests/headers.h $(BUILD)/flags | $(BUILD)/.test-deps
	$(call headers_rule,$(CXX),$(TEST_FLAGS) $(CXXFLAGS))

LIBRARY_PARTS := $(PARTS_OBJ) $(call objects,src/libmtrace/life/environment.cc src/libmtrace/life/options.cc)
# The longest first.
TEST_BINARIES := $(addprefix $(T)/,host_tests structure_tests unit_library unit_tool)
$(T)/host_tests: $(HOST_TESTS)
$(T)/structure_tests: $(STRUCTURE_TESTS)
$(T)/unit_library: $(LIBRARY_TESTS) $(LIBRARY_PARTS)
$(T)/unit_tool: $(TOOL_TESTS) $(filter-out %/commands/main.o,$(TOOL_OBJ))
$(TEST_BINARIES): $(SUPPORT)
	$(call run,LINK,$@)$(CXX) $(LDFLAGS) $(if $(COVERAGE),--coverage) $(TOOL_SANITIZE) -Wl,--as-needed -o $@ \
	    $(filter-out $(SUPPORT),$^) $(SUPPORT) -lgtest -lgtest_main -lpthread $(TOOL_LIBS)

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

# Of one source in a way of its own: $(call built,TARGET,SOURCE,COMMAND), for programs under test
# $(call program,NAME,SOURCE,COMMAND).
define built_rule
$(1): $(strip $(2)) $(PROGRAM_NEEDS) $(BUILD)/.test-deps
	$$(call run,MAKE,$$@)$(3) -o $$@ $$<
endef
built     = $(eval $(call built_rule,$(1),$(2),$(3)))
program   = $(call built,$(PROGRAMS)/$(1),tests/programs/$(strip $(2)),$(3)) $(eval PROGRAM_LIST += $(PROGRAMS)/$(1))
gcc_c     := $(CROSS)gcc $(c)
clang_c   := clang $(clang_target) $(c)
gcc_cxx   := $(CROSS)g++ $(cxx)
clang_cxx := clang++ $(clang_target) $(cxx)
pie       := -fPIE -pie
nopie     := -fno-pie -no-pie
fp        := -fno-omit-frame-pointer
nofp      := -fomit-frame-pointer
# Of another libc, for which Debian's compiler leaves the table of call-frame information out, which
# those of systems with musl make.
MUSL := $(if $(CROSS),$(CROSS)gcc -specs=/usr/lib/$(ARCH)-linux-musl/musl-gcc.specs,musl-gcc) \
        $(PROGRAM_FLAGS) $(c) -Dpvalloc=valloc -Wl,--eh-frame-hdr -Wl,--build-id
$(foreach o,O0 O2,$(foreach p,pie nopie,$(call program,musl/truth_c.$o.$p,truth_c.c,$(MUSL) -$o $($p)) \
    $(foreach w,gcc clang,$(foreach f,fp nofp,$(foreach s,c cxx,$(call program,truth_$s.$w.$o.$p.$f,\
    truth_$s.$(s:cxx=cc),$($w_$s) $(PROGRAM_FLAGS) -$o $($p) $($f) -Wl$(comma)--build-id))))))
$(call program,musl/ways,foreign/musl_ways.c,$(MUSL) -O2)
$(call program,musl/plugin.so,foreign/musl_plugin.c,$(MUSL) -O2 -shared -fPIC)
# With each sanitizer that has an allocator.
$(foreach s,gcc.address gcc.leak gcc.thread clang.address clang.leak clang.thread clang.memory,\
    $(call program,sanitized.$s,sanitized.c,$(basename $s) -g -O1 -fno-builtin -pthread -fsanitize=$(patsubst .%,%,$(suffix $s))))
# Of another word size, and of a loader that is musl's under a name that nobody knows.
$(call program,foreign_i386,foreign/i386.c,gcc -m32 -O1 -fpie -pie -fno-stack-protector -nostdlib -ffreestanding -Wl$(comma)--dynamic-linker=/lib/ld-linux.so.2)
$(call program,foreign_musl,foreign/musl.c,musl-gcc -O1)
loader := $(abspath $(PROGRAMS))/unknown-loader.so
$(call program,foreign_loader,foreign/musl.c,cp -L /lib/ld-musl-$(MACHINE).so.1 '$(loader)' && musl-gcc -O1 -Wl$(comma)--dynamic-linker='$(loader)')

# Another processor's: not those that name registers and instructions of x86_64, that are linked with
# more than libc, or that have an emulator take part in what they measure.
NOT_CROSSED := $(addprefix $(PROGRAMS)/,blocking_calls continuations deaths dispatches filters gtest_leaky \
    held_blocks jit_frames misaligned model partitions plugin_unaligned.so python_embedded random_frames \
    sandboxes state unaligned sanitized.% foreign_%)
programs: $(if $(CROSS),$(filter-out $(NOT_CROSSED),$(PROGRAM_LIST)),$(PROGRAM_LIST))

include tests/long.mk

# ---- The targets. That clang++ takes the library's sources, too, but for code generation:
# string_functions.cc not beside others: it declares functions of libc otherwise than libc's headers.
$(T)/clang.ok: $(LIB_SRC) $(wildcard src/format/*.h src/cfi/*.h src/libmtrace/*/*.h) $(ready)
	$(call run,CLANG,src)printf '%s\n' $(patsubst %.o,%.cc,$(call units,50 $(filter-out %/string_functions.cc,$(LIB_SRC)))) $(filter %/string_functions.cc,$(LIB_SRC)) | \
	    xargs -P $(JOBS) -I{} clang++ -fsyntax-only $(CPPFLAGS) -iquote . $(filter-out -MMD -MP,$(LIB_FLAGS)) {} && touch $@
.PHONY: check check-quick check-long check-aarch64 coverage demo programs tests fuzz bench
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
# what takes more than two seconds: nine tenths of the time.
UNIT_PROGRAMS := $(addprefix $(PROGRAMS)/,accounting attached deaths gtest_leaky many_stacks shop temporaries)
QUICK := $(addprefix $(T)/,$(if $(SANITIZE),unit_tool,structure_tests unit_library unit_tool))
check-quick: all $(QUICK) $(UNIT_PROGRAMS) $(UNWIND_PLUGS) share
	@GTEST_FILTER="$${GTEST_FILTER:--$$(paste -sd: tests/slow.txt)}" $(run_tests) $(QUICK)
# Which lines the unit tests reach, of memlog and of what libmtrace.so is made of. The library itself
# has no runtime for counters: what the host tests reach inside programs is not in it.
coverage: all $(UNIT_PROGRAMS) $(UNWIND_PLUGS) share
	+@tests/coverage.sh $(BUILD) '$(MAKE)'
# libmtrace.so and programs of aarch64 under an emulator, with this machine's memlog. What runs there
# is in doc/internals/processors.md.
check-aarch64: $(BUILD)/.aarch64-deps all $(T)/host_tests
	+@tests/emulated.sh $(BUILD) '$(MAKE)' '$(EMULATOR)'
demo: all $(PROGRAMS)/demo_service
	@tests/demo.sh $(BUILD)
