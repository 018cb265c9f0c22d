# mtrace: build, test, install. Everything is made under build/ (BUILD=DIR for another place).
#
#   make            build/libmtrace.so, build/memlog and what memlog serve and replay load and run
#   make ARCH=aarch64  the same for arm64, in build-aarch64, with Debian's cross compiler
#   make deps       install the Debian packages that building needs (root or sudo); so do
#                   deps-test, deps-dist, deps-aarch64 and deps-hosts for the tests, packages, the
#                   emulator of arm64, and programs of others (4 GB)
#   make demo       find a planted leak in a small service
#   make check      the tests; ends with "N passed, N failed"; GTEST_FILTER='Suite.*' chooses some
#   make check-quick  unit and structure tests without the longest, in half a minute; with
#                   SANITIZE=address,undefined memlog's unit tests under sanitizers
#   make check-long   what is for a night: fuzz targets, thread orders, ThreadSanitizer, walks
#   make check-aarch64  what of the tests runs under an emulator of arm64
#   make fuzz       each fuzz target for SECONDS (600); FUZZ=NAME: only that one
#   make bench      measure the cost of tracing
#   make coverage   which lines of memlog and of the library's units the tests reach: HTML
#   make install    PREFIX=/usr/local, DESTDIR=; make uninstall takes it away again
#   make deb        Debian packages; make rpm, make tarball: a package for RPM, an archive for any
#                   Linux, with a static memlog
#   make dist       all of these, with an SBOM, sums and (SIGN=KEYID) signatures, in build/dist
#   make lint       clang-tidy and the format check;  make format  rewrites the sources
#   make clean
#
# doc/internals/contributing.md has the scripts beside these, testing.md there what runs longer.

.DEFAULT_GOAL := all
JOBS ?= $(shell nproc)
MAKEFLAGS += --no-builtin-rules --jobs=$(JOBS)
SHELL := /bin/bash
.DELETE_ON_ERROR:
# $(call run,CXX,NAME)COMMAND shows one line in place of the command; make V=1 shows the command.
Q   := $(if $(V),,@)
run = $(Q)mkdir -p $(@D); $(if $(V),,echo "  $(1)  $(2)";)

# ARCH=aarch64: for that processor, with Debian's cross compiler where this machine is another.
MACHINE := $(shell uname -m)
ARCH ?= $(MACHINE)
CROSS := $(if $(filter-out $(MACHINE),$(ARCH)),$(ARCH)-linux-gnu-)
# Runs programs of aarch64 elsewhere. Without -L: the loader of libc6:arm64, whose libc it would load
# anyway. With that of the cross compiler, which may be another version, pthread_create loops for ever.
EMULATOR ?= /usr/bin/qemu-aarch64
CXX := $(if $(filter default,$(origin CXX)),$(CROSS)g++,$(CXX))
CC  := $(if $(filter default,$(origin CC)),$(CROSS)gcc,$(CC))
BUILD   ?= build$(if $(CROSS),-$(ARCH))$(if $(SANITIZE),-sanitize)
# One name for a folder in this one: what another make built by its whole path would never be stale.
override BUILD := $(patsubst $(CURDIR)/%,%,$(BUILD))
VERSION := 0.2.0
MULTIARCH = $(shell $(CC) -print-multiarch 2>/dev/null)
PREFIX ?= /usr/local
# memlog looks for the library in lib/MULTIARCH, lib64 and lib of its prefix.
LIBDIR ?= $(PREFIX)/lib/$(MULTIARCH)

# WERROR=1: a warning is an error, as continuous integration has it.
WARN     := -Wall -Wextra $(if $(WERROR),-Werror)
CLANG    := $(findstring clang,$(CXX))
OPT      ?= -O2 -g $(if $(CLANG),-gdwarf-4)
CPPFLAGS += -Isrc -Iinclude -D_GNU_SOURCE -DMTRACE_VERSION='"$(VERSION)"'
# COVERAGE=1, FUZZER=1: set by make coverage and fuzz. Otherwise no file names the directory in which it
# was built.
COMMON   := -std=c++20 $(OPT) $(WARN) -MMD -MP $(if $(FUZZER),-fsanitize=fuzzer-no-link \
                -fsanitize=address -fsanitize=undefined -fno-sanitize-recover=all -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION) \
            $(if $(COVERAGE),--coverage -fprofile-update=atomic,'-ffile-prefix-map=$(CURDIR)=.')
