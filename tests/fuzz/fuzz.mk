# Fuzzing: libFuzzer with AddressSanitizer and UndefinedBehaviorSanitizer, by clang whatever builds
# the rest.
#
#   make fuzz                  each target for SECONDS (600); new inputs stay in build/fuzz-long/found
#   make fuzz FUZZ=cfi         only that one
#   make fuzz-short            what make check-long runs: the seeds and a few thousand executions
#
# make check gives the seeds to the targets as the compiler of the rest builds them, with its objects.

FUZZ_BUILD   ?= $(BUILD)/fuzz
FUZZ_TARGETS := cfi memlog elf options decode ledger events request
FUZZ         ?= $(FUZZ_TARGETS)
SECONDS      ?= 600

# Half the time of building for make check-long; make fuzz has targets of its own, which run faster.
FUZZ_OPT      ?= -O0

FUZZ_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_FLAGS    := -Isrc/libmtrace -Isrc/memlog -std=c++20 $(FUZZ_OPT) -g1 $(WARN) -MMD -MP -fno-omit-frame-pointer \
                 -fsanitize=fuzzer-no-link $(FUZZ_SANITIZE) -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION \
                 -DMTRACE_INSTALLED_MEMLOG='"$(BINDIR)/memlog"'
# What a system call of the library's takes.
FUZZ_KERNEL   := $(addprefix src/libmtrace/base/,clock.cc file.cc filters.cc \
                   own_memory.cc probe.cc process.cc spawn.cc syscall.cc \
                   writer.cc)
# The parts that each target is about: sources, and whole folders of memlog, compiled some sources at
# a time as memlog's are.
FUZZ_SRC_cfi     := $(CFI_SRC) $(addprefix src/libmtrace/unwind/,$(ARCH)/compile.cc stack_memory.cc) \
                    $(addprefix src/libmtrace/modules/,c_library.cc linkage.cc object.cc) \
                    $(FUZZ_KERNEL)
FUZZ_ALL_memlog  := util model/profile model/ledger model/events view/analyze view/heap view/json view/export
FUZZ_SRC_elf     := $(addprefix src/memlog/model/symbols/,dwarf_index.cc elf_file.cc module_symbols.cc worker.cc) \
                    src/memlog/model/profile/line.cc src/memlog/util/text.cc
FUZZ_SRC_options := $(addprefix src/libmtrace/life/,environment.cc options.cc) \
                    $(addprefix src/libmtrace/modules/,c_library.cc linkage.cc object.cc) \
                    $(addprefix src/libmtrace/base/,table_file.cc turn.cc) src/libmtrace/report/host.cc $(FUZZ_KERNEL)
FUZZ_ALL_decode  := util model/symbols model/profile
FUZZ_ALL_ledger  := util model/profile model/ledger
FUZZ_ALL_events  := util model/profile model/events model/recording
FUZZ_ALL_request := $(FUZZ_ALL_memlog)
FUZZ_SRC_request := $(addprefix src/memlog/surface/serve/,access.cc request.cc) \
                    $(addprefix src/memlog/,surface/cli/arguments.cc surface/fleet/store.cc \
                    view/reports/catalog.cc process/inspect/process.cc view/text/style.cc)
FUZZ_LIBS_request = $(FUZZ_LIBS_memlog)
FUZZ_LIBS_events := -lfmt -lzstd -lre2 $(ABSL_LIBS) -labsl_raw_logging_internal
FUZZ_LIBS_ledger := -lfmt -lzstd -lre2 $(ABSL_LIBS)
FUZZ_LIBS_memlog := -lfmt -lzstd -lre2 -lz $(ABSL_LIBS) -labsl_raw_logging_internal
FUZZ_LIBS_elf    := -ldw -lelf -liberty -lfmt $(ABSL_LIBS)
FUZZ_LIBS_decode := -ldw -lelf -liberty -lfmt -lzstd -lre2 $(ABSL_LIBS)

# Only memlog's parts include the library headers that are compiled once.
FUZZ_PRECOMPILED = $(if $(filter src/libmtrace/%,$<),,\
                     -include $(FUZZ_BUILD)/headers.h)
$(FUZZ_BUILD)/obj/%.o: %.cc tests/fuzz/fuzz.mk $(FUZZ_BUILD)/headers.h.gch | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)
	$(Q)clang++ $(CPPFLAGS) $(FUZZ_FLAGS) $(FUZZ_PRECOMPILED) -c $< -o $@
