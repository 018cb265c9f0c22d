#include "report/tails.h"

#include "format/memlog.h"
#include "modules/modules.h"
#include "python/code.h"

namespace mtrace::report {
namespace {

using ledger::kTailFrames;
using ledger::StackRecord;

constexpr unsigned kMostTails = format::kMaxDepth / kTailFrames;

void add_frame(format::StackId& id, uintptr_t frame, modules::StackEpoch& epoch) {
  using format::PythonFrame;
  if (PythonFrame::is_one(frame)) {
    if (const unwind::PythonCode* code = unwind::python_code(PythonFrame::code(frame))) {
      return id.add(code->file->identity, format::python_offset(code->identity, frame));
    }
  }
  const modules::Module* module = modules::find_module(frame, epoch, nullptr);
  if (module != nullptr) {
    id.add(module->identity, frame - module->base);
  } else {
    id.add(0, frame);
  }
}

void add_frames(format::StackId& id, const char* frames, unsigned count,
                modules::StackEpoch& epoch) {
  for (unsigned i = count; i-- > 0;) add_frame(id, ledger::frame_in(frames, i), epoch);
}

// The tails of a stack, innermost first; returns their number.
unsigned tails_of(const ledger::StackTable& stacks, uint32_t tail, uint32_t (&tails)[kMostTails]) {
  unsigned count = 0;
  for (; tail != 0; tail = stacks.tail_at(tail).parent) tails[count++] = tail;
  return count;
}

}  // namespace

uint64_t stack_id(const StackRecord& stack) {
  Tails tails;
  return tails.id_of(stack);
}

uint64_t Tails::id_of(const StackRecord& stack) {
  const ledger::StackTable& stacks = *stacks_;
  uint32_t tails[kMostTails];
  modules::StackEpoch epoch(stack.retired);
  // The frames of a retired stack may mean other code than the same addresses now.
  const bool is_known = epoch.seen() == modules::kAlive;
  unsigned count = tails_of(stacks, stack.tail, tails);
  format::StackId id;
  unsigned left = count;
  for (unsigned i = 0; is_known && i < count; ++i) {
    if (tails[i] >= limit_ || ids_[tails[i]] == 0) continue;
    id = format::StackId(ids_[tails[i]]);
    left = i;
    break;
  }
  while (left-- > 0) {
    add_frames(id, stacks.tail_at(tails[left]).frames, kTailFrames, epoch);
    if (is_known && tails[left] < limit_ && epoch.seen() == modules::kAlive) {
      ids_[tails[left]] = id.value();
    }
  }
  add_frames(id, stack.frames, stack.own_frames, epoch);
  return id.value();
}

void Tails::reserve(const ledger::StackTable& stacks) {
  stacks_ = &stacks;
  const uint32_t limit = stacks.index_limit();
  limit_ = ids_.reserve(limit) && ends_.reserve(limit) ? limit : 0;
}

void Tails::drop() {
  ids_.drop();
  ends_.drop();
  limit_ = 0;
}

}  // namespace mtrace::report
