// The parser of call-frame information on tables made by hand, whole and damaged. The tables end
// at a page that cannot be touched, so reading past them ends the test.

#include <gtest/gtest.h>
#include <string.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "cfi/frame_registers.h"
#include "cfi/row.h"
#include "modules/object.h"
#include "pages.h"
#include "unwind/rule_cache.h"
#include "unwind/stack_memory.h"

namespace mtrace::unwind {
namespace {

constexpr size_t kFunction = 0x40;  // bytes of code for each entry
constexpr uint8_t kAbsolute = 0x00;
constexpr uint8_t kRelative = 0x1b;  // pcrel | sdata4
constexpr unsigned kWords = 0x3b;    // of tables: datarel | sdata4
constexpr unsigned kLongs = 0x3c;    // datarel | sdata8
constexpr unsigned kNoTable = 0xff;

class Bytes {
 public:
  Bytes() = default;
  Bytes(std::initializer_list<unsigned> values) { add(values); }
  template <typename T>
  Bytes& fixed(T value) {
    data.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Bytes& add(std::initializer_list<unsigned> values) {
    for (const unsigned value : values) data.push_back(static_cast<char>(value));
    return *this;
  }
  Bytes& text(const char* value) {
    data.append(value, strlen(value) + 1);
    return *this;
  }
  // As an entry of .eh_frame: with its length before it, filled up with DW_CFA_nop.
  std::string entry() const {
    std::string body = data;
    while (body.size() % 8 != 4) body.push_back(0);
    return Bytes().fixed(static_cast<uint32_t>(body.size())).data + body;
  }

  std::string data;
};

Bytes cie_head(const char* augmentation) {
  // Code alignment 1, data alignment -8, return address in column 16.
  return Bytes().fixed(uint32_t{0}).add({1}).text(augmentation).add({1, 0x78, 16});
}
constexpr auto kCieProgram = {0x0cu, 7u, 8u, 0x90u, 1u};  // CFA = rsp + 8, ra at CFA - 8

// .eh_frame_hdr and .eh_frame for one function of kFunction bytes a program, ending at the end of
// readable memory. The code they speak of is not there: nothing looks at it.
class Section {
 public:
  Section(const Bytes& cie, uint8_t encoding, bool augmented, const std::vector<Bytes>& programs,
          unsigned table = kWords) {
    // Twice: sizes are known after the first time, and with them the addresses.
    for (int i = 0; i < 2; ++i) size_ = build(cie, encoding, augmented, programs, table);
    object.eh_frame_hdr = start();
    object.start = start();
    object.end = start() + size_;
    object.bounds.add(start(), start() + size_);
  }

  uintptr_t code(size_t function) const { return start() - 0x10000 + function * kFunction; }
  char* bytes() const { return reinterpret_cast<char*>(start()); }
  size_t size() const { return size_; }

  modules::Object object;

 private:
  uintptr_t start() const { return reinterpret_cast<uintptr_t>(memory_.end()) - size_; }

  size_t build(const Bytes& cie, uint8_t encoding, bool augmented,
               const std::vector<Bytes>& programs, unsigned table) {
    const size_t entry = table == kWords ? 8 : table == kLongs ? 16 : 0;
    const size_t header = 12 + entry * programs.size();
    const unsigned count_encoding = entry != 0 ? 0x03 : 0xff;
    Bytes head{1, kRelative, count_encoding, table};
    head.fixed(static_cast<int32_t>(header - 4)).fixed(static_cast<uint32_t>(programs.size()));
    std::string frames = cie.entry();
    for (size_t i = 0; i < programs.size(); ++i) {
      const size_t place = frames.size();
      if (table == kWords) {
        head.fixed(static_cast<int32_t>(code(i) - start()));
        head.fixed(static_cast<int32_t>(header + place));
      } else if (table == kLongs) {
        head.fixed(static_cast<int64_t>(code(i) - start()));
        head.fixed(static_cast<int64_t>(header + place));
      }
      Bytes fde;
      fde.fixed(static_cast<uint32_t>(place + 4));
      if (encoding == kRelative) {
        fde.fixed(static_cast<int32_t>(code(i) - (start() + header + place + 8)));
        fde.fixed(static_cast<uint32_t>(kFunction));
      } else {
        fde.fixed(code(i)).fixed(uint64_t{kFunction});
      }
      if (augmented) fde.add({0});
      fde.data += programs[i].data;
      frames += fde.entry();
    }
    const std::string whole = head.data + frames + std::string(4, '\0');
    memcpy(memory_.end() - whole.size(), whole.data(), whole.size());
    return whole.size();
  }

