#include <dwarf.h>

#include "cfi/cursor.h"
#include "cfi/frame_registers.h"
#include "unwind/rule_cache.h"

namespace mtrace::unwind {
namespace {

// An expression of the forms `breg`, `breg deref`: register + offset, or the word there.
struct Simple {
  unsigned reg;
  int64_t offset;
  bool deref;
};

bool read_simple(const modules::Object& object, uintptr_t place, Simple* simple) {
  const uintptr_t limit = object.bounds.end_of(place, 1);
  if (limit == 0) return false;
  cfi::Cursor head(place, limit);
  const uint64_t length = head.uleb();
  if (!head.ok() || length > head.left()) return false;
  cfi::Cursor in(head.position(), head.position() + length);
  const uint8_t op = in.u8();
  if (op < DW_OP_breg0 || op > DW_OP_breg31) return false;
  simple->reg = op - DW_OP_breg0;
  simple->offset = in.sleb();
  simple->deref = in.more() && in.u8() == DW_OP_deref;
  return in.ok() && !in.more();
}

uintptr_t place_of(const cfi::Row& row, int64_t distance) {
  return row.origin + static_cast<uintptr_t>(distance);
}

// The register is saved at reg + offset.
bool saved_at(const modules::Object& object, const cfi::Row& row, unsigned saved, unsigned reg,
              int64_t offset) {
  Simple simple;
  return row.rules[saved].how == cfi::SavedBy::kExpression &&
         read_simple(object, place_of(row, row.rules[saved].value), &simple) && !simple.deref &&
         simple.reg == reg && simple.offset == offset;
}

// glibc describes the frame that the kernel pushes with expressions on rsp; a frame described
// otherwise is left to the interpreter.
bool is_kernel_frame(const modules::Object& object, const cfi::Row& row) {
  Simple cfa;
  return row.cfa_by_expression && read_simple(object, place_of(row, row.cfa_offset), &cfa) &&
         cfa.deref && cfa.reg == cfi::kSp && cfa.offset == cfi::kSignalSp &&
         saved_at(object, row, cfi::kFp, cfi::kSp, cfi::kSignalFp) &&
         saved_at(object, row, cfi::kReturn, cfi::kSp, cfi::kSignalPc);
}

bool is_plain_offset(uint64_t offset) {
  return offset % 8 == 0 && offset != 0 && offset <= Rule::kMaxOffset;
}

Rule pack_realigned(const modules::Object& object, const cfi::Row& row) {
  Simple cfa;
  if (read_simple(object, place_of(row, row.cfa_offset), &cfa) && cfa.deref &&
      cfa.reg == cfi::kFp && cfa.offset < 0 &&
      is_plain_offset(static_cast<uint64_t>(-cfa.offset)) &&
      saved_at(object, row, cfi::kFp, cfi::kFp, 0)) {
    return Rule(RuleKind::kDrap, static_cast<uint64_t>(-cfa.offset));
  }
  return Rule(RuleKind::kSpecial);
}

}  // namespace

Rule pack_rule(const modules::Object& object, const cfi::Row& row) {
  const Rule special(RuleKind::kSpecial);
  const cfi::RegisterRule& ra = row.rules[cfi::kReturn];
  const cfi::RegisterRule& rbp = row.rules[cfi::kFp];
  const cfi::RegisterRule& rsp = row.rules[cfi::kSp];
  if (ra.how == cfi::SavedBy::kUndefined) return Rule(RuleKind::kBottom);
  if (row.signal_frame) {
    return is_kernel_frame(object, row) ? Rule(RuleKind::kSignal) : special;
  }
  const bool return_below_cfa = ra.how == cfi::SavedBy::kOffset && ra.value == -8;
  const bool rsp_is_cfa = rsp.how == cfi::SavedBy::kUnspecified ||
                          rsp.how == cfi::SavedBy::kSameValue ||
                          (rsp.how == cfi::SavedBy::kValOffset && rsp.value == 0);
  if (!return_below_cfa || !rsp_is_cfa) return special;
  if (row.cfa_by_expression) return pack_realigned(object, row);
  if (row.cfa_register != cfi::kSp && row.cfa_register != cfi::kFp) return special;
  if (row.cfa_offset < 0 || !is_plain_offset(static_cast<uint64_t>(row.cfa_offset))) return special;
  uint64_t slot = Rule::kSameRbp;
  if (rbp.how == cfi::SavedBy::kOffset) {
    if (rbp.value >= 0 || rbp.value % 8 != 0) return special;
    slot = static_cast<uint64_t>(-int64_t{rbp.value}) / 8;
    if (slot == Rule::kSameRbp || slot > Rule::kMaxSlot) return special;
  } else if (rbp.how != cfi::SavedBy::kUnspecified && rbp.how != cfi::SavedBy::kSameValue &&
             rbp.how != cfi::SavedBy::kUndefined) {
    return special;
  }
  return Rule(row.cfa_register == cfi::kSp ? RuleKind::kSp : RuleKind::kFp,
              static_cast<uint64_t>(row.cfa_offset), slot);
}

}  // namespace mtrace::unwind
