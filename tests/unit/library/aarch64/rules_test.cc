// What is aarch64's own in the walker: packed rules, calls, signed return addresses, and the
// kernel's signal frame. make check-aarch64 runs it under an emulator.
#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/machine.h"
#include "cfi/registers.h"
#include "ledger/block_hash.h"
#include "ledger/heap_shadow.h"
#include "ledger/stack_table.h"
#include "taken_walk.h"
#include "unwind/code.h"
#include "unwind/rule.h"
#include "unwind/rule_cache.h"
#include "unwind/stack_memory.h"

namespace mtrace::unwind {
namespace {

constexpr uintptr_t kLast = kKeyEnd - 4;  // instruction

TEST(Rules, HoldForTheirKeyAlone) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const uintptr_t key = (random() & kLast) | (i % 2 != 0 ? 1 : 0);
    const Rule rule = Rule(RuleKind::kSp, 96, 1 + i % 11, i % 3 == 0).tagged(key);
    ASSERT_TRUE(rule.holds_for(key));
    ASSERT_EQ(rule.key_at(Rule::place_of(key)), key);
    ASSERT_EQ(rule.is_plain_for(key), key % 2 == 0);
    // A key in the same place that differs in any bit, and one that is no instruction's.
    for (unsigned bit = 18; bit < machine::kUserBits; ++bit) {
      ASSERT_FALSE(rule.holds_for(key ^ uintptr_t{1} << bit));
      ASSERT_FALSE(rule.is_plain_for((key & kLast) ^ uintptr_t{1} << bit));
    }
    for (const uintptr_t low : {1, 2, 3}) {
      ASSERT_FALSE(rule.holds_for(key ^ low));
      ASSERT_FALSE(rule.is_plain_for((key & kLast) ^ low));
    }
  }
}

cfi::Row row_of(unsigned base, int64_t cfa, int return_at, int fp_at) {
  cfi::Row row = {};
  row.cfa_register = static_cast<uint8_t>(base);
  row.cfa_offset = cfa;
  const auto save = [&row](unsigned reg, int at) {
    row.rules[reg].how = at == 0 ? cfi::SavedBy::kUnspecified : cfi::SavedBy::kOffset;
    row.rules[reg].value = at;
  };
  save(cfi::kReturn, return_at);
  save(cfi::kFp, fp_at);
  return row;
}

TEST(Rules, SayWhereTheFrameHasWhat) {
  uintptr_t words[100];
  const uintptr_t* const above = words + 100;
  const auto sp = reinterpret_cast<uintptr_t>(words + 50);
  for (const unsigned base : {cfi::kSp, cfi::kFp}) {
    // gcc: the record at the bottom. clang: at the top. x30 alone.
    for (const auto& [return_at, fp_at] : {std::pair{-392, -400}, {-8, -16}, {-16, 0}}) {
      const Rule rule = pack_rule({}, row_of(base, 400, return_at, fp_at));
      ASSERT_TRUE(rule.is_plain());
      EXPECT_EQ(rule.from_fp(), base == cfi::kFp);
      EXPECT_EQ(rule.cfa(base == cfi::kFp ? sp : 0, base == cfi::kSp ? sp : 0),
                reinterpret_cast<uintptr_t>(above));
      EXPECT_EQ(rule.return_slot(above), above + return_at / 8);
      EXPECT_EQ(rule.saves_fp(), fp_at != 0);
      EXPECT_EQ(rule.fp_slot(above), above + (fp_at != 0 ? fp_at : return_at) / 8);
    }
  }
}

TEST(Rules, LeaveTheRestToTheInterpreter) {
  const auto kind = [](const cfi::Row& row) { return pack_rule({}, row).kind(); };
  EXPECT_EQ(kind(row_of(cfi::kSp, 16, 0, 0)), RuleKind::kSpecial);        // x30 still has it
  EXPECT_EQ(kind(row_of(cfi::kSp, 16, -8, -32)), RuleKind::kSpecial);     // below sp, and apart
  EXPECT_EQ(kind(row_of(cfi::kSp, 16, -24, 0)), RuleKind::kSpecial);      // below sp
  EXPECT_EQ(kind(row_of(cfi::kSp, 48, -8, -32)), RuleKind::kSpecial);     // x29 is elsewhere
  EXPECT_EQ(kind(row_of(cfi::kSp, 1 << 20, -8, 0)), RuleKind::kSpecial);  // too large
  EXPECT_EQ(kind(row_of(19, 16, -8, -16)), RuleKind::kSpecial);
  cfi::Row outermost = row_of(cfi::kSp, 16, 0, 0);
  outermost.rules[cfi::kReturn].how = cfi::SavedBy::kUndefined;
  EXPECT_EQ(kind(outermost), RuleKind::kBottom);
}

