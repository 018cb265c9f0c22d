# The tables in every order of a few threads: the library's own sources, with a scheduler in place
# of base/atomic.h.
#
#   make schedule              all scenarios, on the memory of x86 and of Arm: orders that cost at most
#                              BOUND (3), at most ORDERS (5,000,000) of each, and some by chance
#   make schedule-bugs         each of bugs.txt, in a copy of the source: it must be found

SCHEDULE_BUILD := $(BUILD)/schedule
BOUND  ?= 3
ORDERS ?= 5000000
# Of the sources that are part of the scenarios only what these call: the rest needs the rest.
SCHEDULE_FLAGS := -std=c++20 $(WARN) -MMD -MP -ffunction-sections -Wl,--gc-sections -Itests/schedule -Isrc/libmtrace -DMTRACE_ATOMICS='"stepped_atomic.h"'
SCHEDULE_BUGS  := $(shell sed -n 's/^\([a-z][a-z-]*\)|.*/\1/p' tests/schedule/bugs.txt)
SCHEDULE_BUG_BINARIES := $(SCHEDULE_BUGS:%=$(SCHEDULE_BUILD)/bugs/%/scenarios)

SCHEDULE_OBJ := $(SCHEDULE_BUILD)/scheduler.o $(SCHEDULE_BUILD)/memory.o
$(SCHEDULE_OBJ): $(SCHEDULE_BUILD)/%.o: tests/schedule/%.cc tests/schedule/schedule.mk | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) $(CPPFLAGS) $(SCHEDULE_FLAGS) -O2 -g -c $< -o $@
$(SCHEDULE_BUILD)/scenarios: tests/schedule/scenarios.cc $(SCHEDULE_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CXX) $(CPPFLAGS) $(SCHEDULE_FLAGS) -O1 -g -o $@ $< $(SCHEDULE_OBJ)
$(SCHEDULE_BUILD)/bugs/%/scenarios: tests/schedule/scenarios.cc $(SCHEDULE_OBJ) \
    tests/schedule/bugs.txt tests/schedule/make_bug.sh
	$(call say,BUG,$*)
	$(Q)tests/schedule/make_bug.sh $* $(@D)
	$(Q)$(CXX) -I$(@D) $(CPPFLAGS) $(SCHEDULE_FLAGS) -Wno-error -w -O0 -o $@ $< $(SCHEDULE_OBJ)

CHECKERS   += $(SCHEDULE_BUILD)/scenarios $(SCHEDULE_BUG_BINARIES)

.PHONY: schedule schedule-bugs
schedule: $(SCHEDULE_BUILD)/scenarios
	$< --bound $(BOUND) --orders $(ORDERS) --sample 20000
	$< --arm --bound $(BOUND) --orders $(ORDERS) --sample 20000
schedule-bugs: $(SCHEDULE_BUG_BINARIES)
	@tests/schedule/find_bugs.sh $(SCHEDULE_BUILD)

-include $(SCHEDULE_OBJ:.o=.d) $(wildcard $(SCHEDULE_BUILD)/*.d $(SCHEDULE_BUILD)/bugs/*/*.d)