# The library: no exceptions, no RTTI, no guards for statics, no canary (it may run before the
# thread control block is complete), TLS that never allocates, frame pointers so that a hook finds
# its caller's registers at a known place. aarch64: the host may lack what the compiler's run-time
# library asks the processor.
LIB_FLAGS := -Isrc/libmtrace $(COMMON) -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti \
             -fno-threadsafe-statics -fno-stack-protector -fno-omit-frame-pointer \
             -ftls-model=initial-exec -fno-builtin-malloc -fno-builtin-calloc \
             -fno-builtin-realloc -fno-builtin-free $(if $(filter aarch64,$(ARCH)),-mno-outline-atomics)
# No start files: crtbeginS.o would add a second initialiser. Bound at load: no lazy binding
# inside a hook. Never unloaded.
LIB_LINK  := -shared -nostdlib -nostartfiles -Wl,-z,now,-z,relro,-z,defs,-z,nodelete \
             -Wl,-soname,libmtrace.so -Wl,--version-script,src/libmtrace/next/exports.map
# SANITIZE: memlog and its unit tests with sanitizers, in a place of their own. The library takes
# none: it runs inside other programs, and replaces malloc.
TOOL_SANITIZE := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all)
# -g1: lines and functions for a backtrace; all of -g doubles the time of building. g++ looks for
# garbage again and again: a twelfth of the time, for a tenth of the memory.
TOOL_FLAGS := -Isrc/memlog $(COMMON) $(TOOL_SANITIZE) -g1 \
              $(if $(CLANG),,--param=ggc-min-expand=10000 --param=ggc-min-heapsize=1000000)
# The marker tells a preloaded libmtrace.so not to trace memlog itself.
TOOL_LINK  := -Wl,--export-dynamic-symbol=mtrace_host_opt_out $(TOOL_SANITIZE)
# flat_hash_map: memlog's model, and the reference for the stack table in the tests.
ABSL_LIBS  := -labsl_raw_hash_set -labsl_hash -labsl_city -labsl_low_level_hash \
              -labsl_hashtablez_sampler -labsl_throw_delegate -labsl_raw_logging_internal
TOOL_LIBS  := -ldw -lelf -lfmt -liberty -lre2 -lz -lzstd -lsqlite3 $(ABSL_LIBS)

# What has to be on the machine. All but the targets `deps...` look whether it is there, and install
# nothing. `make deps demo` installs first.
DEPS := deps deps-test deps-dist deps-aarch64 deps-hosts
.PHONY: $(DEPS)
$(DEPS):
	@CXX='$(CXX)' tools/deps.sh install $(patsubst deps-%,%,$(@:deps=build)) $(BUILD)
