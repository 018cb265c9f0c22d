#include "cfi/row.h"

#include <string.h>

#include "cfi/cursor.h"

namespace mtrace::cfi {
namespace {

constexpr unsigned kMaxRemembered = 4;  // compilers nest one, hand-written assembly up to three
constexpr int64_t kMaxValue = (1 << 28) - 1;  // of a RegisterRule

class Interpreter {
 public:
  Interpreter(const Bounds& bounds, const Fde& fde, uintptr_t pc, Row* row)
      : bounds_(bounds), fde_(fde), pc_(pc), row_(row), location_(fde.pc_begin) {
    memset(row, 0, sizeof *row);  // no copy on a stack that may be small
    row->cfa_register = kSp;
    row->origin = fde.own.begin;
    row->signal_frame = fde.signal_frame;
  }

  bool run() {
    if (!run(fde_.initial)) return false;
    memcpy(initial_, row_->rules, sizeof initial_);
    is_initial_ = false;
    location_ = fde_.pc_begin;
    return run(fde_.own);
  }

 private:
  bool run(const Program& program);
  bool execute(uint8_t byte, Cursor* in);
  bool advance(uint64_t delta) {
    location_ += delta * fde_.code_align;
    return true;
  }
  // The rule of a register; registers that are not followed (vector registers) share an unused one.
  RegisterRule* rule(uint64_t reg) { return reg < kRegisters ? &row_->rules[reg] : &ignored_; }

  bool set(uint64_t reg, SavedBy how, int64_t value = 0) {
    if (value > kMaxValue || value < -kMaxValue) return false;
    RegisterRule& changed = *rule(reg);
    changed.how = how;
    changed.value = static_cast<int32_t>(value);
    return true;
  }
  bool set_factored(uint64_t reg, SavedBy how, int64_t value) {
    return !__builtin_mul_overflow(value, fde_.data_align, &value) && set(reg, how, value);
  }
  // These read their operand behind the register's number.
  bool set_unsigned(uint64_t reg, SavedBy how, Cursor* in) {
    return set_factored(reg, how, static_cast<int64_t>(in->uleb()));
  }
  bool set_signed(uint64_t reg, SavedBy how, Cursor* in) {
    return set_factored(reg, how, in->sleb());
  }
  bool set_expression(uint64_t reg, SavedBy how, Cursor* in) {
    return set(reg, how, skip_expression(in));
  }
  int64_t skip_expression(Cursor* in) {
    const auto distance = static_cast<int64_t>(in->position() - row_->origin);
    in->skip(in->uleb());
    return distance;
  }
  int64_t factored_offset(Cursor* in) {
    return static_cast<int64_t>(static_cast<uint64_t>(in->sleb()) *
                                static_cast<uint64_t>(fde_.data_align));
  }
  bool restore(uint64_t reg) {
    if (reg < kRegisters) row_->rules[reg] = initial_[reg];
    return !is_initial_;
  }
  bool set_cfa(uint64_t reg, int64_t offset) {
    if (reg >= kCfaRegisters) return false;
    row_->cfa_by_expression = false;
    row_->cfa_register = static_cast<uint8_t>(reg);
    row_->cfa_offset = offset;
    return true;
  }
  bool set_cfa_offset(int64_t offset) {
    row_->cfa_offset = offset;
    return !row_->cfa_by_expression;
  }
  bool remember() {
    if (remembered_ == kMaxRemembered) return false;
    states_[remembered_++] = *row_;
    return true;
  }
  bool recall() {
    if (remembered_ == 0) return false;
    static_cast<RowState&>(*row_) = states_[--remembered_];
    return true;
  }

