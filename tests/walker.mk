# The walker's tests: code compiled for them with and without frame pointers, and the library that
# holds the walker against libunwind inside other programs. Included by tests/tests.mk.

UNWIND_FIXTURES := tests/unit/library/unwind
UNWIND_BUILD    := $(TEST_BUILD)/unwind
CHAIN_FLAGS     := -std=c++20 -O2 -g -fPIC -Wall -Wextra -Werror -Isrc/libmtrace -Isrc

# The same call chains, by both compilers; the suffix makes their names differ.
chain_gcc   := $(CROSS)g++
chain_clang := clang++ $(clang_target)
define chain_rule
$(UNWIND_BUILD)/chain_$(1)_$(2).o: $(UNWIND_FIXTURES)/chain.cc tests/walker.mk | $$(BUILD)/.test-deps
	@mkdir -p $$(@D)
	$$(chain_$(1)) $(CHAIN_FLAGS) $(3) -DCHAIN=chain_$(1)_$(2) -c $$< -o $$@
UNWIND_OBJ += $(UNWIND_BUILD)/chain_$(1)_$(2).o
endef
$(foreach compiler,gcc clang,\
  $(eval $(call chain_rule,$(compiler),nofp,-fomit-frame-pointer))\
  $(eval $(call chain_rule,$(compiler),fp,-fno-omit-frame-pointer)))

# Hand-written frames, for x86_64.
$(UNWIND_BUILD)/frames.o: $(UNWIND_FIXTURES)/x86_64/frames.S tests/walker.mk | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(CC) -g -c $< -o $@
UNWIND_OBJ += $(if $(filter x86_64,$(ARCH)),$(UNWIND_BUILD)/frames.o)
$(TEST_BUILD)/unit_library: $(UNWIND_OBJ)

# Two libraries of one layout and different code, to be loaded in turn at one address.
define plug_rule
$(UNWIND_BUILD)/libplug_$(1).so: $(UNWIND_FIXTURES)/$$(ARCH)/plug.S tests/walker.mk | $$(BUILD)/.test-deps
	@mkdir -p $$(@D)
	$$(CC) -shared -nostdlib -Wl,--build-id=sha1 -DPLUG_FRAME=$(2) $$< -o $$@
UNWIND_PLUGS += $(UNWIND_BUILD)/libplug_$(1).so
endef
$(eval $(call plug_rule,small,24))
$(eval $(call plug_rule,large,4104))
TEST_EXTRA += $(UNWIND_PLUGS)

# The walker and libunwind in one preloaded library. libgcc is linked in: programs written in C
# have none loaded.
WALKCHECK := $(PROGRAMS)/walkcheck.so
WALKCHECK_OBJ = $(CFI_OBJ) $(filter $(foreach f,base modules unwind python,$(BUILD)/obj/libmtrace/$(f)/%),$(LIB_OBJ))
$(WALKCHECK): tests/walkcheck/walkcheck.cc tests/walkcheck/walkcheck.h $(WALKCHECK_OBJ) \
    tests/walker.mk | $(BUILD)/.test-deps
	@mkdir -p $(@D)
	$(CXX) $(CPPFLAGS) -Itests $(filter-out -MMD -MP,$(LIB_FLAGS)) -shared -static-libgcc -o $@ \
	    $< $(WALKCHECK_OBJ) -lgcc_eh
LONG_EXTRA += $(WALKCHECK)

# Frames of many kinds, by both compilers, and the program that leads through them.
define frames_rule
$(UNWIND_BUILD)/frames_$(1)_$(2).o: tests/walkcheck/frames.cc tests/walkcheck/frames.h tests/walker.mk | $$(BUILD)/.test-deps
	@mkdir -p $$(@D)
	$$(chain_$(1)) $(CHAIN_FLAGS) -Itests -fno-builtin $(3) -DFRAMES=frames_$(1)_$(2) -c $$< -o $$@
PROGRAM_LIBS_random_frames += $(UNWIND_BUILD)/frames_$(1)_$(2).o
endef
$(foreach compiler,gcc clang,\
  $(eval $(call frames_rule,$(compiler),nofp,-fomit-frame-pointer))\
  $(eval $(call frames_rule,$(compiler),fp,-fno-omit-frame-pointer)))
$(PROGRAMS)/random_frames: tests/walkcheck/frames.h $(PROGRAM_LIBS_random_frames)