deps-test deps-dist: deps
deps-aarch64: deps-test
$(BUILD)/.build-deps $(BUILD)/.test-deps $(BUILD)/.dist-deps $(BUILD)/.aarch64-deps: \
    $(wildcard *packages*.txt packaging/*packages*.txt tests/*packages*.txt) | $(filter $(DEPS),$(MAKECMDGOALS))
	@CXX='$(CXX)' tools/deps.sh check $(patsubst .%-deps,%,$(@F)) $(BUILD) && touch $@
$(BUILD)/.test-deps: $(BUILD)/.build-deps

PACKAGES := deb rpm tarball
.PHONY: all always install uninstall share clean format lint
# Only memlog serve loads memlog-http.so, with the HTTP and TLS libraries: linked to memlog, these
# would nearly double the time in which each command starts. memlog replay starts memlog-replay under
# one allocator after another: libc alone, so that nothing else allocates there.
HTTP   := $(BUILD)/mtrace/memlog-http.so
REPLAY := $(BUILD)/mtrace/memlog-replay
all: $(BUILD)/libmtrace.so $(BUILD)/memlog $(HTTP) $(REPLAY)
objects  = $(patsubst %.cc,$(BUILD)/obj/%.o,$(1))
CFI_OBJ := $(call objects,$(wildcard src/cfi/*.cc))
LIB_SRC := $(wildcard src/cfi/*.cc) $(sort $(wildcard src/libmtrace/*/*.cc src/libmtrace/*/$(ARCH)/*.cc))
LIB_OBJ := $(call objects,$(LIB_SRC))
# What can be linked into another program: not what makes the library the host's malloc.
PARTS_OBJ := $(filter-out $(BUILD)/obj/src/libmtrace/next/% $(BUILD)/obj/src/libmtrace/record/% \
               $(BUILD)/obj/src/libmtrace/life/% $(BUILD)/obj/src/libmtrace/entry/%,$(LIB_OBJ))
HTTP_OBJ := $(call objects,src/memlog/surface/serve/http_server.cc src/memlog/surface/fleet/http_client.cc)
# What tests replace.
ALONE    := $(call objects,$(addprefix src/memlog/,surface/commands/main.cc model/symbols/worker.cc))
TOOL_SRC := $(sort $(wildcard src/memlog/*/*.cc src/memlog/*/*/*.cc src/memlog/*/*/$(ARCH)/*.cc))
# Sources are compiled some at a time, in one go: headers and templates cost more than the code
# itself. So a name in an anonymous namespace is the only one in the namespace around it.
units     = $(patsubst %.cc,%.o,$(shell tools/units.sh $(BUILD)/obj/unit $(1)))
IN_UNITS := $(filter-out $(patsubst $(BUILD)/obj/%.o,%.cc,$(ALONE) $(HTTP_OBJ)),$(TOOL_SRC))
# What reads reports, sums them up and prints them is optimised; the rest waits for it, for files or
# for people. The hot ones first: of an inline function that several have, the linker takes the first.
HOT      := $(addprefix src/memlog/,$(addsuffix /%,util model/profile model/events model/recording model/heap view/analyze view/text))
HOT_OBJ  := $(call units,16 $(filter $(HOT),$(IN_UNITS)))
COLD_OBJ := $(call units,16 $(filter-out $(HOT),$(IN_UNITS))) $(ALONE)
TOOL_OBJ := $(HOT_OBJ) $(COLD_OBJ) $(CFI_OBJ)

# Flags of one kind of object. The library's: for size what runs at the start, at a fork and once in a
# report; -O2 is no faster there. (At -Os cfi/row takes more stack, and with process_hooks walks of
# programs with musl end as lost.) At -Os g++ takes an empty std::optional for one that is used.
LIB_HOT  := $(filter-out %/python/runtime.o %/unwind/registered_frames.o %/unwind/guess.o \
              %/unwind/libunwind_walk.o %/ledger/ledger.o %/ledger/heap_shadow.o %/ledger/region_table.o \
              %/ledger/resource_table.o,$(filter $(addprefix $(BUILD)/obj/src/libmtrace/,record/% python/% \
              unwind/% ledger/% modules/modules.o entry/malloc_hooks.o entry/operator_hooks.o \
              entry/interface_hooks.o entry/process_hooks.o base/clock.o base/own_memory.o base/probe.o \
              base/writer.o report/snapshot.o report/memlog_writer.o report/frame_writer.o report/tails.o),\
              $(LIB_OBJ))) $(BUILD)/obj/src/cfi/row.o
smaller  := $(if $(filter -O2,$(OPT)),-Os)
cold     := $(if $(smaller),-Os $(if $(CLANG),,-Wno-maybe-uninitialized))
$(LIB_OBJ): FLAGS = $(LIB_FLAGS)
$(filter-out $(LIB_HOT),$(LIB_OBJ)): FLAGS = $(LIB_FLAGS) $(smaller)
# A loop of its own is not to become a call of what it defines.
$(BUILD)/obj/src/libmtrace/life/string_functions.o: FLAGS = $(LIB_FLAGS) $(smaller) -fno-builtin \
    $(if $(CLANG),,-fno-tree-loop-distribute-patterns)
$(HOT_OBJ): FLAGS = $(TOOL_FLAGS)
$(COLD_OBJ): FLAGS = $(TOOL_FLAGS) $(cold)
$(HTTP_OBJ): FLAGS = $(TOOL_FLAGS) -fPIC -fvisibility=hidden $(cold)
# What g++ says of files that are included, but not of these alone.
UNIT_FLAGS := -iquote . $(if $(CLANG),,-Wno-subobject-linkage -Wno-missing-field-initializers)

# The headers of libraries that most of memlog includes, compiled once: a third of the time. gcc 12
# fails on aarch64 where the headers are compiled for another optimisation. Compiled anew when a
# library's header changes, too: clang++ takes no others, g++ the old ones.
HEADERS := $(BUILD)/obj/headers.h
$(HOT_OBJ) $(COLD_OBJ): PCH = $(if $(filter aarch64,$(ARCH)),,-include $(HEADERS))
$(HOT_OBJ) $(COLD_OBJ): $(HEADERS).gch
headers_rule = $(call run,CXX,$<)echo '\#include "$(abspath $<)"' >$(@:.gch=) && \
    $(1) $(CPPFLAGS) $(filter-out -MMD,$(2)) -MD -MF $@.d -x c++-header $(@:.gch=) -o $@
$(HEADERS).gch: src/memlog/headers.h $(BUILD)/flags | $(BUILD)/.build-deps
	$(call headers_rule,$(CXX),$(TOOL_FLAGS) $(smaller) $(CXXFLAGS))

# $(call keep,TEXT) writes the target only where it differs.
keep = @mkdir -p $(@D); echo '$(1)' | cmp -s - $@ || echo '$(1)' >$@
# Other flags make all stale, a comment in a makefile nothing. What installs takes what is there.
all_flags = $(filter-out -Werror,$(subst $(CURDIR),.,$(CXX) $(CPPFLAGS) $(LIB_FLAGS) $(TOOL_FLAGS) $(CXXFLAGS)))
$(BUILD)/flags: $(if $(filter-out install uninstall $(PACKAGES) dist,$(or $(MAKECMDGOALS),all)),always)
	$(call keep,$(all_flags))
$(BUILD)/obj/%.o: %.cc $(BUILD)/flags | $(BUILD)/.build-deps
	$(call run,CXX,$<)$(CXX) $(CPPFLAGS) $(FLAGS) $(PCH) $(CXXFLAGS) -c $< -o $@
$(BUILD)/obj/unit/%.o: $(BUILD)/obj/unit/%.cc $(BUILD)/flags | $(BUILD)/.build-deps
	$(call run,CXX,$*.cc ...)$(CXX) $(CPPFLAGS) $(FLAGS) $(UNIT_FLAGS) $(PCH) $(CXXFLAGS) -c $< -o $@

# They hold the styles and scripts of what memlog export draws and memlog serve shows.
$(COLD_OBJ): $(wildcard src/memlog/view/export/page/* src/memlog/surface/serve/page/*)

# Renamed when they are whole: what runs the one before goes on with it.
$(BUILD)/libmtrace.so: $(LIB_OBJ) src/libmtrace/next/exports.map
	$(call run,LINK,$@)$(CXX) $(LIB_LINK) $(LDFLAGS) -o $@.new $(LIB_OBJ) -lc && mv $@.new $@
$(BUILD)/memlog: $(TOOL_OBJ)
	$(call run,LINK,$@)$(CXX) $(LDFLAGS) $(TOOL_LINK) -o $@.new $(TOOL_OBJ) $(TOOL_LIBS) && mv $@.new $@
$(HTTP): $(HTTP_OBJ)
	$(call run,LINK,$@)$(CXX) -shared -Wl,-z,defs,-z,relro $(LDFLAGS) $(TOOL_SANITIZE) -o $@ $^ -lcpp-httplib -lssl -lcrypto
$(REPLAY): src/replay/memlog_replay.cc src/format/replay.h $(BUILD)/flags | $(BUILD)/.build-deps
	$(call run,CXX,$@)$(CXX) $(CPPFLAGS) $(filter-out -MMD -MP,$(COMMON)) -fno-exceptions -fno-rtti \
	    -fno-builtin-malloc $(CXXFLAGS) $(LDFLAGS) -nodefaultlibs -o $@ $< -lc -lgcc

include package.mk tests/tests.mk

SOURCES = $(shell git ls-files 'src/*.cc' 'src/*.h' 'tests/*.cc' 'tests/*.h' 'include/*.h')
format:
	clang-format -i $(SOURCES)
# Each source alone, without the headers that are compiled once.
tidy = @printf '%s\n' $(1) | xargs -P $(JOBS) -I{} clang-tidy --quiet {} -- $(CPPFLAGS) $(filter-out -MMD -MP --param%,$(2))
lint: | $(BUILD)/.test-deps
	clang-format --dry-run --Werror $(SOURCES)
	$(call tidy,$(LIB_SRC),$(LIB_FLAGS))
	$(call tidy,$(TOOL_SRC),$(TOOL_FLAGS))
clean:
	rm -rf $(BUILD)

-include $(shell find $(addprefix $(BUILD)/,obj schedule tests tools tsan) -type f -name '*.d' 2>/dev/null)
