#include "unwind/slow_walk.h"

#include "modules/jit_names.h"
#include "python/frames.h"
#include "unwind/frame_pointer.h"
#include "unwind/frame_registers.h"
#include "unwind/kernel_frame.h"
#include "unwind/registered_frames.h"
#include "unwind/rule_cache.h"
#include "unwind/stack_memory.h"

namespace mtrace::unwind {
namespace {

// Frames of this library between full_walk and the hooked function's caller.
constexpr unsigned kMaxOwnFrames = 32;

uintptr_t offset_by(uintptr_t address, int64_t offset) {
  return address + static_cast<uintptr_t>(offset);
}

// Adds the Python functions of a frame of the evaluation loop, which ends at `cfa`.
void enter_python(WalkState* state, uintptr_t cfa, bool interrupted) {
  add_python_frames(*state, cfa, interrupted ? PythonAccess::kCareful : PythonAccess::kDirect,
                    nullptr);
}

// One step of a packed rule: updates sp and fp of `state`, yields the caller's key (0: the return
// address is zero). False: memory that cannot be read, or no packed rule.
bool step_by_rule(Rule rule, WalkState* state, StackMemory* memory, uintptr_t* next_key) {
  uintptr_t cfa;
  uintptr_t caller_fp = state->fp;
  switch (rule.kind()) {
    case RuleKind::kRsp:
      cfa = state->sp + rule.offset();
      break;
    case RuleKind::kRbp:
      cfa = state->fp + rule.offset();
      break;
    case RuleKind::kDrap:
      if (!memory->read(state->fp - rule.offset(), &cfa) || !memory->read(state->fp, &caller_fp)) {
        return false;
      }
      break;
    case RuleKind::kSignal: {
      const uintptr_t sp = state->sp;
      uintptr_t pc;
      if (!memory->read(offset_by(sp, kSignalRbp), &state->fp) ||
          !memory->read(offset_by(sp, kSignalRsp), &state->sp) ||
          !memory->read(offset_by(sp, kSignalRip), &pc)) {
        return false;
      }
      // A jump to address 0 is not the end of the stack, but its frame is unknown.
      *next_key = pc + 1;
      return pc != 0;
    }
    default:
      return false;
  }
  // A CFA below sp is a switch to another stack (or damage: then the depth ends the walk).
  if (cfa % sizeof(uintptr_t) != 0 || !memory->read(cfa - 8, next_key)) return false;
  if (rule.slot() != Rule::kSameRbp && !memory->read(cfa - rule.slot() * 8, &caller_fp))
    return false;
  state->sp = cfa;
  state->fp = caller_fp;
  return true;
}

// One step from a frame without call-frame information, like step_by_rule().
bool step_by_guess(WalkState* state, StackMemory* memory, uintptr_t* next_key) {
  Registers caller;
  if (!guess_caller(memory, {state->key, state->sp, state->fp}, &caller)) return false;
  state->sp = caller.sp;
  state->fp = caller.fp;
  *next_key = caller.pc;
  return true;
}

// Guesses the caller for the interpreter: all registers but pc, sp and rbp become unknown.
Step step_by_guess(FrameRegisters* machine, StackMemory* memory) {
  const uintptr_t* const at = machine->registers;
  Registers caller;
  if (!machine->has(kRbp) || !guess_caller(memory, {at[kReturn], at[kRsp], at[kRbp]}, &caller)) {
    return Step::kLost;
  }
  machine->known = 0;
  machine->set(kReturn, caller.pc);
  machine->set(kRsp, caller.sp);
  machine->set(kRbp, caller.fp);
  return Step::kGuess;
}

// One step of the interpreter. `*exact`: the pc is where a signal interrupted, not a return
// address; updated for the caller.
Step step_by_interpreter(FrameRegisters* machine, bool* exact, StackMemory* memory) {
  const uintptr_t pc = machine->registers[kReturn] - (*exact ? 0 : 1);
  Object scratch;
  const Object* object = loaded_object(pc, &scratch);
  Fde fde;
  Row row;
  Step step;
  if (object == nullptr) met_code_without_object(pc);
  const bool described = object == nullptr
                             ? find_registered_row(pc, &scratch, &row)
                             : find_fde(*object, pc, &fde) && find_row(*object, fde, pc, &row);
  if (described) {
    const Bounds& bounds = object == nullptr ? scratch.bounds : object->bounds;
    step = step_by_row(bounds, row, machine, memory);
    *exact = row.signal_frame;
  } else if (object != nullptr && is_loader(*object)) {
    return Step::kBottom;
  } else {
    step = step_by_guess(machine, memory);
    *exact = false;
  }
  if (step == Step::kCaller || step == Step::kGuess) memory->moved_to(machine->registers[kRsp]);
  return step;
}

// Captures the registers that a function preserves, rsp and the pc.
[[gnu::always_inline]] inline void capture(FrameRegisters* machine) {
  uintptr_t* const to = machine->registers;
  asm volatile(
      "movq %%rbx, 24(%0)\n\t"
      "movq %%rbp, 48(%0)\n\t"
      "movq %%rsp, 56(%0)\n\t"
      "movq %%r12, 96(%0)\n\t"
      "movq %%r13, 104(%0)\n\t"
      "movq %%r14, 112(%0)\n\t"
      "movq %%r15, 120(%0)\n\t"
      "leaq 0f(%%rip), %%rax\n"
      "0:\tmovq %%rax, 128(%0)"
      :
      : "r"(to)
      : "rax", "memory");
  machine->known = 1u << kRbx | 1u << kRbp | 1u << kRsp | 0xfu << 12 | 1u << kReturn;
}

// Unwinds this library's own frames. False: `from` is not among the callers.
bool unwind_to(const Registers& from, FrameRegisters* machine, StackMemory* memory) {
  bool exact = true;
  for (unsigned i = 0; i < kMaxOwnFrames; ++i) {
    if (step_by_interpreter(machine, &exact, memory) != Step::kCaller) return false;
    if (machine->registers[kReturn] == from.pc && machine->registers[kRsp] == from.sp) return true;
  }
  return false;
}

}  // namespace

[[gnu::noinline]] Walk slow_walk(const Registers& from, WalkState state) {
  StackMemory memory(trusted_stack(), state.sp);
  for (bool interrupted = false;;) {
    Rule rule = rule_for(state.key);
    const bool own = state.leave_own();
    if (rule.is_marked()) {
      rule = rule.without_mark();
      if (!own)
        enter_python(&state, (rule.from_rbp() ? state.fp : state.sp) + rule.offset(), interrupted);
    }
    interrupted |= rule.kind() == RuleKind::kSignal;
    if (rule.kind() == RuleKind::kBottom) return state.result(End::kBottom);
    if (rule.kind() == RuleKind::kSpecial) return full_walk(from, state.frames, state.depth);
    uintptr_t key;
    const bool guess = rule.kind() == RuleKind::kLost;
    const bool stepped =
        guess ? step_by_guess(&state, &memory, &key) : step_by_rule(rule, &state, &memory, &key);
    if (!stepped) return state.result(End::kLost);
    if (key == 0) return state.result(End::kBottom);
    if (key >= kKeyEnd) return state.result(End::kLost);
    if (state.count == state.depth) return state.result(End::kDepth);
    memory.moved_to(state.sp);
    guess ? state.enter_guessed(key) : state.enter(key);
  }
}

[[gnu::noinline]] Walk full_walk(const Registers& from, uintptr_t* frames, unsigned depth) {
  FrameRegisters machine = {};
  capture(&machine);
  StackMemory memory(trusted_stack(), machine.registers[kRsp]);
  if (!unwind_to(from, &machine, &memory)) machine.known = 0;
  // After unwinding these are equal; otherwise no other registers are known.
  machine.set(kReturn, from.pc);
  machine.set(kRsp, from.sp);
  machine.set(kRbp, from.fp);
  WalkState state = {0, from.sp, from.fp, 0, frames, 0, depth, 0};
  state.enter(from.pc);
  bool interrupted = false;
  for (bool exact = false;;) {
    state.sp = machine.registers[kRsp];
    const Step step = step_by_interpreter(&machine, &exact, &memory);
    const bool own = state.leave_own();
    if (step == Step::kCaller && !own && rule_for(state.key).is_marked()) {
      enter_python(&state, machine.registers[kRsp], interrupted);
    }
    interrupted |= exact;
    if (step == Step::kBottom) return state.result(End::kBottom);
    if (step == Step::kLost) return state.result(End::kLost);
    const uintptr_t pc = machine.registers[kReturn];
    if (pc == 0 && !exact) return state.result(End::kBottom);
    if (pc == 0 || pc >= kKeyEnd - 1) return state.result(End::kLost);
    if (state.count == depth) return state.result(End::kDepth);
    step == Step::kGuess ? state.enter_guessed(pc) : state.enter(pc + (exact ? 1 : 0));
  }
}

}  // namespace mtrace::unwind
