#include "process/ptrace/safe_point.h"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "cfi/eh_frame.h"
#include "cfi/frame_registers.h"
#include "cfi/kernel_frame.h"
#include "cfi/row.h"
#include "process/ptrace/registers.h"
#include "process/ptrace/tasks.h"

namespace mtrace::process {

namespace {

constexpr unsigned kMostFrames = 512;

// System calls that wait, and that no allocator makes.
constexpr int64_t kWaiting[] = {SYS_epoll_pwait,     SYS_epoll_pwait2,  SYS_ppoll,  SYS_pselect6,
                                SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_wait4,  SYS_waitid,
                                SYS_io_getevents,    SYS_read,          SYS_readv,  SYS_recvfrom,
                                SYS_recvmsg,         SYS_recvmmsg,      SYS_accept, SYS_accept4,
                                SYS_write,           SYS_writev,        SYS_sendto, SYS_sendmsg,
                                SYS_connect,         SYS_msgrcv,        SYS_semop,  SYS_semtimedop,
                                SYS_flock,           SYS_io_uring_enter};

}  // namespace

// Walks stacks by call-frame information. Code and its tables do not change while the process is
// held; stacks do when a thread is let run.
struct SafePoints::Walker : unwind::FrameMemory {
  Walker(const TargetMemory& memory, const std::vector<Object>& objects)
      : FrameMemory(read_stack), objects(objects), memory(memory), stacks(memory) {}

  // A copy of what an object says of its frames; addresses in it are `distance` above those of the
  // process. Empty: it says nothing, or what cannot be read.
  struct Tables {
    std::string bytes;
    uint64_t distance = 0;
    unwind::Bounds bounds;
  };

  const Object* object_at(uint64_t address) const {
    for (const Object& object : objects) {
      if (object.holds(address)) return &object;
    }
    return nullptr;
  }
  const Tables& tables_of(const Object& object);
  void begin(const user_regs_struct& registers) {
    frame.known = 0;
    take_registers(registers, &frame);
    exact = true;
  }
  // The address of the instruction that the frame is at.
  uint64_t address() const { return frame.registers[unwind::kPc] - (exact ? 0 : 1); }
  // Goes on to the caller. False: there is none, or it is not known.
  bool step();

  const std::vector<Object>& objects;
  const TargetMemory& memory;
  PageCache stacks;
  user_regs_struct registers = {};

