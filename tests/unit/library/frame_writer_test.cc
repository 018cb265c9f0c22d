// Lines of frames that are kept, while the libraries that they name come and go.
#include "report/frame_writer.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "directories.h"
#include "expect.h"
#include "format/python.h"
#include "ledger/ledger.h"
#include "modules/object.h"
#include "pages.h"

namespace mtrace::report {
namespace {

class FrameLinesTest : public ::testing::Test {
 protected:
  template <typename Write>
  static std::string text_of(Write write) {
    char buffer[8192];
    Writer out(buffer, sizeof buffer);
    write(out);
    EXPECT_EQ(out.finish(), 0);
    return buffer;
  }
  // The same each time, and what is written without lines kept.
  std::string line(uintptr_t address) {
    std::string text;
    for (int i = 0; i < 3; ++i) {
      ModuleSet modules;
      text = text_of([&](Writer& out) { write_frame(out, address, now_, modules); });
      EXPECT_EQ(text_of([&](Writer& out) { lines_.write(out, address, now_, modules_); }), text);
    }
    return text;
  }
  static void meet(uintptr_t address) {
    modules::Object object;
    ASSERT_NE(modules::loaded_object(address, &object), nullptr);
  }

  FrameLines lines_;
  ModuleSet modules_;
  modules::StackEpoch now_;
};

// A thousand stacks below three ways to the root, and some that share nothing: read back, each has
// its frames, and what they share stands once.
TEST_F(FrameLinesTest, TailsStandOnce) {
  const ledger::StackTable& table = ledger::g_ledger.stacks;
  ASSERT_TRUE(ledger::g_ledger.stacks.init(nullptr));
  std::mt19937 random(5);
  std::map<uint32_t, std::vector<uintptr_t>> stacks;
  for (int i = 0; i < 1000; ++i) {
    std::vector<uintptr_t> frames;
    for (unsigned n = 1 + random() % 9; n > 0; --n) frames.push_back(0x10 + random() % 9);
    if (i % 10 != 0) {
      const unsigned way = 1 + random() % 3;
      for (unsigned n = 20 * way; n > 0; --n) frames.push_back(0x1000 * way + n);
    }
    const uint64_t hash = random();
    stacks[ledger::g_ledger.stacks.intern(
        {1, hash, frames.data(), static_cast<uint16_t>(frames.size()), 0, false, false}, 1)] =
        frames;
  }
  Tails tails;
  tails.reserve(table);
  for (const auto& [index, frames] : stacks) tails.id_of(table.record(index));
  std::map<std::string, std::string> lists;  // by "stack" and its number, or the tail's line
  const auto big_text_of = [](auto write) {
    std::string buffer(1 << 20, '\0');
    Writer out(buffer.data(), buffer.size());
    write(out);
    EXPECT_EQ(out.finish(), 0);
    return buffer.substr(0, buffer.find('\0'));
  };
  for (const auto& [index, frames] : stacks) {
    lists["stack" + std::to_string(index)] =
        big_text_of([&](Writer& out) { write_frames(out, index, modules_, lines_, tails); });
  }
  std::istringstream text(
      big_text_of([&](Writer& out) { write_tails(out, modules_, lines_, tails); }));
  std::string key;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("# tail: ")) {
      key = line.substr(8);
      EXPECT_FALSE(lists.contains(key)) << "twice";
      lists[key];
    } else {
      lists[key] += line + '\n';
    }
  }
  size_t lines = 0;
  for (const auto& [name, list] : lists) {
    lines += static_cast<size_t>(std::count(list.begin(), list.end(), '\n'));
  }
  EXPECT_LT(lines, 1000u * 18 + 200) << "of 38,000 frames";
  for (const auto& [index, frames] : stacks) {
    std::string all;
    size_t first = 0;
    for (std::string next = "stack" + std::to_string(index); !next.empty();) {
      const std::string& list = lists.at(next);
      const size_t end = list.find("\t^ tail=");
      next = end == std::string::npos ? "" : list.substr(end + 8, 16);
      all += list.substr(0, end);
      if (first == 0) first = static_cast<size_t>(std::count(all.begin(), all.end(), '\n'));
    }
    EXPECT_GE(first, std::min<size_t>(frames.size(), 10));
    std::string expected;
    for (const uintptr_t frame : frames) expected += fmt::format("\t(0x{:x})\n", frame);
    ASSERT_EQ(all, expected);
  }
}

TEST_F(FrameLinesTest, AddressesOfThisProgram) {
  const auto here = reinterpret_cast<uintptr_t>(&write_frame);
  meet(here);
  // More than there is room for.
  for (uintptr_t offset = 0; offset < 40000; ++offset) line(here + offset);
  EXPECT_HAS(line(here), "unit_library+0x");
  EXPECT_EQ(line(0x1234), "\t(0x1234)\n");
}

// Another thread retires the stack between a look at it and at the line.
TEST_F(FrameLinesTest, OfAStackThatIsRetiredMeanwhile) {
  const auto here = reinterpret_cast<uintptr_t>(&write_frame);
  meet(here);
  const std::string text = line(here);
  uint32_t word = modules::kAlive;
  modules::StackEpoch epoch(word);
  word = modules::unload_epoch() + 1;
  EXPECT_EQ(text_of([&](Writer& out) { lines_.write(out, here, epoch, modules_); }), text);
  EXPECT_EQ(epoch.seen(), word);
}

// A page fault takes longer than writing a line: 1,000 lines stand on some 20 pages, and not each
// on a page of its own.
TEST_F(FrameLinesTest, TouchFewPages) {
  constexpr uint32_t kLines = 1000;
  constexpr long kMost = 100;
  const auto write_all = [&] {
    for (uint32_t number = 1; number <= kLines; ++number) {
      char text[256];
      Writer out(text, sizeof text);
      lines_.write(out, format::PythonFrame::pack(0, static_cast<int32_t>(number)), now_, modules_);
    }
  };
  const long before = page_faults();
  write_all();
  EXPECT_LT(page_faults() - before, kMost);
}

TEST_F(FrameLinesTest, NamesNoLibraryThatIsGone) {
  const std::string path = test::build_dir() + "/tests/unwind/libplug_small.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto address = reinterpret_cast<uintptr_t>(dlsym(library, "plug"));
  meet(address);
  EXPECT_HAS(line(address), "libplug_small.so");
  ASSERT_EQ(dlclose(library), 0);
  modules::forget_unloaded(nullptr, nullptr);
  EXPECT_LACKS(line(address), "libplug_small.so");
}

}  // namespace
}  // namespace mtrace::report
