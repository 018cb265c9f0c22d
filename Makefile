# mtrace: build, test, install. Everything is made under build/ (BUILD=DIR for another place).
#
#   make            build/libmtrace.so, build/memlog and what memlog serve and replay load and run
#   make ARCH=aarch64  the same for arm64, in build-aarch64, with Debian's cross compiler
#   make deps       install the Debian packages that building needs (root or sudo)
#   make deps-test  the same for the tests, and their npm packages
#   make demo       find a planted leak in a small service
#   make check      the tests; ends with "N passed, N failed"
#   make check-long   what is for a night: fuzz targets, thread orders, ThreadSanitizer, walks
#   make check-quick  unit and structure tests without the longest, in half a minute
#   make check-aarch64  what of them runs under an emulator of arm64; make deps-aarch64 installs
#                   the emulator, the cross compiler and two libraries
#   make soak       random programs and storms of reports for SOAK_SECONDS (1800); SEED=N
#   make attach-soak  1,000 times attached to and detached from servers under load
#   make unreachable-soak  memlog unreachable, 1,000 times on servers under load
#   make faults     each system call of the library's own fails in turn
#   make suites     test suites of others, with the library and without
#   make hosts      200 programs of others under the library: 90 minutes; HOSTS=NAME, HOSTS=list
#   make deps-hosts install the Debian packages that make hosts needs (4 GB)
#   make pictures   doc/pictures again, from redis-server at work
#   make bench      measure the cost of tracing; make performance: for doc/performance.md, too
#   make install    PREFIX=/usr/local, DESTDIR=; make uninstall takes it away again
#   make deb        a Debian package: build/mtrace_VERSION_ARCHITECTURE.deb;  make deb-test
#   make rpm        a package for RPM;  make rpm-test
#   make tarball    an archive for any Linux, with a static memlog;  make tarball-test
#   make dist       all of these, with an SBOM, sums and (SIGN=KEYID) signatures, in build/dist
#   make reproducible  builds twice, elsewhere and otherwise, and compares byte for byte
#   make coverage   which lines of memlog and of the library's units the tests reach: HTML
#   make compile_commands.json   for editors and clang tools
#   make SANITIZE=address,undefined check-tool   memlog and its unit tests with sanitizers
#   make lint       clang-tidy and the format check;  make format  rewrites the sources
#   make clean

.DEFAULT_GOAL := all
JOBS ?= $(shell nproc)
MAKEFLAGS += --no-builtin-rules --jobs=$(JOBS)
SHELL := /bin/bash
.DELETE_ON_ERROR:

# Short output; make V=1 shows the commands.
Q := $(if $(V),,@)
say = $(if $(V),,@echo "  $(1)  $(2)")

# ARCH=aarch64: for that processor, with Debian's cross compiler where this machine is another.
MACHINE := $(shell uname -m)
ARCH ?= $(MACHINE)
CROSS := $(if $(filter-out $(MACHINE),$(ARCH)),$(ARCH)-linux-gnu-)
# Runs programs of aarch64 elsewhere. Without -L: the loader of libc6:arm64, whose libc it would load
# anyway. With that of the cross compiler, which may be another version, pthread_create loops for ever.
EMULATOR ?= /usr/bin/qemu-aarch64

ifeq ($(origin CXX),default)
CXX := $(CROSS)g++
endif
ifeq ($(origin CC),default)
CC := $(CROSS)gcc
endif
BUILD   ?= build$(if $(CROSS),-$(ARCH))$(if $(SANITIZE),-sanitize)
# One name for a folder in this one: what another make built by its whole path would never be stale.
override BUILD := $(patsubst $(CURDIR)/%,%,$(BUILD))
VERSION := 0.2.0

MULTIARCH = $(shell $(CC) -print-multiarch 2>/dev/null)
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib/$(MULTIARCH)
BINDIR ?= $(PREFIX)/bin

