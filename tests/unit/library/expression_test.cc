// DWARF expressions against results worked out by hand.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cfi/frame_registers.h"
#include "unwind/stack_memory.h"

namespace mtrace::unwind {
namespace {

using Ops = std::vector<unsigned>;

struct Evaluated {
  bool good;
  uintptr_t value;
};

class Expression : public testing::Test {
 protected:
  Expression() {
    machine_.set(cfi::kSp, reinterpret_cast<uintptr_t>(words_));
    machine_.set(cfi::kFp, 1000);
    machine_.set(cfi::kReturn, 0x40001b);
  }
  Evaluated run(const Ops& ops, const uintptr_t* initial = nullptr) {
    std::string bytes(1, static_cast<char>(ops.size()));
    for (const unsigned op : ops) bytes.push_back(static_cast<char>(op));
    const auto place = reinterpret_cast<uintptr_t>(bytes.data());
    cfi::Bounds bounds;
    bounds.add(place, place + bytes.size());
    StackMemory memory(
        {reinterpret_cast<uintptr_t>(words_), reinterpret_cast<uintptr_t>(words_) + sizeof words_},
        reinterpret_cast<uintptr_t>(words_));
    Evaluated result = {};
    result.good = evaluate(bounds, place, initial, machine_, &memory, &result.value);
    return result;
  }
  void expect(const Ops& ops, uintptr_t value) {
    const Evaluated result = run(ops);
    EXPECT_TRUE(result.good);
    EXPECT_EQ(result.value, value);
  }

