#include <dwarf.h>

#include "cfi/frame_registers.h"

namespace mtrace::cfi {
namespace {

constexpr unsigned kMaxOperations = 1000;  // a loop in an expression ends the walk
constexpr unsigned kMaxStack = 32;

class Evaluator {
 public:
  Evaluator(const FrameRegisters& machine, FrameMemory* memory, uintptr_t begin, uintptr_t end)
      : machine_(machine), memory_(memory), begin_(begin), in_(begin, end) {}

  void push(uintptr_t value) {
    if (depth_ == kMaxStack) {
      good_ = false;
    } else {
      stack_[depth_++] = value;
    }
  }

  bool run(uintptr_t* result) {
    for (unsigned count = 0; in_.more(); ++count) {
      if (count == kMaxOperations) return false;
      operate(in_.u8());
      if (!good_ || !in_.ok()) return false;
    }
    if (depth_ == 0 || !in_.ok()) return false;
    *result = stack_[depth_ - 1];
    return true;
  }

 private:
  uintptr_t pop() {
    if (depth_ == 0) {
      good_ = false;
      return 0;
    }
    return stack_[--depth_];
  }
  uintptr_t peek(unsigned from_top) {
    if (from_top >= depth_) {
      good_ = false;
      return 0;
    }
    return stack_[depth_ - 1 - from_top];
  }
  void push_register(uint64_t reg, int64_t offset) {
    if (reg >= kRegisters || !machine_.has(static_cast<unsigned>(reg))) {
      good_ = false;
    } else {
      push(machine_.registers[reg] + static_cast<uintptr_t>(offset));
    }
  }
  void load(uint8_t size) {
    uintptr_t value = 0;
    if ((size != 1 && size != 2 && size != 4 && size != 8) ||
        !memory_->read_sized(pop(), size, &value)) {
      good_ = false;
    }
    push(value);
  }
  void jump(int16_t distance) {
    const uintptr_t target = in_.position() + static_cast<uintptr_t>(intptr_t{distance});
    if (target < begin_ || target > in_.end()) {
      good_ = false;
    } else {
      in_ = Cursor(target, in_.end());
    }
  }
  void operate(uint8_t op);
  uintptr_t result_of(uint8_t op, uintptr_t left, uintptr_t right);

  const FrameRegisters& machine_;
  FrameMemory* const memory_;
  const uintptr_t begin_;
  Cursor in_;
  bool good_ = true;
  unsigned depth_ = 0;
  uintptr_t stack_[kMaxStack];
};

uintptr_t Evaluator::result_of(uint8_t op, uintptr_t left, uintptr_t right) {
  const auto signed_right = static_cast<intptr_t>(right);
  const auto signed_left = static_cast<intptr_t>(left);
  switch (op) {
    case DW_OP_and:
      return left & right;
    case DW_OP_or:
      return left | right;
    case DW_OP_xor:
      return left ^ right;
    case DW_OP_plus:
      return left + right;
    case DW_OP_minus:
      return left - right;
    case DW_OP_mul:
      return left * right;
    case DW_OP_div:
      good_ &= right != 0 && !(right == ~uintptr_t{0} && left == uintptr_t{1} << 63);
      return good_ ? static_cast<uintptr_t>(signed_left / signed_right) : 0;
    case DW_OP_mod:
      good_ &= right != 0;
      return good_ ? left % right : 0;
    case DW_OP_shl:
      return right < 64 ? left << right : 0;
    case DW_OP_shr:
      return right < 64 ? left >> right : 0;
    case DW_OP_shra:
      return static_cast<uintptr_t>(signed_left >> (right < 64 ? right : 63));
    case DW_OP_eq:
      return left == right;
    case DW_OP_ne:
      return left != right;
    case DW_OP_lt:
      return signed_left < signed_right;
    case DW_OP_le:
      return signed_left <= signed_right;
    case DW_OP_gt:
      return signed_left > signed_right;
    case DW_OP_ge:
      return signed_left >= signed_right;
    default:
      good_ = false;
      return 0;
  }
}

void Evaluator::operate(uint8_t op) {
  if (op >= DW_OP_lit0 && op <= DW_OP_lit31) return push(op - DW_OP_lit0);
  if (op >= DW_OP_breg0 && op <= DW_OP_breg31) return push_register(op - DW_OP_breg0, in_.sleb());
  uintptr_t first;
  uintptr_t second;
  switch (op) {
    case DW_OP_addr:
    case DW_OP_const8u:
    case DW_OP_const8s:
      return push(in_.fixed<uint64_t>());
    case DW_OP_const1u:
      return push(in_.u8());
    case DW_OP_const1s:
      return push(static_cast<uintptr_t>(intptr_t{in_.fixed<int8_t>()}));
    case DW_OP_const2u:
      return push(in_.fixed<uint16_t>());
    case DW_OP_const2s:
      return push(static_cast<uintptr_t>(intptr_t{in_.fixed<int16_t>()}));
    case DW_OP_const4u:
      return push(in_.fixed<uint32_t>());
    case DW_OP_const4s:
      return push(static_cast<uintptr_t>(intptr_t{in_.fixed<int32_t>()}));
    case DW_OP_constu:
      return push(in_.uleb());
    case DW_OP_consts:
      return push(static_cast<uintptr_t>(in_.sleb()));
    case DW_OP_bregx:
      first = in_.uleb();
      return push_register(first, in_.sleb());
    case DW_OP_dup:
      return push(peek(0));
    case DW_OP_drop:
      pop();
      return;
    case DW_OP_over:
      return push(peek(1));
    case DW_OP_pick:
      return push(peek(in_.u8()));
    case DW_OP_swap:
      first = pop();
      second = pop();
      push(first);
      return push(second);
    case DW_OP_rot: {
      first = pop();
      second = pop();
      const uintptr_t third = pop();
      push(first);
      push(third);
      return push(second);
    }
    case DW_OP_deref:
      return load(8);
    case DW_OP_deref_size:
      return load(in_.u8());
    case DW_OP_abs:
      first = pop();
      return push(static_cast<intptr_t>(first) < 0 ? 0 - first : first);
    case DW_OP_neg:
      return push(0 - pop());
    case DW_OP_not:
      return push(~pop());
    case DW_OP_plus_uconst:
      first = pop();
      return push(first + in_.uleb());
    case DW_OP_skip:
      return jump(in_.fixed<int16_t>());
    case DW_OP_bra: {
      const auto distance = in_.fixed<int16_t>();
      if (pop() != 0) jump(distance);
      return;
    }
    case DW_OP_nop:
      return;
    default:
      second = pop();
      first = pop();
      return push(result_of(op, first, second));
  }
}

}  // namespace

bool evaluate(const Bounds& bounds, uintptr_t place, const uintptr_t* initial,
              const FrameRegisters& machine, FrameMemory* memory, uintptr_t* result) {
  const uintptr_t limit = bounds.end_of(place, 1);
  if (limit == 0) return false;
  Cursor in(place, limit);
  const uint64_t length = in.uleb();
  if (!in.ok() || length > in.left()) return false;
  Evaluator evaluator(machine, memory, in.position(), in.position() + length);
  if (initial != nullptr) evaluator.push(*initial);
  return evaluator.run(result);
}

}  // namespace mtrace::cfi
