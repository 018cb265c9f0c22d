#include "cfi/expression.h"

#include <dwarf.h>

#include "cfi/cursor.h"

namespace mtrace::unwind {
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
  void operate_on_two(uint8_t op);

  const FrameRegisters& machine_;
  FrameMemory* const memory_;
  const uintptr_t begin_;
  Cursor in_;
  bool good_ = true;
  unsigned depth_ = 0;
  uintptr_t stack_[kMaxStack];
};

void Evaluator::operate_on_two(uint8_t op) {
  const uintptr_t right = pop();
  const uintptr_t left = pop();
  const auto signed_right = static_cast<intptr_t>(right);
  const auto signed_left = static_cast<intptr_t>(left);
  switch (op) {
    case DW_OP_and:
      push(left & right);
      break;
    case DW_OP_or:
      push(left | right);
      break;
    case DW_OP_xor:
      push(left ^ right);
      break;
    case DW_OP_plus:
      push(left + right);
      break;
    case DW_OP_minus:
      push(left - right);
      break;
    case DW_OP_mul:
      push(left * right);
      break;
    case DW_OP_div:
      good_ &= right != 0 && !(right == ~uintptr_t{0} && left == uintptr_t{1} << 63);
      push(good_ ? static_cast<uintptr_t>(signed_left / signed_right) : 0);
      break;
    case DW_OP_mod:
      good_ &= right != 0;
      push(good_ ? left % right : 0);
      break;
    case DW_OP_shl:
      push(right < 64 ? left << right : 0);
      break;
    case DW_OP_shr:
      push(right < 64 ? left >> right : 0);
      break;
    case DW_OP_shra:
      push(static_cast<uintptr_t>(signed_left >> (right < 64 ? right : 63)));
      break;
    case DW_OP_eq:
      push(left == right);
      break;
    case DW_OP_ne:
      push(left != right);
      break;
    case DW_OP_lt:
      push(signed_left < signed_right);
      break;
    case DW_OP_le:
      push(signed_left <= signed_right);
      break;
    case DW_OP_gt:
      push(signed_left > signed_right);
      break;
    default:
      push(signed_left >= signed_right);
      break;  // DW_OP_ge
  }
}

void Evaluator::operate(uint8_t op) {
  if (op >= DW_OP_lit0 && op <= DW_OP_lit31) return push(op - DW_OP_lit0);
  if (op >= DW_OP_breg0 && op <= DW_OP_breg31) return push_register(op - DW_OP_breg0, in_.sleb());
  uintptr_t first;
  uintptr_t second;
  switch (op) {
    case DW_OP_addr:
      push(in_.fixed<uint64_t>());
      break;
    case DW_OP_const1u:
      push(in_.u8());
      break;
    case DW_OP_const1s:
      push(static_cast<uintptr_t>(intptr_t{in_.fixed<int8_t>()}));
      break;
    case DW_OP_const2u:
      push(in_.fixed<uint16_t>());
      break;
    case DW_OP_const2s:
      push(static_cast<uintptr_t>(intptr_t{in_.fixed<int16_t>()}));
      break;
    case DW_OP_const4u:
      push(in_.fixed<uint32_t>());
      break;
    case DW_OP_const4s:
      push(static_cast<uintptr_t>(intptr_t{in_.fixed<int32_t>()}));
      break;
    case DW_OP_const8u:
    case DW_OP_const8s:
      push(in_.fixed<uint64_t>());
      break;
    case DW_OP_constu:
      push(in_.uleb());
      break;
    case DW_OP_consts:
      push(static_cast<uintptr_t>(in_.sleb()));
      break;
    case DW_OP_bregx: {
      const uint64_t reg = in_.uleb();
      push_register(reg, in_.sleb());
      break;
    }
    case DW_OP_dup:
      push(peek(0));
      break;
    case DW_OP_drop:
      pop();
      break;
    case DW_OP_over:
      push(peek(1));
      break;
    case DW_OP_pick:
      push(peek(in_.u8()));
      break;
    case DW_OP_swap:
      first = pop();
      second = pop();
      push(first);
      push(second);
      break;
    case DW_OP_rot: {
      first = pop();
      second = pop();
      const uintptr_t third = pop();
      push(first);
      push(third);
      push(second);
      break;
    }
    case DW_OP_deref:
      load(8);
      break;
    case DW_OP_deref_size:
      load(in_.u8());
      break;
    case DW_OP_abs:
      first = pop();
      push(static_cast<intptr_t>(first) < 0 ? 0 - first : first);
      break;
    case DW_OP_neg:
      push(0 - pop());
      break;
    case DW_OP_not:
      push(~pop());
      break;
    case DW_OP_plus_uconst:
      first = pop();
      push(first + in_.uleb());
      break;
    case DW_OP_skip:
      jump(in_.fixed<int16_t>());
      break;
    case DW_OP_bra: {
      const auto distance = in_.fixed<int16_t>();
      if (pop() != 0) jump(distance);
      break;
    }
    case DW_OP_nop:
      break;
    case DW_OP_and:
    case DW_OP_or:
    case DW_OP_xor:
    case DW_OP_plus:
    case DW_OP_minus:
    case DW_OP_mul:
    case DW_OP_div:
    case DW_OP_mod:
    case DW_OP_shl:
    case DW_OP_shr:
    case DW_OP_shra:
    case DW_OP_eq:
    case DW_OP_ne:
    case DW_OP_lt:
    case DW_OP_le:
    case DW_OP_gt:
    case DW_OP_ge:
      operate_on_two(op);
      break;
    default:
      good_ = false;
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

}  // namespace mtrace::unwind
