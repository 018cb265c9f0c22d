
#include <atomic>

#include "base/probe.h"
#include "cfi/registers.h"
#include "modules/c_library.h"
#include "modules/object.h"
#include "unwind/code.h"
#include "unwind/rule_cache.h"
#include "unwind/slow_walk.h"

namespace mtrace::unwind {
namespace {

constexpr uintptr_t kMostFrame = uintptr_t{1} << 20;  // bytes
// Of code outside of loaded objects: as far as a direct call reaches.
constexpr uintptr_t kMostDistance = uintptr_t{1} << 31;
constexpr uintptr_t kKnownReturns = 2048;  // a power of two

// Return addresses found plausible, by their low bits, so that most guesses make no system call.
// Code that has gone since leaves wrong ones: a wrong guess may then pass for plausible.
std::atomic<uintptr_t> known_returns[kKnownReturns];

bool is_known(uintptr_t address) {
  return known_returns[address % kKnownReturns].load(std::memory_order_relaxed) == address;
}

void learn(uintptr_t address) {
  known_returns[address % kKnownReturns].store(address, std::memory_order_relaxed);
}

bool is_frame_above(uintptr_t fp, uintptr_t below) {
  return fp % sizeof fp == 0 && fp >= below && fp - below <= kMostFrame;
}

// Whether a call ends at the address, which is at least kLongestCall. Never faults.
bool follows_call(uintptr_t address) {
  if (is_known(address)) return true;
  unsigned char code[kLongestCall];
  // Code that called is resident. What is not may be memory that only this thread could supply.
  if (!base::read_resident(address - sizeof code, code, sizeof code) || !ends_with_call(code)) {
    return false;
  }
  learn(address);
  return true;
}

// Java's interpreter pushes addresses that no call precedes. Without a call, code of no loaded
// object counts if it is near the code that runs and if the next frame pointer is plausible.
bool is_made_return(StackMemory* memory, const Registers& from, const Registers& caller) {
  const uintptr_t distance = caller.pc > from.pc ? caller.pc - from.pc : from.pc - caller.pc;
  uintptr_t word;
  modules::Object object;
  return distance < kMostDistance && is_frame_above(caller.fp, caller.sp) &&
         memory->read_above(caller.sp, caller.fp, &word) && !memory->holds(caller.pc) &&
         !modules::locate_object(from.pc - 1, &object) && !locate_object(caller.pc - 1, &object) &&
         base::read_resident(caller.pc, &word, 1);
}

// The rest is for frames of musl.

constexpr uintptr_t kWord = sizeof(uintptr_t);
constexpr uintptr_t kMostStack = 16 * 1024;  // bytes, of frames of libc that are searched
constexpr uintptr_t kMostSteps = 2048;       // instructions that are looked at
constexpr uintptr_t kOutermost = 128;  // bytes, of libc's frames around main or a thread's function

// An address that hooks and walks of this library have left on the stack is no return address.
bool may_be_return(const StackMemory& memory, uintptr_t address) {
  if (address < kMostStack || address >= kKeyEnd || is_own(address)) return false;
  return !memory.holds(address) && follows_call(address);
}

// Whether the rule leads from `at` to another return address.
bool has_plausible_caller(StackMemory* memory, Rule rule, const Registers& at) {
  if (rule.is_marked()) rule = rule.without_mark();
  const bool by_fp = rule.kind() == RuleKind::kFp;
  if (!by_fp && rule.kind() != RuleKind::kSp) return true;
  if (by_fp && (at.fp % kWord != 0 || at.fp < at.sp || at.fp - at.sp > kMostFrame)) return false;
  const uintptr_t cfa = (by_fp ? at.fp : at.sp) + rule.offset();
  const auto* const slot = rule.return_slot(reinterpret_cast<const uintptr_t*>(cfa));
  uintptr_t next;
  if (!memory->read_above(at.sp, reinterpret_cast<uintptr_t>(slot), &next)) return false;
  next = cfi::code_address(next);
  return next == 0 || (next < kKeyEnd && follows_call(next));
}

enum class Code { kNone, kBare, kDescribed };

// What `word` returns to, if it is a return address.
Code returns_to(const StackMemory& memory, uintptr_t word) {
  if (!may_be_return(memory, word)) return Code::kNone;
  if (modules::is_in_bare_libc(word - 1)) return Code::kBare;
  return rule_for(word).kind() != RuleKind::kLost ? Code::kDescribed : Code::kNone;
}

// Above what calls main, or a thread's function, is one return address at most.
bool is_outermost(StackMemory* memory, uintptr_t sp) {
  unsigned calls = 0;
  for (uintptr_t at = sp; at - sp <= kOutermost && calls <= 1; at += kWord) {
    uintptr_t word;
    if (!memory->read_above(sp, at, &word)) return memory->is_own_end(at);
    calls += may_be_return(*memory, cfi::code_address(word)) ? 1 : 0;
  }
  return false;
}

bool leave_by(const Epilogue& epilogue, StackMemory* memory, const Registers& from,
              Registers* caller) {
  const uintptr_t base = epilogue.by_fp ? from.fp : from.sp;
  const uintptr_t slot = base + static_cast<uintptr_t>(int64_t{epilogue.pc});
  if (slot % kWord != 0 || !memory->read_above(from.sp, slot, &caller->pc)) return false;
  caller->pc = cfi::code_address(caller->pc);
  caller->sp = base + static_cast<uintptr_t>(int64_t{epilogue.sp});
  caller->fp = from.fp;
  if (epilogue.fp != Epilogue::kUnchanged &&
      !memory->read_above(from.sp, base + static_cast<uintptr_t>(int64_t{epilogue.fp}),
                          &caller->fp)) {
    return false;
  }
  const Code code = returns_to(*memory, caller->pc);
  return code == Code::kBare ||
         (code == Code::kDescribed && has_plausible_caller(memory, rule_for(caller->pc), *caller));
}

// `size`: of the frame; 0: not known.
bool leave_at(uintptr_t address, int32_t size, StackMemory* memory, const Registers& from,
              Registers* caller) {
  Epilogue epilogue;
  const uintptr_t end = modules::g_bare_libc.start + modules::g_bare_libc.size;
  return read_epilogue(reinterpret_cast<const unsigned char*>(address),
                       reinterpret_cast<const unsigned char*>(end), &epilogue) &&
         (size == 0 || epilogue.sp == size) && leave_by(epilogue, memory, from, caller);
}

// Where an end is looked for, step by step: behind the pc, then before it.
uintptr_t end_at(uintptr_t pc, uintptr_t step) {
  return step < kMostSteps ? pc + step * kInstruction : pc - (step - kMostSteps + 1) * kInstruction;
}

// The rule of a return address has the step at which the end lies by which the last walk left, plus
// 1, in units of 8 as any offset of a rule.
bool leave_by_known_end(StackMemory* memory, const Registers& from, Registers* caller) {
  const uint64_t known = rule_for(from.pc).offset() / 8;
  return known != 0 && leave_at(end_at(from.pc, known - 1), 0, memory, from, caller);
}

bool leave_by_code(StackMemory* memory, const Registers& from, Registers* caller) {
  const int32_t size =
      frame_size(reinterpret_cast<const unsigned char*>(from.pc),
                 reinterpret_cast<const unsigned char*>(modules::g_bare_libc.start));
  for (uintptr_t step = 0; step < 2 * kMostSteps; ++step) {
    const uintptr_t address = end_at(from.pc, step);
    if (!modules::is_in_bare_libc(address) || !leave_at(address, size, memory, from, caller))
      continue;
    learn_rule(from.pc, Rule(RuleKind::kLost, (step + 1) * 8));
    return true;
  }
  return false;
}

// The caller's frame pointer is still in its register, or libc has saved it in [low, high).
bool find_frame_pointer(StackMemory* memory, uintptr_t low, uintptr_t high, Registers* caller) {
  const Rule rule = rule_for(caller->pc);
  if (has_plausible_caller(memory, rule, *caller)) return true;
  for (uintptr_t at = high; at > low && rule.kind() == RuleKind::kFp; at -= kWord) {
    if (memory->read_above(low, at - kWord, &caller->fp) &&
        has_plausible_caller(memory, rule, *caller))
      return true;
  }
  return false;
}

bool search_stack(StackMemory* memory, const Registers& from, Registers* caller) {
  for (uintptr_t at = from.sp; at - from.sp < kMostStack; at += kWord) {
    uintptr_t word;
    if (!memory->read_above(from.sp, at, &word)) break;
    word = cfi::code_address(word);
    if (returns_to(*memory, word) != Code::kDescribed) continue;
    if (!kReturnIsBelowSp && rule_for(word).kind() == RuleKind::kSp) continue;
    *caller = {word, at + kWord, from.fp};
    if (find_frame_pointer(memory, from.sp, at, caller)) return true;
  }
  return false;
}

bool find_caller_of_bare(StackMemory* memory, const Registers& from, Registers* caller) {
  if (leave_by_known_end(memory, from, caller)) return true;
  if (is_outermost(memory, from.sp)) {
    learn_rule(from.pc, Rule(RuleKind::kBottom));
    *caller = {0, from.sp, from.fp};
    return true;
  }
  return leave_by_code(memory, from, caller) || search_stack(memory, from, caller);
}

}  // namespace

bool guess_caller(StackMemory* memory, const Registers& from, Registers* caller) {
  if (modules::is_in_bare_libc(from.pc - 1)) return find_caller_of_bare(memory, from, caller);
  const uintptr_t fp = from.fp;
  if (!is_frame_above(fp, from.sp) || !memory->read_above(from.sp, fp, &caller->fp) ||
      !memory->read_above(from.sp, fp + sizeof fp, &caller->pc)) {
    return false;
  }
  caller->pc = cfi::code_address(caller->pc);
  caller->sp = fp + 2 * sizeof fp;
  if (caller->pc < kLongestCall || caller->pc >= kKeyEnd) return false;
  if (follows_call(caller->pc)) return true;
  if (!is_made_return(memory, from, *caller)) return false;
  learn(caller->pc);
  return true;
}

}  // namespace mtrace::unwind
