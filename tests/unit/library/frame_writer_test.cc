// Lines of frames that are kept, while the libraries that they name come and go.
#include "report/frame_writer.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "directories.h"
#include "format/python.h"
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
    unwind::Object object;
    ASSERT_NE(unwind::loaded_object(address, &object), nullptr);
  }

  FrameLines lines_;
  ModuleSet modules_;
  unwind::StackEpoch now_;
};

TEST_F(FrameLinesTest, AddressesOfThisProgram) {
  const auto here = reinterpret_cast<uintptr_t>(&write_frame);
  meet(here);
  // More than there is room for.
  for (uintptr_t offset = 0; offset < 40000; ++offset) line(here + offset);
  EXPECT_NE(line(here).find("unit_library+0x"), std::string::npos);
  EXPECT_EQ(line(0x1234), "\t(0x1234)\n");
}

// Another thread retires the stack between a look at it and at the line.
TEST_F(FrameLinesTest, OfAStackThatIsRetiredMeanwhile) {
  const auto here = reinterpret_cast<uintptr_t>(&write_frame);
  meet(here);
  const std::string text = line(here);
  uint32_t word = unwind::kAlive;
  unwind::StackEpoch epoch(word);
  word = unwind::unload_epoch() + 1;
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
  EXPECT_NE(line(address).find("libplug_small.so"), std::string::npos);
  ASSERT_EQ(dlclose(library), 0);
  unwind::forget_unloaded(nullptr, nullptr);
  EXPECT_EQ(line(address).find("libplug_small.so"), std::string::npos);
}

}  // namespace
}  // namespace mtrace::report
