// The list of modules while libraries come and go.
#include "modules/modules.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "directories.h"
#include "files.h"
#include "format/memlog.h"
#include "modules/object.h"
#include "taken_walk.h"
#include "unwind/rule_cache.h"

extern "C" int chain_gcc_nofp(void (*leaf)(void*), void* argument);

namespace mtrace::modules {
namespace {

namespace fs = std::filesystem;

std::string fixture(const std::string& name) { return test::build_dir() + "/tests/unwind/" + name; }

std::vector<std::pair<uintptr_t, uintptr_t>> mappings() {
  std::vector<std::pair<uintptr_t, uintptr_t>> ranges;
  for (const std::string& line : test::lines_of(test::read_file("/proc/self/maps"))) {
    uintptr_t start = 0;
    uintptr_t end = 0;
    if (sscanf(line.c_str(), "%lx-%lx", &start, &end) == 2) ranges.emplace_back(start, end);
  }
  return ranges;
}

// One path whose file changes.
class Modules : public testing::Test {
 protected:
  void SetUp() override { forget_unloaded(nullptr, nullptr); }
  void TearDown() override {
    if (handle_ != nullptr) close();
    forget_unloaded(nullptr, nullptr);
  }

  // Loads a new file with the contents of `name`, and calls into it.
  void load(const std::string& name) {
    fs::remove(path_);
    fs::copy_file(fixture(name), path_);
    open(path_);
  }
  void open(const std::string& path) {
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle_, nullptr) << dlerror();
    call();
  }
  void call() {
    using Plug = void (*)(void (*)(void*), void*);
    const auto plug = reinterpret_cast<Plug>(dlsym(handle_, "plug"));
    ASSERT_NE(plug, nullptr);
    code_ = reinterpret_cast<uintptr_t>(plug);
    taken_ = {};
    plug(unwind::take_leaf, &taken_);
  }
  void close() {
    ASSERT_EQ(dlclose(handle_), 0);
    handle_ = nullptr;
  }
  const Module* living() { return find_module(code_, kAlive, nullptr); }