  const Bounds& bounds_;
  const Fde& fde_;
  const uintptr_t pc_;
  Row* const row_;
  uintptr_t location_;
  RegisterRule ignored_ = {};
  bool is_initial_ = true;  // the instructions are the CIE's
  RegisterRule initial_[kRegisters] = {};
  unsigned remembered_ = 0;
  RowState states_[kMaxRemembered];
};

// True also when an instruction beyond pc ended it. Terminates: each turn consumes a byte.
bool Interpreter::run(const Program& program) {
  Cursor in(program.begin, program.end);
  while (in.more()) {
    if (!execute(in.u8(), &in) || !in.ok()) return false;
    if (location_ > pc_) return true;
  }
  return in.ok();
}

bool Interpreter::execute(uint8_t byte, Cursor* in) {
  const uint8_t low = byte & 0x3f;
  switch (byte & 0xc0 ? byte & 0xc0 : byte) {
    case 0x40:  // advance_loc
      return advance(low);
    case 0x80:  // offset
      return set_unsigned(low, SavedBy::kOffset, in);
    case 0xc0:  // restore
      return restore(low);
    case 0x00:  // nop
      return true;
    case 0x01:  // set_loc
      location_ = in->pointer(fde_.pointer_encoding, bounds_, 0, fde_.pc_begin);
      return true;
    case 0x02:  // advance_loc1
      return advance(in->u8());
    case 0x03:  // advance_loc2
      return advance(in->fixed<uint16_t>());
    case 0x04:  // advance_loc4
      return advance(in->fixed<uint32_t>());
    case 0x05:  // offset_extended
      return set_unsigned(in->uleb(), SavedBy::kOffset, in);
    case 0x06:  // restore_extended
      return restore(in->uleb());
    case 0x07:  // undefined
      return set(in->uleb(), SavedBy::kUndefined);
    case 0x08:  // same_value
      return set(in->uleb(), SavedBy::kSameValue);
    case 0x09: {  // register
      const uint64_t reg = in->uleb();
      return set(reg, SavedBy::kRegister, static_cast<int64_t>(in->uleb() & 0xffff));
    }
    case 0x0a:  // remember_state
      return remember();
    case 0x0b:  // restore_state
      return recall();
    case 0x0c: {  // def_cfa
      const uint64_t reg = in->uleb();
      return set_cfa(reg, static_cast<int64_t>(in->uleb()));
    }
    case 0x0d:  // def_cfa_register
      return !row_->cfa_by_expression && set_cfa(in->uleb(), row_->cfa_offset);
    case 0x0e:  // def_cfa_offset
      return set_cfa_offset(static_cast<int64_t>(in->uleb()));
    case 0x0f:  // def_cfa_expression
      row_->cfa_by_expression = true;
      row_->cfa_offset = skip_expression(in);
      return true;
    case 0x10:  // expression
      return set_expression(in->uleb(), SavedBy::kExpression, in);
    case 0x11:  // offset_extended_sf
      return set_signed(in->uleb(), SavedBy::kOffset, in);
    case 0x12: {  // def_cfa_sf
      const uint64_t reg = in->uleb();
      return set_cfa(reg, factored_offset(in));
    }
    case 0x13:  // def_cfa_offset_sf
      return set_cfa_offset(factored_offset(in));
    case 0x14:  // val_offset
      return set_unsigned(in->uleb(), SavedBy::kValOffset, in);
    case 0x15:  // val_offset_sf
      return set_signed(in->uleb(), SavedBy::kValOffset, in);
    case 0x16:  // val_expression
      return set_expression(in->uleb(), SavedBy::kValExpression, in);
    case 0x2c:  // AARCH64_negate_ra_state_with_pc
    case 0x2d:  // AARCH64_negate_ra_state: a signature is taken off wherever an address is read
      return kReturn != kPc;
    case 0x2e:  // GNU_args_size: for landing pads only
      in->uleb();
      return true;
    case 0x2f: {  // GNU_negative_offset_extended
      const uint64_t reg = in->uleb();
      return set_factored(reg, SavedBy::kOffset, -static_cast<int64_t>(in->uleb()));
    }
    default:
      return false;
  }
}

}  // namespace

bool find_row(const Bounds& bounds, const Fde& fde, uintptr_t pc, Row* row) {
  // A Row has no other place for the return address.
  if (fde.return_column != kReturn) return false;
  return Interpreter(bounds, fde, pc, row).run();
}

}  // namespace mtrace::cfi
