// What leads on where a frame has no call-frame information of a loaded object: the frame pointer,
// where that is plausible, and what the program has registered.
#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "modules/object.h"
#include "pages.h"
#include "unwind/code.h"
#include "unwind/registered_frames.h"
#include "unwind/slow_walk.h"

namespace mtrace::unwind {
namespace {

// `call` ends at the end of seven bytes; what is in front of it is of no interest.
bool is_call(const std::vector<unsigned char>& call) {
  unsigned char code[7];
  memset(code, 0x90, sizeof code);
  memcpy(code + sizeof code - call.size(), call.data(), call.size());
  return ends_with_call(code);
}

// As GNU as assembles them.
TEST(FramePointer, KnowsCalls) {
  EXPECT_TRUE(is_call({0xe8, 1, 2, 3, 4}));              // call rel32
  EXPECT_TRUE(is_call({0xff, 0xd0}));                    // call *%rax
  EXPECT_TRUE(is_call({0x41, 0xff, 0xd3}));              // call *%r11
  EXPECT_TRUE(is_call({0xff, 0x10}));                    // call *(%rax)
  EXPECT_TRUE(is_call({0xff, 0x50, 8}));                 // call *8(%rax)
  EXPECT_TRUE(is_call({0xff, 0x14, 0xc8}));              // call *(%rax,%rcx,8)
  EXPECT_TRUE(is_call({0xff, 0x54, 0xc8, 8}));           // call *8(%rax,%rcx,8)
  EXPECT_TRUE(is_call({0xff, 0x14, 0x24}));              // call *(%rsp)
  EXPECT_TRUE(is_call({0xff, 0x15, 1, 2, 3, 4}));        // call *x(%rip)
  EXPECT_TRUE(is_call({0xff, 0x90, 1, 2, 3, 4}));        // call *x(%rax)
  EXPECT_TRUE(is_call({0xff, 0x94, 0xc8, 1, 2, 3, 4}));  // call *x(%rax,%rcx,8)
  EXPECT_TRUE(is_call({0xff, 0x14, 0xcd, 1, 2, 3, 4}));  // call *x(,%rcx,8)
}

TEST(FramePointer, KnowsWhatIsNoCall) {
  EXPECT_FALSE(is_call({}));
  EXPECT_FALSE(is_call({0xff, 0xe0}));              // jmp *%rax
  EXPECT_FALSE(is_call({0xff, 0x30}));              // push (%rax)
  EXPECT_FALSE(is_call({0xe9, 1, 2, 3, 4}));        // jmp rel32
  EXPECT_FALSE(is_call({0xff, 0x14}));              // without its SIB
  EXPECT_FALSE(is_call({0xff, 0x15}));              // without its displacement
  EXPECT_FALSE(is_call({0xff, 0x15, 1, 2, 3}));     // with three bytes of it
  EXPECT_FALSE(is_call({0xff, 0xd0, 0x90}));        // an instruction further on
  EXPECT_FALSE(is_call({0xe8, 1, 2, 3, 4, 0x90}));  // the same
}

// Java's interpreter pushes return addresses that no call precedes.
TEST(FramePointer, ReturnAddressesWithoutCall) {
  static int data;
  void* const memory =
      mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto code = reinterpret_cast<uintptr_t>(memory);
  uintptr_t stack[8] = {};
  const auto sp = reinterpret_cast<uintptr_t>(stack);
  const auto is_guessed = [&](uintptr_t pc, uintptr_t fp, uintptr_t returns) {
    stack[2] = fp;
    stack[3] = returns;
    StackMemory reader(trusted_stack(), sp);
    Registers caller;
    return guess_caller(&reader, {pc, sp, sp + 16}, &caller);
  };
  const uintptr_t next = sp + 48;
  EXPECT_FALSE(is_guessed(code + 64, next + 4, code + 128)) << "no frame pointer";
  EXPECT_FALSE(is_guessed(code + 64, sp, code + 128)) << "below";
  EXPECT_FALSE(is_guessed(code + 64, next, code + (uintptr_t{1} << 40))) << "far away";
  EXPECT_FALSE(is_guessed(code + 64, next, sp + 8)) << "in the stack";
  EXPECT_FALSE(is_guessed(code + 64, next, reinterpret_cast<uintptr_t>(&data))) << "in an object";
  EXPECT_FALSE(is_guessed(reinterpret_cast<uintptr_t>(&is_call), next, code + 128));
  EXPECT_TRUE(is_guessed(code + 64, next, code + 128));
  munmap(memory, kPage);
  EXPECT_FALSE(is_guessed(code + 64, next, code + 192)) << "unmapped";
}

// A section of one CIE and FDEs for [start, start + size) each. The CFA is rsp + `offset`;
// addresses are relative to their own place, as compilers write them.
class PlainSection {
 public:
  void add(uintptr_t start, uint32_t size, unsigned char offset) {
    if (bytes_.empty()) {
      // Version 1, "zR", alignments 1 and -8, return column 16; pcrel sdata4; CFA = rsp + 8.
      append({20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1});
      append({0, 0});
    }
    starts_.push_back({bytes_.size(), start, size});
    append({20, 0, 0, 0});
    number(bytes_.size());
    number(0);
    number(size);
    append({0, 0x0e, offset, 0, 0, 0, 0, 0});
  }
  // Where it lies is known now.
  const void* finished() {
    if (bytes_.size() % 4 != 0 || !ended_) number(0);
    ended_ = true;
    const auto base = reinterpret_cast<uintptr_t>(bytes_.data());
    for (const Fde& fde : starts_) {
      const auto distance = static_cast<uint32_t>(fde.start - (base + fde.place + 8));
      memcpy(bytes_.data() + fde.place + 8, &distance, 4);
    }
    return bytes_.data();
  }