# WERROR=1: a warning is an error, as continuous integration has it.
WARN     := -Wall -Wextra $(if $(WERROR),-Werror)
OPT      ?= -O2 -g $(if $(findstring clang,$(CXX)),-gdwarf-4)
CPPFLAGS += -Isrc -Iinclude -D_GNU_SOURCE -DMTRACE_VERSION='"$(VERSION)"'
# COVERAGE=1: set by make coverage. Otherwise no file names the directory in which it was built.
COMMON   := -std=c++20 $(OPT) $(WARN) -MMD -MP \
            $(if $(COVERAGE),--coverage -fprofile-update=atomic,'-ffile-prefix-map=$(CURDIR)=.')

# The library: no exceptions, no RTTI, no guards for statics, no canary (it may run before the
# thread control block is complete), TLS that never allocates, frame pointers so that a hook finds
# its caller's registers at a known place.
LIB_FLAGS := -Isrc/libmtrace $(COMMON) -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti \
             -fno-threadsafe-statics -fno-stack-protector -fno-omit-frame-pointer \
             -ftls-model=initial-exec -fno-builtin-malloc -fno-builtin-calloc \
             -fno-builtin-realloc -fno-builtin-free \
             -DMTRACE_INSTALLED_MEMLOG='"$(BINDIR)/memlog"'
# The host may lack what the compiler's run-time library asks the processor.
LIB_FLAGS += $(if $(filter aarch64,$(ARCH)),-mno-outline-atomics)
# No start files: crtbeginS.o would add a second initialiser. Bound at load: no lazy binding
# inside a hook. Never unloaded.
LIB_LINK  := -shared -nostdlib -nostartfiles -Wl,-z,now,-z,relro,-z,defs,-z,nodelete \
             -Wl,-soname,libmtrace.so -Wl,--version-script,src/libmtrace/next/exports.map
# -g1: lines and functions for a backtrace; all of -g doubles the time of building.
# SANITIZE=address,undefined: memlog and its unit tests with these sanitizers, in a place of their
# own. The library takes none: it runs inside other programs, and replaces malloc.
TOOL_SANITIZE := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all)
TOOL_FLAGS := -Isrc/memlog $(COMMON) $(TOOL_SANITIZE) -g1 -DMTRACE_INSTALLED_LIBRARY='"$(LIBDIR)/libmtrace.so"'
# The marker tells a preloaded libmtrace.so not to trace memlog itself.
TOOL_LINK  := -Wl,--export-dynamic-symbol=mtrace_host_opt_out $(TOOL_SANITIZE)
# flat_hash_map: memlog's model, and the reference for the stack table in the tests.
ABSL_LIBS  := -labsl_raw_hash_set -labsl_hash -labsl_city -labsl_low_level_hash \
              -labsl_hashtablez_sampler -labsl_throw_delegate -labsl_raw_logging_internal
TOOL_LIBS  := -ldw -lelf -lfmt -liberty -lre2 -lz -lzstd -lsqlite3 -ledit $(ABSL_LIBS)
TEST_LIBS  := -lgtest -lgtest_main -lpthread $(TOOL_LIBS)