  uintptr_t words_[4] = {0x1122334455667788, 2, 3, ~uintptr_t{0}};
  cfi::FrameRegisters machine_ = {};
};

TEST_F(Expression, Constants) {
  expect({0x35}, 5);
  expect({0x08, 0xff}, 255);
  expect({0x09, 0xff}, ~uintptr_t{0});
  expect({0x0a, 0xff, 0xff}, 0xffff);
  expect({0x0b, 0xfe, 0xff}, ~uintptr_t{0} - 1);
  expect({0x0c, 1, 0, 0, 0x80}, 0x80000001);
  expect({0x0d, 1, 0, 0, 0x80}, 0xffffffff80000001);
  expect({0x0e, 8, 7, 6, 5, 4, 3, 2, 1}, 0x0102030405060708);
  expect({0x10, 0x80, 1}, 128);
  expect({0x11, 0x7f}, ~uintptr_t{0});
}

TEST_F(Expression, StackOperations) {
  expect({0x31, 0x32, 0x12, 0x22}, 4);                       // dup: 2 + 2
  expect({0x31, 0x32, 0x13}, 1);                             // drop
  expect({0x38, 0x32, 0x14, 0x1c}, uintptr_t{2} - 8);        // over: 2 - 8
  expect({0x31, 0x32, 0x33, 0x15, 2}, 1);                    // pick 2
  expect({0x38, 0x32, 0x16, 0x1c}, uintptr_t{2} - 8);        // swap: 2 - 8
  expect({0x31, 0x32, 0x34, 0x17, 0x1c}, uintptr_t{1} - 2);  // rot: 4 1 2, 1 - 2
}

TEST_F(Expression, Arithmetic) {
  expect({0x09, 0xf8, 0x33, 0x1b}, ~uintptr_t{0} - 1);  // -8 / 3 = -2
  expect({0x38, 0x33, 0x1d}, 2);                        // 8 mod 3
  expect({0x38, 0x33, 0x1e}, 24);
  expect({0x38, 0x1f}, ~uintptr_t{0} - 7);  // neg
  expect({0x30, 0x20}, ~uintptr_t{0});      // not
  expect({0x38, 0x33, 0x21}, 11);
  expect({0x38, 0x23, 0x80, 1}, 136);
  expect({0x31, 0x34, 0x24}, 16);
  expect({0x38, 0x32, 0x25}, 2);
  expect({0x09, 0xf8, 0x31, 0x26}, ~uintptr_t{0} - 3);  // -8 >> 1 = -4
  expect({0x09, 0xf8, 0x19}, 8);                        // abs
  expect({0x3f, 0x35, 0x1a}, 5);
  expect({0x3f, 0x3a, 0x27}, 5);
  expect({0x31, 0x08, 64, 0x24}, 0);
}

TEST_F(Expression, ComparisonsAreSigned) {
  expect({0x09, 0xff, 0x31, 0x2d}, 1);  // -1 < 1
  expect({0x09, 0xff, 0x31, 0x2b}, 0);  // -1 > 1
  expect({0x31, 0x31, 0x29}, 1);
  expect({0x31, 0x31, 0x2e}, 0);
  expect({0x31, 0x31, 0x2c}, 1);
  expect({0x31, 0x32, 0x2a}, 0);
}

TEST_F(Expression, Branches) {
  expect({0x31, 0x28, 1, 0, 0x30, 0x35}, 5);        // taken: over lit0
  expect({0x32, 0x30, 0x28, 1, 0, 0x33, 0x22}, 5);  // not taken: 2 + 3
  expect({0x37, 0x2f, 1, 0, 0x30}, 7);              // skip to the end
}

TEST_F(Expression, RegistersAndMemory) {
  constexpr unsigned kOfFp = 0x70 + cfi::kFp;  // DW_OP_breg0 + register
  constexpr unsigned kOfSp = 0x70 + cfi::kSp;
  expect({kOfFp, 0x18}, 1024);                   // fp + 24
  expect({0x92, cfi::kFp, 0x7f}, 999);           // bregx fp - 1
  expect({kOfSp, 0, 0x06}, 0x1122334455667788);  // *(sp)
  expect({kOfSp, 0, 0x94, 1}, 0x88);
  expect({kOfSp, 0, 0x94, 2}, 0x7788);
  expect({kOfSp, 0, 0x94, 4}, 0x55667788);
  const uintptr_t cfa = 77;
  const Evaluated pushed = run({0x31, 0x22}, &cfa);
  EXPECT_TRUE(pushed.good);
  EXPECT_EQ(pushed.value, 78u);
}

// What binutils writes for an entry of the PLT on x86_64: the frame grows by a word at byte 11
// of 16.
TEST_F(Expression, ProcedureLinkageTable) {
  const Ops plt = {
      0x70 + cfi::kSp, 8, 0x70 + cfi::kReturn, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
  const auto rsp = reinterpret_cast<uintptr_t>(words_);
  machine_.set(cfi::kReturn, 0x40001a);
  expect(plt, rsp + 8);
  machine_.set(cfi::kReturn, 0x40001b);
  expect(plt, rsp + 16);
}

TEST_F(Expression, RefusesWhatHasNoResult) {
  const std::vector<Ops> bad = {
      {},      // nothing
      {0x22},  // too few
      {0x31, 0x22},
      {0x12},
      {0x31, 0x15, 1},     // pick beyond
      {0x31, 0x30, 0x1b},  // division by zero
      {0x31, 0x30, 0x1d},
      {0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b},  // the one that overflows
      {0x73, 0},                                            // rbx is not known
      {0x92, 99, 0},
      {0x30, 0x06},        // *0
      {0x77, 0, 0x94, 3},  // a size that there is not
      {0x2f, 0xfd, 0xff},  // a loop
      {0x2f, 100, 0},      // out of the expression
      {0x2f, 0xf0, 0xff},
      {0x08},         // cut short
      {0x97},         // form_tls_address: no meaning here
      {0x80 | 0x16},  // nop alone
  };
  for (size_t i = 0; i < bad.size(); ++i) EXPECT_FALSE(run(bad[i]).good) << i;
  Ops deep(40, 0x31);
  EXPECT_FALSE(run(deep).good);
}

}  // namespace
}  // namespace mtrace::unwind
