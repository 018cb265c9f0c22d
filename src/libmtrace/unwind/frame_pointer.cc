#include "unwind/frame_pointer.h"

#include <atomic>

#include "base/probe.h"
#include "cfi/registers.h"
#include "modules/c_library.h"
#include "modules/object.h"
#include "unwind/bare_frame.h"
#include "unwind/call_instruction.h"
#include "unwind/rule_cache.h"

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

// Java's interpreter pushes addresses that no call precedes. Without a call, code of no loaded
// object counts if it is near the code that runs and if the frame pointer leads on.
bool is_made_return(StackMemory* memory, const Registers& from, const Registers& caller) {
  const uintptr_t distance = caller.pc > from.pc ? caller.pc - from.pc : from.pc - caller.pc;
  uintptr_t word;
  Object object;
  return distance < kMostDistance && is_frame_above(caller.fp, caller.sp) &&
         memory->read_above(caller.sp, caller.fp, &word) && !memory->holds(caller.pc) &&
         !locate_object(from.pc - 1, &object) && !locate_object(caller.pc - 1, &object) &&
         sys::read_resident(caller.pc, &word, 1);
}

}  // namespace

bool follows_call(uintptr_t address) {
  if (is_known(address)) return true;
  unsigned char code[kLongestCall];
  // Code that called is resident. What is not may be memory that only this thread could supply.
  if (!sys::read_resident(address - sizeof code, code, sizeof code) || !ends_with_call(code)) {
    return false;
  }
  learn(address);
  return true;
}

bool guess_caller(StackMemory* memory, const Registers& from, Registers* caller) {
  if (is_in_bare_libc(from.pc - 1)) return find_caller_of_bare(memory, from, caller);
  const uintptr_t fp = from.fp;
  if (!is_frame_above(fp, from.sp) || !memory->read_above(from.sp, fp, &caller->fp) ||
      !memory->read_above(from.sp, fp + sizeof fp, &caller->pc)) {
    return false;
  }
  caller->pc = code_address(caller->pc);
  caller->sp = fp + 2 * sizeof fp;
  if (caller->pc < kLongestCall || caller->pc >= kKeyEnd) return false;
  if (follows_call(caller->pc)) return true;
  if (!is_made_return(memory, from, *caller)) return false;
  learn(caller->pc);
  return true;
}

}  // namespace mtrace::unwind