$(FUZZ_BUILD)/obj/unity/%.o: $(BUILD)/obj/memlog/%.cc tests/fuzz/fuzz.mk $(FUZZ_BUILD)/headers.h.gch | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(call say,FUZZ,src/memlog/$(subst unity/,,$*).cc ...)
	$(Q)clang++ $(CPPFLAGS) $(FUZZ_FLAGS) -iquote . -include $(FUZZ_BUILD)/headers.h -c $< -o $@
$(FUZZ_BUILD)/headers.h.gch: src/memlog/headers.h tests/fuzz/fuzz.mk Makefile | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)
	@echo '#include "$(abspath $<)"' > $(@:.gch=)
	$(Q)$(call all_headers,clang++ $(CPPFLAGS) $(FUZZ_FLAGS)) $(@:.gch=) -o $@
# The target `decode` does without the worker process.
fuzz_folder = $(if $(UNITY_CC),$(patsubst $(BUILD)/obj/memlog/%.cc,$(FUZZ_BUILD)/obj/unity/%.o,$(filter $(BUILD)/obj/memlog/$(1)/%,$(UNITY_CC))),\
                $(patsubst %.cc,$(FUZZ_BUILD)/obj/%.o,$(filter-out %/worker.cc,$(wildcard src/memlog/$(1)/*.cc))))
define fuzz_rule
FUZZ_OBJ_$(1) := $$(patsubst %.cc,$(FUZZ_BUILD)/obj/%.o,tests/fuzz/$(1)_fuzz.cc $$(FUZZ_SRC_$(1))) \
                 $$(foreach folder,$$(FUZZ_ALL_$(1)),$$(call fuzz_folder,$$(folder)))
FUZZ_OBJ += $$(FUZZ_OBJ_$(1))
$(FUZZ_BUILD)/$(1): $$(FUZZ_OBJ_$(1))
	$$(call say,LINK,$$@)
	$$(Q)clang++ -fsanitize=fuzzer $(FUZZ_SANITIZE) -o $$@ $$^ $$(FUZZ_LIBS_$(1))
endef
$(foreach target,$(FUZZ_TARGETS),$(eval $(call fuzz_rule,$(target))))

LONG_EXTRA += $(addprefix $(FUZZ_BUILD)/,$(FUZZ_TARGETS))

# ---- The targets without the fuzzer, for their seeds.
SEEDS_BUILD := $(TEST_BUILD)/seeds
seeds_tool  := $(filter-out %/commands/main.o,$(TOOL_OBJ))
define seeds_rule
$(SEEDS_BUILD)/$(1): $(TEST_BUILD)/obj/fuzz/$(1)_fuzz.o $(TEST_BUILD)/obj/fuzz/replay.o \
    $$(if $$(filter src/libmtrace/%,$$(FUZZ_SRC_$(1))),$$(FUZZ_SRC_$(1):src/%.cc=$(BUILD)/obj/%.o),$$(seeds_tool))
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)
	$$(Q)$(CXX) $(LDFLAGS) -o $$@ $$^ $(TOOL_LIBS) -lpthread
endef
$(foreach target,$(FUZZ_TARGETS),$(eval $(call seeds_rule,$(target))))
$(TEST_BUILD)/obj/fuzz/%.o: TEST_FLAGS += -Isrc/libmtrace -Isrc/memlog
TEST_EXTRA += $(addprefix $(SEEDS_BUILD)/,$(FUZZ_TARGETS))

.PHONY: fuzz fuzz-long fuzz-short
fuzz:
	$(Q)$(MAKE) --no-print-directory FUZZ_BUILD=$(BUILD)/fuzz-long FUZZ_OPT=-O1 fuzz-long
fuzz-long: $(addprefix $(FUZZ_BUILD)/,$(FUZZ))
	@tests/fuzz/run.sh $(FUZZ_BUILD) --seconds $(SECONDS) $(FUZZ)
fuzz-short: $(addprefix $(FUZZ_BUILD)/,$(FUZZ))
	@tests/fuzz/run.sh $(FUZZ_BUILD) --runs 3000 $(FUZZ)

-include $(sort $(FUZZ_OBJ:.o=.d)) $(FUZZ_BUILD)/headers.h.gch.d $(wildcard $(TEST_BUILD)/obj/fuzz/*.d)