// As GNU as assembles them.
TEST(Rules, KnowCalls) {
  const auto is_call = [](uint32_t word) {
    unsigned char code[4];
    memcpy(code, &word, sizeof word);
    return ends_with_call(code);
  };
  EXPECT_TRUE(is_call(0x94000001));   // bl
  EXPECT_TRUE(is_call(0x97ffffff));   // bl, backwards
  EXPECT_TRUE(is_call(0xd63f0100));   // blr x8
  EXPECT_TRUE(is_call(0xd63f081f));   // blraaz x0
  EXPECT_TRUE(is_call(0xd73f0901));   // blraa x8, x1
  EXPECT_FALSE(is_call(0x14000001));  // b
  EXPECT_FALSE(is_call(0xd61f0100));  // br x8
  EXPECT_FALSE(is_call(0xd65f03c0));  // ret
  EXPECT_FALSE(is_call(0xd503201f));  // nop
}

TEST(Rules, TakeSignaturesOff) {
  EXPECT_EQ(cfi::code_address(0x007f'5502'8637'43c0u), 0x5502'8637'43c0u);
  EXPECT_EQ(cfi::code_address(0x0000'ffff'8637'43c0u), 0xffff'8637'43c0u);
}

// A leaf that has not saved x30 is interrupted; what the handler sees reaches to its caller.
TakenWalk g_taken;
void take_in_handler(int, siginfo_t*, void* context) {
  g_taken = take_walk(MTRACE_CALLER_REGISTERS());
  static_cast<ucontext_t*>(context)->uc_mcontext.pc += 4;
}
[[gnu::noinline]] void trap() { asm volatile(".globl rules_trap\nrules_trap: brk #0"); }
extern "C" const char rules_trap[];

TEST(Rules, FollowALeafThatWasInterrupted) {
  struct sigaction action = {};
  struct sigaction old;
  action.sa_sigaction = take_in_handler;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(sigaction(SIGTRAP, &action, &old), 0);
  trap();
  sigaction(SIGTRAP, &old, nullptr);
  EXPECT_EQ(g_taken.walk.end, End::kBottom);
  ASSERT_GT(g_taken.frames.size(), 4u);
  EXPECT_EQ(g_taken.frames[1], reinterpret_cast<uintptr_t>(rules_trap));
}

// mmap(2) gives addresses from the top down, and programs are loaded at two thirds.
TEST(Rules, TheTablesHaveRoomForTheUpperHalf) {
  for (const uintptr_t address : {0xffff'f7e0'0010u, 0xaaaa'aaaa'b2c0u, 0xffff'ffff'fff0u}) {
    auto shadow = std::make_unique<ledger::HeapShadow>();
    shadow->use(ledger::HeapShadow::Granules::kOwn);
    EXPECT_NE(shadow->make(address), nullptr);
    auto hash = std::make_unique<ledger::BlockHash>();
    hash->init();
    ledger::Block block;
    ASSERT_TRUE(hash->put(address, {1000, 7, 0}));
    ASSERT_TRUE(hash->take(address, &block));
    EXPECT_EQ(block.size, 1000u);
    EXPECT_EQ(block.stack, 7u);
    std::vector<char> room(ledger::record_bytes(2));
    auto* record = reinterpret_cast<ledger::StackRecord*>(room.data());
    ledger::set_frame(record->frames, 0, address);
    const uintptr_t of_python = format::PythonFrame::pack(format::kMostPythonCode, 77);
    ledger::set_frame(record->frames, 1, of_python);
    EXPECT_EQ(ledger::frame_in(record->frames, 0), address);
    EXPECT_EQ(ledger::frame_in(record->frames, 1), of_python);
  }
}

}  // namespace
}  // namespace mtrace::unwind
