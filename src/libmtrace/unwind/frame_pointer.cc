#include "unwind/frame_pointer.h"

#include <atomic>

#include "base/probe.h"
#include "cfi/registers.h"
#include "modules/c_library.h"
#include "modules/executable.h"
#include "modules/object.h"
#include "unwind/bare_frame.h"
#include "unwind/call_instruction.h"
#include "unwind/rule_cache.h"

namespace mtrace::unwind {
namespace {

constexpr uintptr_t kMostFrame = uintptr_t{1} << 20;  // bytes
constexpr uintptr_t kKnownCalls = 256;                // a power of two

// Return addresses in objects that follow a call, by their low bits. After dlclose one may be
// wrong: then a wrong guess passes for plausible.
std::atomic<uintptr_t> known_calls[kKnownCalls];

bool is_plausible_return(uintptr_t address) {
  if (address < kLongestCall || address >= kKeyEnd) return false;
  Object object;
  if (!locate_object(address - 1, &object)) return is_executable(address - 1);
  if (!follows_call(address)) return false;
  // Code with call-frame information is executable. For other code the maps are always read: data
  // that looks like a call is too rare to ration that.
  return rule_for(address).kind() != RuleKind::kLost || is_executable(address - 1, true);
}

}  // namespace

bool follows_call(uintptr_t address) {
  std::atomic<uintptr_t>& place = known_calls[address % kKnownCalls];
  if (place.load(std::memory_order_relaxed) == address) return true;
  unsigned char code[kLongestCall];
  if (!sys::read_memory(address - sizeof code, code, sizeof code) || !ends_with_call(code)) {
    return false;
  }
  place.store(address, std::memory_order_relaxed);
  return true;
}

bool guess_caller(StackMemory* memory, const Registers& from, Registers* caller) {
  if (is_in_bare_libc(from.pc - 1)) return find_caller_of_bare(memory, from, caller);
  const uintptr_t fp = from.fp;
  if (fp % sizeof fp != 0 || fp < from.sp || fp - from.sp > kMostFrame) return false;
  if (!memory->read_above(from.sp, fp, &caller->fp) ||
      !memory->read_above(from.sp, fp + sizeof fp, &caller->pc)) {
    return false;
  }
  caller->pc = code_address(caller->pc);
  caller->sp = fp + 2 * sizeof fp;
  note_executable(from.pc - 1);
  return is_plausible_return(caller->pc);
}

}  // namespace mtrace::unwind
