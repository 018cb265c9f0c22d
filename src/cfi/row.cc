#include "cfi/row.h"

#include <string.h>

#include "cfi/cursor.h"

namespace mtrace::unwind {
namespace {

constexpr unsigned kMaxRemembered = 4;  // compilers nest one, hand-written assembly up to three
constexpr int64_t kMaxValue = (1 << 28) - 1;  // of a RegisterRule

// What DW_CFA_remember_state remembers.
struct State {
  bool cfa_by_expression;
  uint8_t cfa_register;
  int64_t cfa_offset;
  RegisterRule rules[kRegisters];
};

class Interpreter {
 public:
  Interpreter(const Bounds& bounds, const Fde& fde, uintptr_t pc, Row* row)
      : bounds_(bounds), fde_(fde), pc_(pc), row_(row), location_(fde.pc_begin) {
    row->origin = fde.own.begin;
    row->signal_frame = fde.signal_frame;
    row->cfa_by_expression = false;
    row->cfa_register = kSp;
    row->cfa_offset = 0;
    memset(row->rules, 0, sizeof row->rules);
  }

  bool run() {
    if (!run(fde_.initial)) return false;
    memcpy(initial_, row_->rules, sizeof initial_);
    location_ = fde_.pc_begin;
    return run(fde_.own);
  }

