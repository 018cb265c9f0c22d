#include "cfi/frame_registers.h"

namespace mtrace::cfi {

Step step_by_row(const Bounds& bounds, const Row& row, FrameRegisters* machine,
                 FrameMemory* memory) {
  if (row.rules[kReturn].how == SavedBy::kUndefined) return Step::kBottom;
  uintptr_t cfa;
  if (row.cfa_by_expression) {
    const uintptr_t place = row.origin + static_cast<uintptr_t>(row.cfa_offset);
    if (!evaluate(bounds, place, nullptr, *machine, memory, &cfa)) return Step::kLost;
  } else {
    if (!machine->has(row.cfa_register)) return Step::kLost;
    cfa = machine->registers[row.cfa_register] + static_cast<uintptr_t>(row.cfa_offset);
  }
  FrameRegisters caller = *machine;
  // The stack pointer of the caller is the CFA unless a rule says otherwise.
  caller.set(kSp, cfa);
  for (unsigned reg = 0; reg < kRegisters; ++reg) {
    const RegisterRule& rule = row.rules[reg];
    const auto value = static_cast<uintptr_t>(intptr_t{rule.value});
    uintptr_t result = 0;
    bool good = true;
    switch (rule.how) {
      case SavedBy::kUnspecified:
      case SavedBy::kSameValue:
        continue;
      case SavedBy::kUndefined:
        good = false;
        break;
      case SavedBy::kOffset:
        good = memory->read(cfa + value, &result);
        break;
      case SavedBy::kValOffset:
        result = cfa + value;
        break;
      case SavedBy::kRegister:
        good = value < kRegisters && machine->has(static_cast<unsigned>(value));
        if (good) result = machine->registers[value];
        break;
      case SavedBy::kExpression:
      case SavedBy::kValExpression:
        good = evaluate(bounds, row.origin + value, &cfa, *machine, memory, &result);
        if (good && rule.how == SavedBy::kExpression) good = memory->read(result, &result);
        break;
    }
    if (good) {
      caller.set(reg, result);
    } else {
      caller.known &= ~(uint64_t{1} << reg);
    }
  }
  // Without a rule the return address would be the pc itself: no way on. Or it is still in its
  // register, where it has one.
  const SavedBy how = row.rules[kReturn].how;
  if (kReturn == kPc && (how == SavedBy::kUnspecified || how == SavedBy::kSameValue)) {
    return Step::kLost;
  }
  if (!caller.has(kReturn) || !caller.has(kSp)) return Step::kLost;
  if constexpr (kReturn != kPc) {
    caller.set(kPc, code_address(caller.registers[kReturn]));
    caller.known &= ~(uint64_t{1} << kReturn);  // the caller has made a call
  }
  *machine = caller;
  return Step::kCaller;
}

}  // namespace mtrace::cfi
