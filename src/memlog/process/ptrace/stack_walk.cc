#include "process/ptrace/stack_walk.h"

#include <algorithm>

#include "cfi/frame_registers.h"
#include "cfi/row.h"
#include "process/ptrace/registers.h"

namespace mtrace::process {

const Object* StackWalk::object() const {
  for (const Object& object : objects_) {
    if (object.holds(address())) return &object;
  }
  return nullptr;
}

void StackWalk::begin(const user_regs_struct& registers) {
  frame_.known = 0;
  take_registers(registers, &frame_);
  exact_ = true;
}

bool StackWalk::read_stack(FrameMemory* self, uintptr_t address, unsigned size, uintptr_t* value) {
  if (!static_cast<StackWalk*>(self)->stacks_.read_word(address, value)) return false;
  if (size < sizeof *value) *value &= (uintptr_t{1} << 8 * size) - 1;
  return true;
}

// .eh_frame_hdr begins with its version and three encodings; the address of .eh_frame follows.
// Linkers put both behind one another, and nothing large behind them in their segment. An entry
// with an absolute address, which assemblers do not write, is not found in the copy.
const StackWalk::Tables& StackWalk::tables_of(const Object& object) {
  constexpr uint64_t kMostBytes = uint64_t{256} << 20;
  constexpr uint8_t kDistance = 0x1b;  // 4 signed bytes, from where they stand
  const auto [entry, fresh] = tables_.try_emplace(&object);
  Tables& copy = entry->second;
  struct {
    uint8_t version;
    uint8_t encodings[3];
    int32_t distance;
  } header;
  const uint64_t at = object.eh_frame_header;
  if (!fresh || !object.tables.holds(at) || !memory_.read(at, &header, sizeof header) ||
      header.encodings[0] != kDistance) {
    return copy;
  }
  const uint64_t begin = std::min(at, at + 4 + static_cast<uint64_t>(int64_t{header.distance}));
  if (!object.tables.holds(begin) || object.tables.end - begin > kMostBytes) return copy;
  copy.bytes.resize(object.tables.end - begin);
  if (!memory_.read(begin, copy.bytes.data(), copy.bytes.size())) {
    copy.bytes.clear();
    return copy;
  }
  const auto here = reinterpret_cast<uintptr_t>(copy.bytes.data());
  copy.distance = here - begin;
  copy.bounds.add(here, here + copy.bytes.size());
  return copy;
}

bool StackWalk::step(const Object* object) {
  const uint64_t pc = address();
  const auto read = [this](uint64_t code, void* to, size_t size) {
    return memory_.read(code, to, size);
  };
  cfi::Fde fde;
  cfi::Row row;
  if (object != nullptr) {
    const Tables& table = tables_of(*object);
    if (cfi::find_fde(table.bounds, object->eh_frame_header + table.distance, pc + table.distance,
                      &fde) &&
        cfi::find_row(table.bounds, fde, pc + table.distance, &row)) {
      exact_ = row.signal_frame;
      if (!exact_ || !cfi::is_signal_return(pc + 1, read)) {
        return cfi::step_by_row(table.bounds, row, &frame_, this) == cfi::Step::kCaller;
      }
    }
  }
  exact_ = cfi::is_signal_return(pc + 1, read);
  return exact_ ? cfi::step_by_kernel_frame(&frame_, this) == cfi::Step::kCaller
                : step_by_frame_pointer();
}

// Code without call-frame information, as JIT compilers make, may keep frame pointers.
bool StackWalk::step_by_frame_pointer() {
  const uintptr_t sp = frame_.registers[cfi::kSp];
  const uintptr_t fp = frame_.registers[cfi::kFp];
  uintptr_t caller_fp;
  uintptr_t caller;
  if (!frame_.has(cfi::kFp) || fp < sp || fp % sizeof fp != 0 ||
      !FrameMemory::read(fp, &caller_fp) || !FrameMemory::read(fp + sizeof fp, &caller)) {
    return false;
  }
  frame_.known = 0;
  frame_.set(cfi::kPc, cfi::code_address(caller));
  frame_.set(cfi::kSp, fp + 2 * sizeof fp);
  frame_.set(cfi::kFp, caller_fp);
  return caller != 0;
}

}  // namespace mtrace::process
