#include "unwind/rule_cache.h"

#include <algorithm>

#include "base/probe.h"
#include "base/table_memory.h"
#include "cfi/frame_registers.h"
#include "cfi/row.h"
#include "modules/c_library.h"
#include "modules/modules.h"
#include "modules/object.h"
#include "unwind/registered_frames.h"
#include "unwind/slow_walk.h"

namespace mtrace::unwind {
namespace internal {
uint64_t rule_table[size_t{1} << kCacheBits];
}
namespace {

// A bit for each 64 places of the table, set when a rule is put there: forget_rules() skips the
// other places, whose pages stay untouched.
constexpr unsigned kPartLog2 = 6;
constexpr uintptr_t kPart = uintptr_t{1} << kPartLog2;
constexpr uintptr_t kParts = uintptr_t{1} << (kCacheBits - kPartLog2);
BitSet<kParts> g_touched;

void forget_at(uintptr_t place, uintptr_t start, uintptr_t end) {
  const Rule rule(load(internal::rule_table[place]));
  if (rule.bits() == 0) return;
  const uintptr_t key = rule.key_at(place);  // the address plus one
  if (key > start && key <= end) store(internal::rule_table[place], uint64_t{0});
}

// Not cached: an object may be loaded there later, or the section deregistered.
Rule rule_without_object(uintptr_t pc, modules::Object* scratch) {
  cfi::Row row;
  if (find_registered_row(pc, scratch, &row)) return pack_rule(*scratch, row);
  return Rule(cfi::is_signal_return(pc + 1, base::read_memory) ? RuleKind::kSignal
                                                               : RuleKind::kLost);
}

}  // namespace

// Not inlined into the walk: the interpreter's states need 1.5 KiB of stack.
[[gnu::noinline]] Rule compile_rule(uintptr_t key) {
  const Rule lost(RuleKind::kLost);
  if (key == 0 || key > kKeyEnd - 1 || !Rule::is_key(key)) return lost;
  const uint32_t epoch = modules::unload_epoch();
  modules::Object scratch;
  const modules::Object* object = loaded_object(key - 1, &scratch);
  if (object == nullptr) return rule_without_object(key - 1, &scratch);
  cfi::Fde fde;
  cfi::Row row;
  Rule rule = lost;
  if (!cfi::find_fde(object->bounds, object->eh_frame_hdr, key - 1, &fde)) {
    if (cfi::is_signal_return(key, base::read_memory)) {
      rule = Rule(RuleKind::kSignal);
    } else if (modules::is_loader(*object) && !modules::is_in_bare_libc(key - 1)) {
      rule = Rule(RuleKind::kBottom);
    }
  } else if (cfi::find_row(object->bounds, fde, key - 1, &row)) {
    const bool by_code = row.signal_frame && cfi::is_signal_return(key, base::read_memory);
    rule = by_code ? Rule(RuleKind::kSignal) : pack_rule(*object, row);
    if (is_own(key - 1) || is_python_loop(*object, key - 1)) rule = rule.marked();
  }
  uint64_t& place = internal::rule_table[Rule::place_of(key)];
  uint64_t word = rule.tagged(key).bits();
  // An object may have been unloaded, and the cache emptied, since this rule was read from it.
  // (Registering an object ends an epoch, too, when it lies over one whose end was not seen.)
  // Either this thread sees the new epoch, or the one that empties the cache sees the rule: a plain
  // store might become visible only after both have looked.
  g_touched.set(Rule::place_of(key) / kPart);
  exchange(place, word);
  if (modules::unload_epoch() != epoch) compare_exchange(place, word, uint64_t{0});
  return rule;
}

void learn_rule(uintptr_t key, Rule rule) {
  g_touched.set(Rule::place_of(key) / kPart);
  store(internal::rule_table[Rule::place_of(key)], rule.tagged(key).bits());
}

void forget_rules(uintptr_t start, uintptr_t end) {
  // A thread that reads a rule from an object that still seems alive has an older epoch.
  add_fetch_ordered(modules::internal::unload_epoch, 1u);
  const uintptr_t first = start >> Rule::kPlaceShift;
  const uintptr_t last = end >> Rule::kPlaceShift;
  const uintptr_t parts = std::min((last - first) / kPart + 2, kParts);
  for (uintptr_t i = 0; i < parts; ++i) {
    const uintptr_t part = (first / kPart + i) % kParts;
    if (!g_touched.has(part)) continue;
    for (uintptr_t place = part * kPart; place < (part + 1) * kPart; ++place) {
      forget_at(place, start, end);
    }
  }
}

}  // namespace mtrace::unwind