  const Guarded memory_{2 * kPage};
  size_t size_ = 0;
};

bool row_at(const modules::Object& object, uintptr_t pc, cfi::Row* row) {
  cfi::Fde fde;
  return cfi::find_fde(object.bounds, object.eh_frame_hdr, pc, &fde) &&
         cfi::find_row(object.bounds, fde, pc, row);
}

Rule rule_at(const modules::Object& object, uintptr_t pc) {
  cfi::Row row;
  return row_at(object, pc, &row) ? pack_rule(object, row) : Rule(RuleKind::kLost);
}

void expect_rule(const Rule& rule, RuleKind kind, uint64_t offset, uint64_t slot) {
  EXPECT_EQ(rule.kind(), kind);
  EXPECT_EQ(rule.offset(), offset);
  EXPECT_EQ(rule.reach(), slot);
}

// push rbp; mov rbp, rsp; ...; pop rbp
const Bytes kFramePointer{0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x70, 0xc6, 0x0c, 7, 8};
// sub rsp, 1000; remembered and restored around an early return
const Bytes kLarge{0x47, 0x0e, 0xf0, 7, 0x48, 0x0a, 0x0e, 8, 0x41, 0x0b};
// CFA = *(rbp - 8), rbp at *rbp
const Bytes kRealigned{0x50, 0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0};
// ra undefined
const Bytes kOutermost{0x07, 16};
// CFA = rbx + 16
const Bytes kByRbx{0x44, 0x0c, 3, 16};
const std::vector<Bytes> kPrograms = {kFramePointer, kLarge, kRealigned, kOutermost, kByRbx};

void expect_programs(const Section& section) {
  const modules::Object& object = section.object;
  const uint64_t same = Rule::kSameRbp;
  expect_rule(rule_at(object, section.code(0)), RuleKind::kSp, 8, same);
  expect_rule(rule_at(object, section.code(0) + 1), RuleKind::kSp, 16, 2);
  expect_rule(rule_at(object, section.code(0) + 3), RuleKind::kSp, 16, 2);
  expect_rule(rule_at(object, section.code(0) + 4), RuleKind::kFp, 16, 2);
  expect_rule(rule_at(object, section.code(0) + 0x33), RuleKind::kFp, 16, 2);
  expect_rule(rule_at(object, section.code(0) + 0x34), RuleKind::kSp, 8, same);
  expect_rule(rule_at(object, section.code(1) + 6), RuleKind::kSp, 8, same);
  expect_rule(rule_at(object, section.code(1) + 7), RuleKind::kSp, 1008, same);
  expect_rule(rule_at(object, section.code(1) + 15), RuleKind::kSp, 8, same);
  expect_rule(rule_at(object, section.code(1) + 16), RuleKind::kSp, 1008, same);
  expect_rule(rule_at(object, section.code(2) + 16), RuleKind::kDrap, 8, same);
  EXPECT_EQ(rule_at(object, section.code(3)).kind(), RuleKind::kBottom);
  EXPECT_EQ(rule_at(object, section.code(4) + 4).kind(), RuleKind::kSpecial);
  EXPECT_EQ(rule_at(object, section.code(0) - 1).kind(), RuleKind::kLost);
  EXPECT_EQ(rule_at(object, section.code(5) - 1).kind(), RuleKind::kSpecial);
  EXPECT_EQ(rule_at(object, section.code(5)).kind(), RuleKind::kLost);
}

Bytes augmented_cie(const char* augmentation, std::initializer_list<unsigned> data) {
  return cie_head(augmentation)
      .add({static_cast<unsigned>(data.size())})
      .add(data)
      .add(kCieProgram);
}

TEST(EhFrame, FindsRules) {
  const Bytes plain = augmented_cie("zR", {kRelative});
  for (const unsigned table : {kWords, kLongs, kNoTable}) {
    SCOPED_TRACE(table);
    expect_programs(Section(plain, kRelative, true, kPrograms, table));
  }
}

TEST(EhFrame, ReadsOtherCies) {
  // Absolute pointers and no augmentation.
  expect_programs(Section(cie_head("").add(kCieProgram), kAbsolute, false, kPrograms));
  // P: encoding absptr and eight bytes; L: one; an unknown letter at the end.
  expect_programs(Section(augmented_cie("zPLRX", {0, 1, 2, 3, 4, 5, 6, 7, 8, 0x1b, kRelative, 99}),
                          kRelative, true, kPrograms));
}

TEST(EhFrame, TellsSignalFrames) {
  const Section section(augmented_cie("zRS", {kRelative}), kRelative, true, kPrograms);
  cfi::Row row;
  ASSERT_TRUE(row_at(section.object, section.code(0), &row));
  EXPECT_TRUE(row.signal_frame);
  // A frame of that kind that is not the kernel's is not for a packed rule.
  EXPECT_EQ(rule_at(section.object, section.code(0)).kind(), RuleKind::kSpecial);
}

TEST(EhFrame, RefusesWhatARowCannotHold) {
  const std::vector<Bytes> bad = {
      {0x0b},                                                  // restore without remember
      {0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a},              // remembered too deep
      {0x3f},                                                  // unknown instruction
      {0x0c, 77, 8},                                           // CFA by an unknown register
      {0x0f, 0x7f, 0x76},                                      // expression beyond the entry
      {0x0f, 3, 0x76, 0x78, 0x06, 0x0e, 8},                    // offset for an expression
      {0x05, 6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},  // offset too far
  };
  const Section section(augmented_cie("zR", {kRelative}), kRelative, true, bad);
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(rule_at(section.object, section.code(i)).kind(), RuleKind::kLost) << i;
  }
}

TEST(EhFrame, LargeOffsetsGoToTheInterpreter) {
  const std::vector<Bytes> large = {
      {0x0e, 0x80, 0x80, 0x80, 8},  // CFA = rsp + 16 MiB: does not fit
      {0x0e, 0xf8, 0xff, 0xff, 7},  // 16 MiB - 8: fits
      {0x0e, 12},                   // not whole words
      {0x86, 33},                   // rbp at CFA - 264: does not fit
      {0x86, 32},                   // CFA - 256: fits
      {0x86, 1},                    // where the return address is
  };
  const Section section(augmented_cie("zR", {kRelative}), kRelative, true, large);
  const RuleKind kinds[] = {RuleKind::kSpecial, RuleKind::kSp, RuleKind::kSpecial,
                            RuleKind::kSpecial, RuleKind::kSp, RuleKind::kSpecial};
  for (size_t i = 0; i < large.size(); ++i) {
    EXPECT_EQ(rule_at(section.object, section.code(i)).kind(), kinds[i]) << i;
  }
}

// Everything the walker does with an object's information, for each function and some offsets.
unsigned use_everything(const Section& section) {
  unsigned rows = 0;
  const uintptr_t stack[64] = {};
  StackMemory memory(
      {reinterpret_cast<uintptr_t>(stack), reinterpret_cast<uintptr_t>(stack) + sizeof stack},
      reinterpret_cast<uintptr_t>(stack));
  for (uintptr_t pc = section.code(0); pc < section.code(kPrograms.size()); pc += 4) {
    cfi::Row row;
    if (!row_at(section.object, pc, &row)) continue;
    ++rows;
    pack_rule(section.object, row);
    cfi::FrameRegisters machine = {};
    for (unsigned reg = 0; reg < cfi::kRegisters; ++reg) {
      machine.set(reg, reinterpret_cast<uintptr_t>(stack) + 128);
    }
    step_by_row(section.object.bounds, row, &machine, &memory);
  }
  return rows;
}

TEST(EhFrame, SurvivesTruncation) {
  for (const unsigned table : {kWords, kLongs, kNoTable}) {
    Section section(augmented_cie("zR", {kRelative}), kRelative, true, kPrograms, table);
    const unsigned whole = use_everything(section);
    ASSERT_GT(whole, 60u);
    const uintptr_t start = section.object.start;
    for (size_t size = 0; size < section.size(); ++size) {
      section.object.bounds = cfi::Bounds();
      section.object.bounds.add(start, start + size);
      EXPECT_LE(use_everything(section), whole);
    }
  }
}

TEST(EhFrame, SurvivesDamage) {
  for (const unsigned table : {kWords, kLongs, kNoTable}) {
    Section section(augmented_cie("zR", {kRelative}), kRelative, true, kPrograms, table);
    const unsigned whole = use_everything(section);
    unsigned changed = 0;
    for (size_t at = 0; at < section.size(); ++at) {
      const char original = section.bytes()[at];
      for (int value = 0; value < 256; value += 5) {
        section.bytes()[at] = static_cast<char>(value);
        changed += use_everything(section) != whole;
      }
      section.bytes()[at] = original;
    }
    EXPECT_GT(changed, 0u);
    EXPECT_EQ(use_everything(section), whole);
  }
}

}  // namespace
}  // namespace mtrace::unwind