  const test::TemporaryDirectory directory_;
  const std::string path_ = directory_ / "libplug.so";
  void* handle_ = nullptr;
  uintptr_t code_ = 0;
  unwind::TakenWalk taken_;
};

struct Unloaded {
  uintptr_t start;
  uintptr_t end;
  uint32_t epoch;
};

std::vector<Unloaded> forget() {
  std::vector<Unloaded> all;
  forget_unloaded(
      [](uintptr_t start, uintptr_t end, uint32_t epoch, void* to) {
        static_cast<std::vector<Unloaded>*>(to)->push_back({start, end, epoch});
      },
      &all);
  return all;
}

TEST_F(Modules, KnowsWhatIsLoaded) {
  load("libplug_small.so");
  EXPECT_EQ(taken_.difference, "");
  const Module* module = living();
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(module->path, path_);
  EXPECT_EQ(module->generation, 1u);
  EXPECT_EQ(module->died, kAlive);
  link_map* map = nullptr;
  ASSERT_EQ(dlinfo(handle_, RTLD_DI_LINKMAP, &map), 0);
  EXPECT_EQ(module->base, map->l_addr);
  EXPECT_EQ(module->build_id_size, 20u);
  EXPECT_EQ(module->identity, format::module_identity(module->build_id, module->build_id_size));
  EXPECT_EQ(find_module(module->start, kAlive, nullptr), module);
  EXPECT_EQ(find_module(module->end - 1, kAlive, nullptr), module);
  EXPECT_NE(find_module(module->end, kAlive, nullptr), module);
  EXPECT_NE(find_module(module->start - 1, kAlive, nullptr), module);
  uint32_t index = 0;
  find_module(code_, kAlive, &index);
  EXPECT_EQ(module_at(index), module);
}

// What is read from the loader's list is what libc's function says.
TEST_F(Modules, AreFoundInTheListAsByLibc) {
  load("libplug_small.so");
  unsigned found_here = 0;
  for (const auto& [start, end] : mappings()) {
    for (const uintptr_t address : {start, start + 8, start / 2 + end / 2, end - 1, end}) {
      dl_find_object expected;
      FoundObject found;
      const bool is_there = _dl_find_object(reinterpret_cast<void*>(address), &expected) == 0;
      ASSERT_EQ(find_object_in_list(address, &found), is_there) << std::hex << address;
      if (!is_there) continue;
      ++found_here;
      EXPECT_EQ(found.start, reinterpret_cast<uintptr_t>(expected.dlfo_map_start));
      EXPECT_EQ(found.end, reinterpret_cast<uintptr_t>(expected.dlfo_map_end));
      EXPECT_EQ(found.eh_frame_hdr, reinterpret_cast<uintptr_t>(expected.dlfo_eh_frame));
      EXPECT_EQ(found.map, expected.dlfo_link_map);
    }
  }
  EXPECT_GT(found_here, 50u);
}

TEST_F(Modules, NamesTheProgramAndTheVdso) {
  take_leaf(&taken_);
  const Module* self = find_module(reinterpret_cast<uintptr_t>(&forget), kAlive, nullptr);
  ASSERT_NE(self, nullptr);
  EXPECT_EQ(self->path, fs::read_symlink("/proc/self/exe").string());

  Object scratch;
  const uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
  ASSERT_NE(loaded_object(vdso, &scratch), nullptr);
  const Module* module = find_module(vdso, kAlive, nullptr);
  ASSERT_NE(module, nullptr);
  EXPECT_STREQ(module->path, "[vdso]");
  EXPECT_GT(module->build_id_size, 0u);
}

TEST_F(Modules, MakesRelativeNamesAbsolute) {
  const fs::path before = fs::current_path();
  fs::copy_file(fixture("libplug_small.so"), path_);
  fs::current_path(directory_.path());
  open("./libplug.so");
  fs::current_path(before);
  ASSERT_NE(living(), nullptr);
  EXPECT_EQ(living()->path, path_);
}

TEST_F(Modules, NothingIsForgottenWhileItIsLoaded) {
  load("libplug_small.so");
  const uint32_t epoch = unload_epoch();
  EXPECT_TRUE(forget().empty());
  // A second handle keeps it.
  void* second = dlopen(path_.c_str(), RTLD_NOW);
  dlclose(second);
  EXPECT_TRUE(forget().empty());
  EXPECT_EQ(unload_epoch(), epoch);
}

TEST_F(Modules, AnotherFileAtTheSameAddressIsANewGeneration) {
  load("libplug_small.so");
  const Module* small = living();
  ASSERT_NE(small, nullptr);
  const uintptr_t code = code_;
  const uintptr_t frame = taken_.frames[0];
  close();
  const std::vector<Unloaded> unloaded = forget();
  ASSERT_EQ(unloaded.size(), 1u);
  EXPECT_EQ(unloaded[0].start, small->start);
  EXPECT_EQ(unloaded[0].end, small->end);
  EXPECT_EQ(unloaded[0].epoch, unload_epoch() - 1);  // another one ended with the rules
  EXPECT_EQ(living(), nullptr);
  EXPECT_TRUE(forget().empty());

  load("libplug_large.so");
  // The kernel gives the same hole to a file of the same size, so the return address is the same
  // one, with another frame size.
  ASSERT_EQ(code_, code);
  ASSERT_EQ(taken_.frames[0], frame);
  EXPECT_EQ(taken_.difference, "");
  const Module* large = living();
  ASSERT_NE(large, nullptr);
  EXPECT_NE(large, small);
  EXPECT_STREQ(large->path, small->path);
  EXPECT_EQ(large->generation, 2u);
  EXPECT_NE(large->identity, small->identity);
  // A stack that was retired when the first went finds the first.
  EXPECT_EQ(find_module(frame, unloaded[0].epoch, nullptr), small);
  EXPECT_EQ(find_module(frame, kAlive, nullptr), large);
}

// A report has read that a stack is in use, and another thread retires it before the report looks
// for its modules; or something else lies there by then.
TEST_F(Modules, AStackThatIsRetiredMeanwhileKeepsItsNames) {
  for (const bool other : {false, true}) {
    load("libplug_small.so");
    const Module* small = living();
    ASSERT_NE(small, nullptr);
    const uintptr_t frame = taken_.frames[0];
    uint32_t word = kAlive;
    StackEpoch epoch(word);
    close();
    const std::vector<Unloaded> unloaded = forget();
    ASSERT_EQ(unloaded.size(), 1u);
    if (other) load("libplug_large.so");
    EXPECT_NE(find_module(frame, kAlive, nullptr), small);
    word = unloaded[0].epoch;
    EXPECT_EQ(find_module(frame, epoch, nullptr), small);
    EXPECT_EQ(epoch.seen(), word);
    EXPECT_FALSE(epoch.moved());
  }
}

TEST_F(Modules, TheSameFileAtTheSameAddressLivesAgain) {
  load("libplug_small.so");
  uint32_t first = 0;
  ASSERT_NE(find_module(code_, kAlive, &first), nullptr);
  const uintptr_t code = code_;
  for (int i = 0; i < 3; ++i) {
    close();
    EXPECT_EQ(forget().size(), 1u);
    open(path_);
    ASSERT_EQ(code_, code);
    uint32_t again = 0;
    ASSERT_NE(find_module(code_, kAlive, &again), nullptr);
    EXPECT_EQ(again, first);
    EXPECT_EQ(module_at(again)->generation, 1u);
  }
}

// Build-id and place are those of the file before.
TEST_F(Modules, ACopyAtTheSameAddressHasItsOwnName) {
  load("libplug_small.so");
  const uintptr_t code = code_;
  close();
  EXPECT_EQ(forget().size(), 1u);
  const std::string copy = directory_ / "copy.so";
  fs::copy_file(path_, copy);
  open(copy);
  ASSERT_EQ(code_, code);
  ASSERT_NE(living(), nullptr);
  EXPECT_EQ(living()->path, copy);
}

// One thread finds it gone while another one loads it again and goes on by rules of before, so that
// no walk enters it anew: its stacks must go on with its name, and be retired when it really goes.
TEST_F(Modules, ComesBackUnmet) {
  load("libplug_small.so");
  const Module* small = living();
  ASSERT_NE(small, nullptr);
  close();
  const std::vector<Unloaded> unloaded = forget();
  ASSERT_EQ(unloaded.size(), 1u);
  EXPECT_EQ(living(), nullptr);
  handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_EQ(reinterpret_cast<uintptr_t>(dlsym(handle_, "plug")), code_);
  EXPECT_EQ(living(), small);
  EXPECT_EQ(small->died, kAlive);
  EXPECT_EQ(find_module(code_, unloaded[0].epoch, nullptr), small);
  close();
  EXPECT_EQ(forget().size(), 1u);
  EXPECT_EQ(living(), nullptr);
}

// Two threads end epochs at once: neither takes the other's for done.
TEST_F(Modules, TellsUpToWhichEpochItIsDone) {
  load("libplug_small.so");
  close();
  const auto other = [](uintptr_t, uintptr_t, uint32_t, void*) {
    unwind::forget_rules(0, unwind::kKeyEnd);
  };
  EXPECT_NE(forget_unloaded(other, nullptr), unload_epoch());
  EXPECT_EQ(forget_unloaded(other, nullptr), unload_epoch());
}

// Whose dlclose we have not seen: noticed when the next object at the address is registered, and
// told by the next forget_unloaded.
TEST_F(Modules, AnUnseenUnloadIsNoticed) {
  load("libplug_small.so");
  const Module* small = living();
  ASSERT_NE(small, nullptr);
  const uint32_t epoch = unload_epoch();
  close();
  fs::remove(path_);
  fs::copy_file(fixture("libplug_large.so"), path_);
  handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle_, nullptr);
  const auto code = reinterpret_cast<uintptr_t>(dlsym(handle_, "plug"));
  ASSERT_EQ(code, code_);
  Object scratch;
  ASSERT_NE(loaded_object(code, &scratch), nullptr);
  EXPECT_EQ(unload_epoch(), epoch + 2);
  EXPECT_EQ(small->died, epoch + 1);
  ASSERT_NE(living(), nullptr);
  EXPECT_EQ(living()->generation, 2u);
  EXPECT_EQ(living()->born, epoch + 1);
  const std::vector<Unloaded> unloaded = forget();
  ASSERT_EQ(unloaded.size(), 1u);
  EXPECT_EQ(unloaded[0].start, small->start);
  EXPECT_EQ(unloaded[0].epoch, epoch + 1);
  // And its rules went with it.
  call();
  EXPECT_EQ(taken_.difference, "");
}

// Other threads walk while the cache is emptied again and again under them.
TEST_F(Modules, WalksGoOnWhileLibrariesComeAndGo) {
  std::atomic<unsigned> walks{0};
  std::atomic<unsigned> different{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        unwind::TakenWalk taken;
        chain_gcc_nofp(unwind::take_leaf, &taken);
        if (!taken.difference.empty()) ++different;
        ++walks;
      }
    });
  }
  unsigned forgotten = 0;
  for (int round = 0; round < 100; ++round) {
    load(round % 2 == 0 ? "libplug_small.so" : "libplug_large.so");
    EXPECT_EQ(taken_.difference, "") << round;
    EXPECT_NE(living(), nullptr);
    close();
    forgotten += static_cast<unsigned>(forget().size());
  }
  while (walks == 0) std::this_thread::yield();
  threads.clear();
  EXPECT_EQ(forgotten, 100u);
  EXPECT_EQ(different, 0u);
}

}  // namespace
}  // namespace mtrace::modules
