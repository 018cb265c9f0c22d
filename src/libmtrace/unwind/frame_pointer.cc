#include "unwind/frame_pointer.h"

#include <atomic>

#include "base/probe.h"
#include "modules/executable.h"
#include "modules/object.h"
#include "unwind/rule_cache.h"

namespace mtrace::unwind {
namespace {

constexpr uintptr_t kMostFrame = uintptr_t{1} << 20;  // bytes
constexpr uintptr_t kLongestCall = 7;                 // bytes
constexpr uintptr_t kKnownCalls = 256;                // a power of two

// Return addresses in objects that follow a call, by their low bits. After dlclose one may be
// wrong: then a wrong guess passes for plausible.
std::atomic<uintptr_t> known_calls[kKnownCalls];

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

// AMD64 Architecture Programmer's Manual, volume 3, CALL (Near): E8 with a displacement of four
// bytes, or FF /2 with ModRM, perhaps SIB, and a displacement of none, one or four bytes.
bool ends_with_call(const unsigned char* code) {
  const unsigned char* const end = code + kLongestCall;
  if (end[-5] == 0xe8) return true;
  for (unsigned length = 2; length <= kLongestCall; ++length) {
    const unsigned char* const at = end - length;
    if (at[0] != 0xff || (at[1] >> 3 & 7) != 2) continue;
    const unsigned mod = at[1] >> 6;
    const unsigned rm = at[1] & 7;
    if (mod == 3) {
      if (length == 2) return true;
      continue;
    }
    const bool has_sib = rm == 4;
    if (has_sib && length < 3) continue;
    const bool no_base = mod == 0 && (has_sib ? (at[2] & 7) == 5 : rm == 5);
    const unsigned displacement = mod == 1 ? 1 : mod == 2 || no_base ? 4 : 0;
    if (length == 2u + (has_sib ? 1 : 0) + displacement) return true;
  }
  return false;
}

bool guess_caller(StackMemory* memory, const Registers& from, Registers* caller) {
  const uintptr_t fp = from.fp;
  if (fp % sizeof fp != 0 || fp < from.sp || fp - from.sp > kMostFrame) return false;
  if (!memory->read_above(from.sp, fp, &caller->fp) ||
      !memory->read_above(from.sp, fp + sizeof fp, &caller->pc)) {
    return false;
  }
  caller->sp = fp + 2 * sizeof fp;
  note_executable(from.pc - 1);
  return is_plausible_return(caller->pc);
}

}  // namespace mtrace::unwind
