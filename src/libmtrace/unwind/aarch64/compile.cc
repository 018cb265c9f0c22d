#include "unwind/rule_cache.h"

namespace mtrace::unwind {
namespace {

bool is_unchanged(cfi::SavedBy how) {
  return how == cfi::SavedBy::kUnspecified || how == cfi::SavedBy::kSameValue;
}

// How many words below the CFA the register is saved; 0: it is not, or elsewhere.
uint64_t slot_of(const cfi::RegisterRule& rule) {
  const int64_t value = rule.value;
  if (rule.how != cfi::SavedBy::kOffset || value >= 0 || value % 8 != 0) return 0;
  return static_cast<uint64_t>(-value) / 8;
}

}  // namespace

Rule pack_rule(const modules::Object&, const cfi::Row& row) {
  const Rule special(RuleKind::kSpecial);
  const cfi::RegisterRule& sp = row.rules[cfi::kSp];
  const cfi::RegisterRule& fp = row.rules[cfi::kFp];
  if (row.rules[cfi::kReturn].how == cfi::SavedBy::kUndefined) return Rule(RuleKind::kBottom);
  const bool sp_is_cfa =
      is_unchanged(sp.how) || (sp.how == cfi::SavedBy::kValOffset && sp.value == 0);
  if (row.signal_frame || row.cfa_by_expression || !sp_is_cfa) return special;
  if (row.cfa_register != cfi::kSp && row.cfa_register != cfi::kFp) return special;
  const auto offset = static_cast<uint64_t>(row.cfa_offset);
  if (row.cfa_offset <= 0 || offset % 8 != 0 || offset > Rule::kMaxOffset) return special;
  // In its register, if a signal has interrupted the function before it has saved it.
  const uint64_t slot = slot_of(row.rules[cfi::kReturn]);
  if (slot == 0 || slot > Rule::kMaxSlot) return special;
  const bool saves_fp = fp.how == cfi::SavedBy::kOffset;
  if (saves_fp ? slot_of(fp) != slot + 1
               : !is_unchanged(fp.how) && fp.how != cfi::SavedBy::kUndefined) {
    return special;
  }
  const Rule rule(row.cfa_register == cfi::kSp ? RuleKind::kSp : RuleKind::kFp, offset, slot,
                  saves_fp);
  return rule.is_plain() ? rule : special;
}

}  // namespace mtrace::unwind
