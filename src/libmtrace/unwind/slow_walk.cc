#include "unwind/slow_walk.h"

#include "base/probe.h"
#include "cfi/frame_registers.h"
#include "modules/c_library.h"
#include "unwind/registered_frames.h"
#include "unwind/rule_cache.h"
#include "unwind/stack_memory.h"

namespace mtrace::unwind {
namespace {

uintptr_t address_of(const uintptr_t* word) { return reinterpret_cast<uintptr_t>(word); }

uintptr_t offset_by(uintptr_t address, int64_t offset) {
  return address + static_cast<uintptr_t>(offset);
}

// One step of a packed rule: updates sp and fp of `state`, yields the caller's key (0: the return
// address is zero). False: memory that cannot be read, or no packed rule.
bool step_by_rule(Rule rule, WalkState* state, StackMemory* memory, uintptr_t* next_key) {
  uintptr_t cfa;
  uintptr_t caller_fp = state->fp;
  switch (rule.kind()) {
    case RuleKind::kSp:
      cfa = state->sp + rule.offset();
      break;
    case RuleKind::kFp:
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
      if (!memory->read(offset_by(sp, cfi::kSignalFp), &state->fp) ||
          !memory->read(offset_by(sp, cfi::kSignalSp), &state->sp) ||
          !memory->read(offset_by(sp, cfi::kSignalPc), &pc)) {
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
  const auto* const above = reinterpret_cast<const uintptr_t*>(cfa);
  if (cfa % sizeof(uintptr_t) != 0 || !memory->read(address_of(rule.return_slot(above)), next_key))
    return false;
  if (rule.saves_fp() && !memory->read(address_of(rule.fp_slot(above)), &caller_fp)) return false;
  *next_key = cfi::code_address(*next_key);
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

// Guesses the caller for the interpreter: all registers but pc, sp and fp become unknown.
cfi::Step step_by_guess(cfi::FrameRegisters* machine, StackMemory* memory) {
  const uintptr_t* const at = machine->registers;
  Registers caller;
  if (!machine->has(cfi::kFp) ||
      !guess_caller(memory, {at[cfi::kPc], at[cfi::kSp], at[cfi::kFp]}, &caller)) {
    return cfi::Step::kLost;
  }
  machine->known = 0;
  machine->set(cfi::kPc, caller.pc);
  machine->set(cfi::kSp, caller.sp);
  machine->set(cfi::kFp, caller.fp);
  return cfi::Step::kGuess;
}

// One step of the interpreter. `*exact`: the pc is where a signal interrupted, not a return
// address; updated for the caller.
cfi::Step step_by_interpreter(cfi::FrameRegisters* machine, bool* exact, StackMemory* memory) {
  const uintptr_t pc = machine->registers[cfi::kPc] - (*exact ? 0 : 1);
  modules::Object scratch;
  const modules::Object* object = loaded_object(pc, &scratch);
  cfi::Fde fde;
  cfi::Row row;
  cfi::Step step;
  const bool described = object == nullptr
                             ? find_registered_row(pc, &scratch, &row)
                             : cfi::find_fde(object->bounds, object->eh_frame_hdr, pc, &fde) &&
                                   cfi::find_row(object->bounds, fde, pc, &row);
  if (described) {
    const cfi::Bounds& bounds = object == nullptr ? scratch.bounds : object->bounds;
    step = row.signal_frame && cfi::is_signal_return(pc + 1, base::read_memory)
               ? step_by_kernel_frame(machine, memory)
               : step_by_row(bounds, row, machine, memory);
    *exact = row.signal_frame;
  } else if (cfi::is_signal_return(pc + 1, base::read_memory)) {
    step = step_by_kernel_frame(machine, memory);
    *exact = true;
  } else if (object != nullptr && modules::is_loader(*object) && !modules::is_in_bare_libc(pc)) {
    return cfi::Step::kBottom;
  } else {
    step = step_by_guess(machine, memory);
    *exact = false;
  }
  if (step == cfi::Step::kCaller || step == cfi::Step::kGuess)
    memory->moved_to(machine->registers[cfi::kSp]);
  return step;
}

// Unwinds this library's own frames. False: `from` is not among the callers.
bool unwind_to(const Registers& from, cfi::FrameRegisters* machine, StackMemory* memory) {
  bool exact = true;
  for (unsigned i = 0; i < kMaxOwnFrames; ++i) {
    if (step_by_interpreter(machine, &exact, memory) != cfi::Step::kCaller) return false;
    if (machine->registers[cfi::kPc] == from.pc && machine->registers[cfi::kSp] == from.sp)
      return true;
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
      const uintptr_t cfa = (rule.from_fp() ? state.fp : state.sp) + rule.offset();
      if (!own) add_python_frames(state, cfa, interrupted, nullptr);
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
  cfi::FrameRegisters machine = {};
  capture(&machine);
  StackMemory memory(trusted_stack(), machine.registers[cfi::kSp]);
  if (!unwind_to(from, &machine, &memory)) machine.known = 0;
  // After unwinding these are equal; otherwise no other registers are known.
  machine.set(cfi::kPc, from.pc);
  machine.set(cfi::kSp, from.sp);
  machine.set(cfi::kFp, from.fp);
  WalkState state = {0, from.sp, from.fp, 0, frames, 0, depth, 0};
  state.enter(from.pc);
  bool interrupted = false;
  for (bool exact = false;;) {
    state.sp = machine.registers[cfi::kSp];
    const cfi::Step step = step_by_interpreter(&machine, &exact, &memory);
    const bool own = state.leave_own();
    if (step == cfi::Step::kCaller && !own && rule_for(state.key).is_marked()) {
      add_python_frames(state, machine.registers[cfi::kSp], interrupted, nullptr);
    }
    interrupted |= exact;
    if (step == cfi::Step::kBottom) return state.result(End::kBottom);
    if (step == cfi::Step::kLost) return state.result(End::kLost);
    const uintptr_t pc = machine.registers[cfi::kPc];
    if (pc == 0 && !exact) return state.result(End::kBottom);
    if (pc == 0 || pc >= kKeyEnd - 1) return state.result(End::kLost);
    if (state.count == depth) return state.result(End::kDepth);
    step == cfi::Step::kGuess ? state.enter_guessed(pc) : state.enter(pc + (exact ? 1 : 0));
  }
}

}  // namespace mtrace::unwind