# Compiled as the library is, and linked into memlog as well.
CFI_SRC  := $(sort $(wildcard src/cfi/*.cc))
CFI_OBJ  := $(CFI_SRC:src/%.cc=$(BUILD)/obj/%.o)
LIB_SRC  := $(CFI_SRC) $(sort $(wildcard src/libmtrace/*/*.cc src/libmtrace/*/$(ARCH)/*.cc))
# Only memlog serve loads it, with the HTTP and TLS libraries: linked to memlog, these would nearly
# double the time in which each command starts.
HTTP_SRC := src/memlog/surface/serve/http_server.cc src/memlog/surface/fleet/http_client.cc
HTTP     ?= $(BUILD)/mtrace/memlog-http.so
# memlog replay starts it under one allocator after another: libc alone, so that nothing else
# allocates there.
REPLAY   ?= $(BUILD)/mtrace/memlog-replay
TOOL_SRC := $(filter-out $(HTTP_SRC),$(sort $(wildcard src/memlog/*/*.cc src/memlog/*/*/*.cc src/memlog/*/*/$(ARCH)/*.cc)))
LIB_OBJ  := $(LIB_SRC:src/%.cc=$(BUILD)/obj/%.o)
# What can be linked into another program: not what makes the library the host's malloc.
PARTS_OBJ := $(filter-out $(foreach f,next record life entry,$(BUILD)/obj/libmtrace/$(f)/%),$(LIB_OBJ))
# The sources of a folder of memlog are compiled some at a time, in one go: headers and templates
# cost more than the code itself. So a name in an anonymous namespace is the only one in its folder.
# UNITY=0 compiles each alone, as make lint does.
UNITY          ?= 4
# What tests replace, and what the Debian package compiles once more.
ALONE_SRC      := src/memlog/surface/commands/main.cc src/memlog/model/symbols/worker.cc src/memlog/process/run/preload.cc
# $(1) folder of the objects $(2) sources $(3) how many in one: FILE.cc:SOURCE:SOURCE... for each
empty :=
unity_chunks  = $(if $(2),$(1)/unity/$(notdir $(firstword $(2))):$(subst $(empty) ,:,$(wordlist 1,$(3),$(2))) \
                  $(call unity_chunks,$(1),$(wordlist $(words $(wordlist 1,$(3),$(2)) +),1000,$(2)),$(3)))
unity_files   = $(foreach chunk,$(1),$(firstword $(subst :, ,$(chunk))))
TOOL_CHUNKS  := $(if $(filter-out 0,$(UNITY)),$(foreach folder,$(filter-out %/$(ARCH),$(sort $(patsubst src/memlog/%/,%,$(dir $(TOOL_SRC))))),\
                  $(call unity_chunks,$(BUILD)/obj/memlog/$(folder),\
                    $(filter src/memlog/$(folder)/%,$(filter-out $(ALONE_SRC),$(TOOL_SRC))),$(UNITY))))
UNITY_CHUNKS := $(TOOL_CHUNKS)
UNITY_CC     := $(call unity_files,$(TOOL_CHUNKS))
# What reads reports, sums them up and prints them is optimised; the rest waits for it, for files or
# for people.
HOT := util model/profile model/events model/recording view/analyze view/heap view/text
TOOL_OBJ     := $(if $(UNITY_CC),$(UNITY_CC:.cc=.o) $(ALONE_SRC:src/%.cc=$(BUILD)/obj/%.o),\
                  $(TOOL_SRC:src/%.cc=$(BUILD)/obj/%.o)) $(CFI_OBJ)
# The hot ones first: of an inline function that several have, the linker takes the first.
HOT_OBJ      := $(filter $(HOT:%=$(BUILD)/obj/memlog/%/%),$(TOOL_OBJ))
TOOL_OBJ     := $(HOT_OBJ) $(filter-out $(HOT_OBJ),$(TOOL_OBJ))
HTTP_OBJ := $(HTTP_SRC:src/%.cc=$(BUILD)/obj/%.o)

.PHONY: all demo pictures check soak attach-soak unreachable-soak hostile faults suites install lint format clean \
        tests programs
all: $(BUILD)/libmtrace.so $(BUILD)/memlog $(HTTP) $(REPLAY)

$(LIB_OBJ): $(BUILD)/obj/%.o: src/%.cc Makefile | $(BUILD)/.build-deps
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) $(CPPFLAGS) $(LIB_FLAGS) $(CXXFLAGS) -c $< -o $@
# For size: what runs at the start, at a fork and once in a report; -O2 is no faster there. (At -Os
# cfi/row takes more stack, and with process_hooks walks of programs with musl end as lost.)
LIB_HOT := record/% python/% unwind/% ledger/% modules/modules \
           $(addprefix entry/,malloc_hooks operator_hooks interface_hooks process_hooks) \
           $(addprefix base/,clock own_memory probe writer) \
           $(addprefix report/,snapshot memlog_writer frame_writer tails)
LIB_COLD := python/runtime $(addprefix unwind/,registered_frames guess libunwind_walk) \
            $(addprefix ledger/,ledger heap_shadow region_table resource_table)
lib_objects = $(1:%=$(BUILD)/obj/libmtrace/%.o)
$(filter-out $(BUILD)/obj/cfi/row.o $(call lib_objects,$(LIB_HOT)),$(LIB_OBJ)) $(call lib_objects,$(LIB_COLD)): \
  LIB_FLAGS += $(if $(filter -O2,$(OPT)),-Os)
# A loop of its own is not to become a call of what it defines.
$(BUILD)/obj/libmtrace/life/string_functions.o: LIB_FLAGS += -fno-builtin \
    $(if $(findstring clang,$(CXX)),,-fno-tree-loop-distribute-patterns)

# The headers of libraries that most of memlog includes, compiled once: a third of the time. Every
# file still includes what it uses; make lint compiles without.
HEADERS := $(BUILD)/obj/memlog/headers.h
# Compiled anew when a library's header changes, too: clang++ takes no others, g++ the old ones.
all_headers = $(1:-MMD=-MD) -MF $@.d -x c++-header
# gcc 12 fails on aarch64 where the headers are compiled for another optimisation.
include_headers = $(if $(filter aarch64,$(ARCH)),,-include $(HEADERS))
# At -Os g++ takes an empty std::optional for one that is used.
COLD_OPT := $(if $(filter -O2,$(OPT)),-Os $(if $(findstring clang,$(CXX)),,-Wno-maybe-uninitialized))
$(HOT_OBJ): COLD_OPT :=
# g++ looks for garbage again and again: a twelfth of the time, for a tenth of the memory.
KEEP_GARBAGE := $(if $(findstring clang,$(CXX)),,--param=ggc-min-expand=10000 --param=ggc-min-heapsize=1000000)
compile_tool = $(CXX) $(KEEP_GARBAGE) $(CPPFLAGS) $(TOOL_FLAGS) $(COLD_OPT) $(CXXFLAGS)
$(HEADERS).gch: src/memlog/headers.h Makefile | $(BUILD)/.build-deps
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	@echo '#include "$(abspath $<)"' > $(@:.gch=)
	$(Q)$(call all_headers,$(compile_tool)) $(@:.gch=) -o $@
$(BUILD)/obj/memlog/%.o: src/memlog/%.cc Makefile $(HEADERS).gch | $(BUILD)/.build-deps
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(compile_tool) $(include_headers) -c $< -o $@
# Written anew only where its sources are others: the empty recipe makes make look at the dates.
.PHONY: unity
unity:
	@for chunk in $(UNITY_CHUNKS); do \
	  file=$${chunk%%:*}; text=; IFS=:; \
	  for source in $${chunk#*:}; do text+="#include \"$$source\""$$'\n'; done; \
	  [ "$$text" = "$$(cat "$$file" 2>/dev/null)"$$'\n' ] || { mkdir -p "$${file%/*}" && printf %s "$$text" >"$$file"; }; \
	done
$(UNITY_CC): unity ;
# What g++ says of files that are included, but not of these alone.
UNITY_FLAGS := -iquote . $(if $(findstring clang,$(CXX)),,-Wno-subobject-linkage -Wno-missing-field-initializers)
$(BUILD)/obj/memlog/%.o: $(BUILD)/obj/memlog/%.cc Makefile $(HEADERS).gch | $(BUILD)/.build-deps
	$(call say,CXX,src/memlog/$(subst unity/,,$*).cc ...)
	$(Q)$(compile_tool) $(UNITY_FLAGS) $(include_headers) -c $< -o $@

# They hold the styles and scripts of what memlog export draws and memlog serve shows.
PAGE_FILES := $(wildcard src/memlog/view/export/page/* src/memlog/surface/serve/page/*)
PAGE_SRC := src/memlog/view/export/report_page.cc src/memlog/surface/serve/page_files.cc
$(PAGE_SRC:src/%.cc=$(BUILD)/obj/%.o) $(foreach chunk,$(TOOL_CHUNKS),$(if $(filter $(PAGE_SRC),$(subst :, ,$(chunk))),\
  $(patsubst %.cc,%.o,$(call unity_files,$(chunk))))): $(PAGE_FILES)

# Renamed when they are whole: what runs the one before goes on with it.
$(BUILD)/libmtrace.so: $(LIB_OBJ) src/libmtrace/next/exports.map
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LIB_LINK) $(LDFLAGS) -o $@.new $(LIB_OBJ) -lc && mv $@.new $@
$(BUILD)/memlog: $(TOOL_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LDFLAGS) $(TOOL_LINK) -o $@.new $(TOOL_OBJ) $(TOOL_LIBS) && mv $@.new $@
$(HTTP_OBJ): TOOL_FLAGS += -fPIC -fvisibility=hidden
$(HTTP_OBJ): include_headers :=
$(HTTP): $(HTTP_OBJ)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CXX) -shared -Wl,-z,defs,-z,relro $(LDFLAGS) $(TOOL_SANITIZE) -o $@ $(HTTP_OBJ) -lcpp-httplib -lssl -lcrypto

$(REPLAY): src/replay/memlog_replay.cc src/format/replay.h Makefile | $(BUILD)/.build-deps
	@mkdir -p $(@D)
	$(call say,CXX,$@)
	$(Q)$(CXX) $(CPPFLAGS) $(filter-out -MMD -MP,$(COMMON)) -fno-exceptions -fno-rtti -fno-builtin-malloc \
	    $(CXXFLAGS) $(LDFLAGS) -nodefaultlibs -o $@ $< -lc -lgcc

include deps.mk
include install.mk
include deb.mk
include dist.mk
include tests/tests.mk

SOURCES = $(shell git ls-files 'src/*.cc' 'src/*.h' 'tests/*.cc' 'tests/*.h' 'tools/*.cc' 'tools/*.h' 'include/*.h')
format:
	clang-format -i $(SOURCES)
lint: | $(BUILD)/.test-deps
	clang-format --dry-run --Werror $(SOURCES)
	@printf '%s\n' $(LIB_SRC) | xargs -P $(JOBS) -I{} clang-tidy --quiet {} -- \
	    $(CPPFLAGS) $(filter-out -Werror -MMD -MP,$(LIB_FLAGS))
	@printf '%s\n' $(TOOL_SRC) $(HTTP_SRC) | xargs -P $(JOBS) -I{} clang-tidy --quiet {} -- \
	    $(CPPFLAGS) $(filter-out -Werror -MMD -MP,$(TOOL_FLAGS))

# One entry a source, as its object is compiled, without the headers that are compiled once.
json = $(subst ',,$(subst ",\\\",$(1)))
compile_commands.json: Makefile $(LIB_SRC) $(TOOL_SRC) $(HTTP_SRC)
	@{ echo '['; \
	  for file in $(LIB_SRC); do printf '{"directory":"%s","file":"%s","command":"%s"},\n' \
	    '$(CURDIR)' "$$file" '$(call json,$(CXX) $(CPPFLAGS) $(filter-out -MMD -MP,$(LIB_FLAGS)) -c) '"$$file"; done; \
	  for file in $(TOOL_SRC) $(HTTP_SRC); do printf '{"directory":"%s","file":"%s","command":"%s"},\n' \
	    '$(CURDIR)' "$$file" '$(call json,$(CXX) $(CPPFLAGS) $(filter-out -MMD -MP,$(TOOL_FLAGS)) -c) '"$$file"; done; \
	  } | sed '$$s/,$$//' >$@ && echo ']' >>$@

clean:
	rm -rf $(BUILD)

-include $(LIB_OBJ:.o=.d) $(TOOL_OBJ:.o=.d) $(HTTP_OBJ:.o=.d) $(HEADERS).gch.d
