# ThreadSanitizer over the tests of the tables, by clang whatever builds the rest: of the library
# src/libmtrace/base and ledger, and these tests.
#
#   make tsan                       all of them
#   make tsan TSAN_FILTER='Peak.*'  some

TSAN_BUILD := $(BUILD)/tsan
TSAN_TESTS := $(addprefix tests/unit/library/,block_hash_test.cc block_table_test.cc notes_test.cc peak_test.cc \
                region_table_test.cc resource_table_test.cc stack_table_test.cc thread_slots_test.cc turn_test.cc)
TSAN_SRC   := $(filter-out src/libmtrace/base/syscall.cc,$(wildcard src/libmtrace/base/*.cc)) \
              $(wildcard src/libmtrace/ledger/*.cc) src/libmtrace/report/notes.cc tests/tsan/mapped_memory.cc tests/tsan/no_events.cc
TSAN_CHUNK := $(call unity_chunks,$(TSAN_BUILD)/obj/tests,$(TSAN_TESTS),100)
UNITY_CHUNKS += $(TSAN_CHUNK)
TSAN_CC    := $(call unity_files,$(TSAN_CHUNK))
TSAN_OBJ   := $(TSAN_SRC:%.cc=$(TSAN_BUILD)/obj/%.o) $(TSAN_CC:.cc=.o)
TSAN_FLAGS := -Isrc/libmtrace -std=c++20 -O1 -g1 $(WARN) -MMD -MP -fsanitize=thread
# Not what forks: in the child of a process with threads ThreadSanitizer waits for ever. It also runs
# handlers of signals later.
TSAN_FILTER ?= -*Fork*:*Child*:*Killed*:*InAHandler*

$(TSAN_BUILD)/obj/%.o: %.cc tests/tsan/tsan.mk | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(call say,TSAN,$<)
	$(Q)clang++ $(CPPFLAGS) $(TSAN_FLAGS) -c $< -o $@
$(TSAN_CC): unity ;
$(TSAN_CC:.cc=.o): %.o: %.cc tests/tsan/tsan.mk | $(BUILD)/.test-deps
	$(call say,TSAN,tests)
	$(Q)clang++ $(CPPFLAGS) $(TSAN_FLAGS) -iquote . -c $< -o $@
$(TSAN_BUILD)/tables: $(TSAN_OBJ)
	$(call say,LINK,$@)
	$(Q)clang++ -fsanitize=thread -o $@ $^ -lgtest -lgtest_main $(ABSL_LIBS)

CHECKERS   += $(TSAN_BUILD)/tables

.PHONY: tsan
tsan: $(TSAN_BUILD)/tables
	$(TSAN_BUILD)/tables --gtest_filter='$(TSAN_FILTER)'

-include $(TSAN_OBJ:.o=.d)
