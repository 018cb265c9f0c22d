// The rules of all threads: a direct-mapped table of single words. A reader sees a whole rule for
// exactly its key, or another key's, or nothing; a lost store costs one more compilation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "cfi/row.h"
#include "modules/object.h"
#include "unwind/rule.h"

namespace mtrace::unwind {

namespace internal {
[[gnu::visibility("hidden")]] extern uint64_t rule_table[size_t{1} << kCacheBits];
}

// The place's rule, to be checked with holds_for(key).
inline Rule cached_rule(uintptr_t key) {
  static_assert(kCacheBits == 16);
  return Rule(load(internal::rule_table[Rule::place_of(key)]));
}

// Packs a row of call-frame information; kSpecial when it has no packed form. Reads only inside the
// object's bounds. Defined for each processor (unwind/*/compile.cc).
Rule pack_rule(const modules::Object& object, const cfi::Row& row);

// Compiles the rule for `key`, and caches it if a loaded object holds the code. kLost: no usable
// information. Async-signal-safe, thread-safe; about 1.5 KiB of stack.
Rule compile_rule(uintptr_t key);

inline Rule rule_for(uintptr_t key) {
  const Rule rule = cached_rule(key);
  if (rule.holds_for(key)) [[likely]]
    return rule;
  return compile_rule(key);
}

// Caches a rule for frames of which no call-frame information is known: kBottom, or kLost with what
// the next walk may use.
void learn_rule(uintptr_t key, Rule rule);

// Whether the address is in the evaluation loop of an interpreter whose frames are read: its frames
// get marked rules. Defined in python/runtime.cc.
bool is_python_loop(const modules::Object& object, uintptr_t address);

}  // namespace mtrace::unwind