 private:
  struct Fde {
    size_t place;
    uintptr_t start;
    uint32_t size;
  };
  void append(std::initializer_list<unsigned char> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void number(size_t value) {
    const auto word = static_cast<uint32_t>(value);
    const auto* bytes = reinterpret_cast<const unsigned char*>(&word);
    bytes_.insert(bytes_.end(), bytes, bytes + 4);
  }
  std::vector<unsigned char> bytes_;
  std::vector<Fde> starts_;
  bool ended_ = false;
};

// The offset of the CFA that is registered for an address; 0: nothing is.
int64_t offset_at(uintptr_t pc) {
  modules::Object object;
  cfi::Row row;
  return find_registered_row(pc, &object, &row) ? row.cfa_offset : 0;
}

class RegisteredFrames : public ::testing::Test {
 protected:
  // Within 2 GiB of the sections.
  const uintptr_t code_ = reinterpret_cast<uintptr_t>(new char[4096]) & ~uintptr_t{15};
};

TEST_F(RegisteredFrames, FindsTheEntryOfAnAddress) {
  PlainSection section;
  section.add(code_ + 64, 32, 48);  // not in order
  section.add(code_, 32, 16);
  const void* const begin = section.finished();
  EXPECT_EQ(offset_at(code_), 0);
  register_frames(begin);
  EXPECT_EQ(offset_at(code_ - 1), 0);
  EXPECT_EQ(offset_at(code_), 16);
  EXPECT_EQ(offset_at(code_ + 31), 16);
  EXPECT_EQ(offset_at(code_ + 32), 0);
  EXPECT_EQ(offset_at(code_ + 64), 48);
  EXPECT_EQ(offset_at(code_ + 96), 0);
  deregister_frames(begin);
  EXPECT_EQ(offset_at(code_), 0);
  deregister_frames(begin);
  deregister_frames(nullptr);
}

// What a program registers is copied: it may be gone before it is taken back.
TEST_F(RegisteredFrames, KeepsNothingOfTheProgramsMemory) {
  const void* begin = nullptr;
  {
    PlainSection section;
    section.add(code_, 32, 24);
    begin = section.finished();
    register_frames(begin);
    memset(const_cast<void*>(begin), 0xff, 40);
  }
  EXPECT_EQ(offset_at(code_), 24);
  deregister_frames(begin);
}

TEST_F(RegisteredFrames, MoreThanThereIsRoomFor) {
  std::vector<PlainSection> sections(700);
  std::vector<const void*> begins;
  for (size_t i = 0; i < sections.size(); ++i) {
    sections[i].add(code_ + i, 1, 32);
    begins.push_back(sections[i].finished());
  }
  for (int round = 0; round < 3; ++round) {
    for (const void* begin : begins) register_frames(begin);
    for (size_t i = 0; i < sections.size(); ++i) EXPECT_EQ(offset_at(code_ + i), i < 512 ? 32 : 0);
    for (const void* begin : begins) deregister_frames(begin);
    EXPECT_EQ(offset_at(code_), 0);
  }
}

// A section without an end at the end of what can be read, cut short at every byte, and of garbage.
TEST_F(RegisteredFrames, MalformedSections) {
  const Guarded page(kPage);
  auto* const end = reinterpret_cast<unsigned char*>(page.end());
  PlainSection section;
  section.add(code_, 32, 24);
  const auto* const whole = static_cast<const unsigned char*>(section.finished());
  constexpr size_t kSize = 24 + 24;
  for (size_t size = 0; size <= kSize; ++size) {
    unsigned char* const begin = end - size;
    memcpy(begin, whole, size);
    register_frames(begin);
    deregister_frames(begin);
  }
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    unsigned char* const begin = end - 256;
    memcpy(begin, whole, kSize);
    memset(begin + kSize, 0, 8);
    for (int i = 0; i < 3; ++i) begin[random() % kSize] = static_cast<unsigned char>(random());
    register_frames(begin);
    offset_at(code_);
    deregister_frames(begin);
  }
  register_frames(nullptr);
  register_frames(reinterpret_cast<void*>(uintptr_t{16}));
}

// Sections come and go while others are read: what is found is right, and nothing faults.
TEST_F(RegisteredFrames, WhileOthersWalk) {
  constexpr int kSections = 8;
  std::vector<PlainSection> sections(kSections);
  std::vector<const void*> begins;
  for (unsigned i = 0; i < kSections; ++i) {
    sections[i].add(code_ + i * 64, 32, static_cast<unsigned char>(16 + 8 * i));
    begins.push_back(sections[i].finished());
  }
  std::atomic<int> wrong{0};
  std::atomic<long> found{0};
  std::vector<std::jthread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        for (unsigned i = 0; i < kSections; ++i) {
          const int64_t offset = offset_at(code_ + i * 64 + 5);
          wrong += offset != 0 && offset != 16 + 8 * static_cast<int64_t>(i);
          found += offset != 0;
        }
      }
    });
  }
  for (int round = 0; round < 3000 || found.load() == 0; ++round) {
    const void* const begin = begins[static_cast<size_t>(round) % kSections];
    register_frames(begin);
    if (round % 3 == 0) deregister_frames(begins[static_cast<size_t>(round * 5) % kSections]);
  }
  readers.clear();
  EXPECT_EQ(wrong.load(), 0);
  for (const void* begin : begins) deregister_frames(begin);
}

}  // namespace
}  // namespace mtrace::unwind