 private:
  static bool read_stack(FrameMemory* self, uintptr_t address, unsigned size, uintptr_t* value);
  bool step_by_frame_pointer();
  std::unordered_map<const Object*, Tables> tables;
  unwind::FrameRegisters frame = {};
  bool exact = true;  // the frame was interrupted, and did not call
};

bool SafePoints::Walker::read_stack(FrameMemory* self, uintptr_t address, unsigned size,
                                    uintptr_t* value) {
  if (!static_cast<Walker*>(self)->stacks.read_word(address, value)) return false;
  if (size < sizeof *value) *value &= (uintptr_t{1} << 8 * size) - 1;
  return true;
}

// .eh_frame_hdr begins with its version and three encodings; the address of .eh_frame follows.
// Linkers put both behind one another, and nothing large behind them in their segment. An entry
// with an absolute address, which assemblers do not write, is not found in the copy.
const SafePoints::Walker::Tables& SafePoints::Walker::tables_of(const Object& object) {
  constexpr uint64_t kMostBytes = uint64_t{256} << 20;
  constexpr uint8_t kDistance = 0x1b;  // 4 signed bytes, from where they stand
  const auto [entry, fresh] = tables.try_emplace(&object);
  Tables& copy = entry->second;
  struct {
    uint8_t version;
    uint8_t encodings[3];
    int32_t distance;
  } header;
  const uint64_t at = object.eh_frame_header;
  if (!fresh || at == 0 || !object.tables.holds(at) || !memory.read(at, &header, sizeof header) ||
      header.encodings[0] != kDistance) {
    return copy;
  }
  const uint64_t begin = std::min(at, at + 4 + static_cast<uint64_t>(int64_t{header.distance}));
  if (!object.tables.holds(begin) || object.tables.end - begin > kMostBytes) return copy;
  copy.bytes.resize(object.tables.end - begin);
  if (!memory.read(begin, copy.bytes.data(), copy.bytes.size())) {
    copy.bytes.clear();
    return copy;
  }
  const auto here = reinterpret_cast<uintptr_t>(copy.bytes.data());
  copy.distance = here - begin;
  copy.bounds.add(here, here + copy.bytes.size());
  return copy;
}

bool SafePoints::Walker::step() {
  const uint64_t pc = address();
  const auto read = [this](uint64_t code, void* to, size_t size) {
    return memory.read(code, to, size);
  };
  unwind::Fde fde;
  unwind::Row row;
  if (const Object* object = object_at(pc); object != nullptr) {
    const Tables& table = tables_of(*object);
    if (!table.bytes.empty() &&
        unwind::find_fde(table.bounds, object->eh_frame_header + table.distance,
                         pc + table.distance, &fde) &&
        unwind::find_row(table.bounds, fde, pc + table.distance, &row)) {
      exact = row.signal_frame;
      if (!exact || !unwind::is_signal_return(pc + 1, read)) {
        return unwind::step_by_row(table.bounds, row, &frame, this) == unwind::Step::kCaller;
      }
    }
  }
  exact = unwind::is_signal_return(pc + 1, read);
  return exact ? unwind::step_by_kernel_frame(&frame, this) == unwind::Step::kCaller
               : step_by_frame_pointer();
}

// Code without call-frame information, as JIT compilers make, may keep frame pointers.
bool SafePoints::Walker::step_by_frame_pointer() {
  const uintptr_t sp = frame.registers[unwind::kSp];
  const uintptr_t fp = frame.registers[unwind::kFp];
  uintptr_t caller_fp;
  uintptr_t caller;
  if (!frame.has(unwind::kFp) || fp < sp || fp % sizeof fp != 0 ||
      !FrameMemory::read(fp, &caller_fp) || !FrameMemory::read(fp + sizeof fp, &caller)) {
    return false;
  }
  frame.known = 0;
  frame.set(unwind::kPc, unwind::code_address(caller));
  frame.set(unwind::kSp, fp + 2 * sizeof fp);
  frame.set(unwind::kFp, caller_fp);
  return caller != 0;
}

SafePoints::SafePoints(const TargetMemory& memory, std::vector<Object> objects,
                       const Restarts& restarts)
    : memory_(memory),
      objects_(std::move(objects)),
      restarts_(restarts),
      walker_(std::make_unique<Walker>(memory, objects_)) {}
SafePoints::~SafePoints() = default;

void SafePoints::forget_stacks() { walker_->stacks.forget(); }

template <typename Visit>
void SafePoints::walk(const Visit& visit) {
  restarts_.leave(&walker_->registers);
  walker_->begin(walker_->registers);
  for (unsigned frame = 0; frame < kMostFrames; ++frame) {
    if (visit(walker_->address()) || !walker_->step()) break;
  }
}

std::optional<std::string> SafePoints::inside(pid_t tid) {
  if (!Tasks::registers(tid, &walker_->registers)) return "its end";
  bool waits = false;
  std::optional<std::string> found;
  walk([&](uint64_t address) {
    const Object* object = walker_->object_at(address);
    if (object == nullptr) return false;
    for (const Range& range : object->passes) {
      if (range.holds(address)) return false;
    }
    for (const Range& range : object->waits) waits |= range.holds(address);
    if (object->care == Care::kAll || (object->care == Care::kAllButWaiting && !waits)) {
      found = object->name;
    }
    for (const Guarded& guarded : object->guarded) {
      if (!found && guarded.code.holds(address)) {
        found = fmt::format("{} of {}", guarded.name, object->name);
      }
    }
    return found.has_value();
  });
  return found;
}

SafePoints::Calm SafePoints::calm(pid_t tid) {
  if (!Tasks::registers(tid, &walker_->registers)) return Calm::kUnknown;
  const int64_t number = current_call(walker_->registers, memory_);
  if (number < 0) return Calm::kUnknown;
  if (std::ranges::count(kWaiting, number) + std::ranges::count(kOwnWaitingCalls, number) > 0) {
    return Calm::kWaits;
  }
  if (number == SYS_nanosleep || number == SYS_clock_nanosleep) return Calm::kSleeps;
  bool waits = false;
  if (number != SYS_futex) return Calm::kUnknown;
  walk([&](uint64_t address) {
    const Object* object = walker_->object_at(address);
    if (object == nullptr) return true;
    for (const Range& range : object->waits) waits |= range.holds(address);
    return waits;
  });
  return waits ? Calm::kSleeps : Calm::kUnknown;
}

}  // namespace mtrace::process