 private:
  bool run(const Program& program);
  bool advance(uint64_t delta) {
    location_ += delta * fde_.code_align;
    return location_ <= pc_;
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
  bool set_expression(uint64_t reg, SavedBy how, Cursor* in) {
    const auto distance = static_cast<int64_t>(in->position() - row_->origin);
    in->skip(in->uleb());
    return set(reg, how, distance);
  }
  bool restore(uint64_t reg) {
    if (reg < kRegisters) row_->rules[reg] = initial_[reg];
    return true;
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
  bool remember();
  bool recall();

  const Bounds& bounds_;
  const Fde& fde_;
  const uintptr_t pc_;
  Row* const row_;
  uintptr_t location_;
  RegisterRule ignored_ = {};
  RegisterRule initial_[kRegisters] = {};
  unsigned remembered_ = 0;
  State states_[kMaxRemembered];
};

bool Interpreter::remember() {
  if (remembered_ == kMaxRemembered) return false;
  State& state = states_[remembered_++];
  state.cfa_by_expression = row_->cfa_by_expression;
  state.cfa_register = row_->cfa_register;
  state.cfa_offset = row_->cfa_offset;
  memcpy(state.rules, row_->rules, sizeof state.rules);
  return true;
}

bool Interpreter::recall() {
  if (remembered_ == 0) return false;
  const State& state = states_[--remembered_];
  row_->cfa_by_expression = state.cfa_by_expression;
  row_->cfa_register = state.cfa_register;
  row_->cfa_offset = state.cfa_offset;
  memcpy(row_->rules, state.rules, sizeof state.rules);
  return true;
}

// True also when an instruction beyond pc ended it. Terminates: each turn consumes a byte.
bool Interpreter::run(const Program& program) {
  const bool initial = program.begin == fde_.initial.begin;
  Cursor in(program.begin, program.end);
  while (in.more()) {
    const uint8_t byte = in.u8();
    const uint8_t low = byte & 0x3f;
    bool good = true;
    bool reached = true;
    uint64_t reg;
    switch (byte & 0xc0 ? byte & 0xc0 : byte) {
      case 0x40:  // advance_loc
        reached = advance(low);
        break;
      case 0x80:  // offset
        good = set_factored(low, SavedBy::kOffset, static_cast<int64_t>(in.uleb()));
        break;
      case 0xc0:  // restore
        good = !initial && restore(low);
        break;
      case 0x00:  // nop
        break;
      case 0x01:  // set_loc
        location_ = in.pointer(fde_.pointer_encoding, bounds_, 0, fde_.pc_begin);
        reached = location_ <= pc_;
        break;
      case 0x02:  // advance_loc1
        reached = advance(in.u8());
        break;
      case 0x03:  // advance_loc2
        reached = advance(in.fixed<uint16_t>());
        break;
      case 0x04:  // advance_loc4
        reached = advance(in.fixed<uint32_t>());
        break;
      case 0x05:  // offset_extended
        reg = in.uleb();
        good = set_factored(reg, SavedBy::kOffset, static_cast<int64_t>(in.uleb()));
        break;
      case 0x06:  // restore_extended
        good = !initial && restore(in.uleb());
        break;
      case 0x07:  // undefined
        good = set(in.uleb(), SavedBy::kUndefined);
        break;
      case 0x08:  // same_value
        good = set(in.uleb(), SavedBy::kSameValue);
        break;
      case 0x09:  // register
        reg = in.uleb();
        good = set(reg, SavedBy::kRegister, static_cast<int64_t>(in.uleb() & 0xffff));
        break;
      case 0x0a:  // remember_state
        good = remember();
        break;
      case 0x0b:  // restore_state
        good = recall();
        break;
      case 0x0c:  // def_cfa
        reg = in.uleb();
        good = set_cfa(reg, static_cast<int64_t>(in.uleb()));
        break;
      case 0x0d:  // def_cfa_register
        reg = in.uleb();
        good = !row_->cfa_by_expression && set_cfa(reg, row_->cfa_offset);
        break;
      case 0x0e:  // def_cfa_offset
        good = set_cfa_offset(static_cast<int64_t>(in.uleb()));
        break;
      case 0x0f:  // def_cfa_expression
        row_->cfa_by_expression = true;
        row_->cfa_offset = static_cast<int64_t>(in.position() - row_->origin);
        in.skip(in.uleb());
        break;
      case 0x10:  // expression
        reg = in.uleb();
        good = set_expression(reg, SavedBy::kExpression, &in);
        break;
      case 0x11:  // offset_extended_sf
        reg = in.uleb();
        good = set_factored(reg, SavedBy::kOffset, in.sleb());
        break;
      case 0x12:  // def_cfa_sf
        reg = in.uleb();
        good = set_cfa(reg, static_cast<int64_t>(static_cast<uint64_t>(in.sleb()) *
                                                 static_cast<uint64_t>(fde_.data_align)));
        break;
      case 0x13:  // def_cfa_offset_sf
        good = set_cfa_offset(static_cast<int64_t>(static_cast<uint64_t>(in.sleb()) *
                                                   static_cast<uint64_t>(fde_.data_align)));
        break;
      case 0x14:  // val_offset
        reg = in.uleb();
        good = set_factored(reg, SavedBy::kValOffset, static_cast<int64_t>(in.uleb()));
        break;
      case 0x15:  // val_offset_sf
        reg = in.uleb();
        good = set_factored(reg, SavedBy::kValOffset, in.sleb());
        break;
      case 0x16:  // val_expression
        reg = in.uleb();
        good = set_expression(reg, SavedBy::kValExpression, &in);
        break;
      case 0x2c:  // AARCH64_negate_ra_state_with_pc
      case 0x2d:  // AARCH64_negate_ra_state: a signature is taken off wherever an address is read
        good = kReturn != kPc;
        break;
      case 0x2e:  // GNU_args_size: for landing pads only
        in.uleb();
        break;
      case 0x2f:  // GNU_negative_offset_extended
        reg = in.uleb();
        good = set_factored(reg, SavedBy::kOffset, -static_cast<int64_t>(in.uleb()));
        break;
      default:
        good = false;
    }
    if (!good || !in.ok()) return false;
    if (!reached) return true;
  }
  return in.ok();
}

}  // namespace

bool find_row(const Bounds& bounds, const Fde& fde, uintptr_t pc, Row* row) {
  // A Row has no other place for the return address.
  if (fde.return_column != kReturn) return false;
  return Interpreter(bounds, fde, pc, row).run();
}

}  // namespace mtrace::unwind
