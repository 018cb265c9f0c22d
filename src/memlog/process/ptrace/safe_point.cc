#include "process/ptrace/safe_point.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "cfi/frame_registers.h"
#include "cfi/row.h"
#include "process/inspect/process.h"
#include "process/inspect/system_calls.h"
#include "process/inspect/target_objects.h"
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

SafePoints::SafePoints(const TargetMemory& memory, std::vector<Object> objects,
                       const Restarts& restarts)
    : memory_(memory),
      objects_(std::move(objects)),
      restarts_(restarts),
      walk_(memory_, objects_) {}

template <typename Visit>
void SafePoints::visit_frames(user_regs_struct registers, const Visit& visit) {
  restarts_.leave(&registers);
  walk_.begin(registers);
  for (unsigned frame = 0; frame < kMostFrames; ++frame) {
    const Object* object = walk_.object();
    if (visit(walk_.address(), object) || !walk_.step(object)) break;
  }
}

std::optional<std::string> SafePoints::inside(pid_t tid) {
  user_regs_struct registers;
  if (!Tasks::registers(tid, &registers)) return "its end";
  bool waits = false;
  std::optional<std::string> found;
  visit_frames(registers, [&](uint64_t address, const Object* object) {
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
  user_regs_struct registers;
  if (!Tasks::registers(tid, &registers)) return Calm::kUnknown;
  const int64_t number = current_call(registers, memory_);
  if (number < 0) return Calm::kUnknown;
  if (std::ranges::count(kWaiting, number) + std::ranges::count(kOwnWaitingCalls, number) > 0) {
    return Calm::kWaits;
  }
  if (number == SYS_nanosleep || number == SYS_clock_nanosleep) return Calm::kSleeps;
  bool waits = false;
  if (number != SYS_futex) return Calm::kUnknown;
  visit_frames(registers, [&](uint64_t address, const Object* object) {
    if (object == nullptr) return true;
    for (const Range& range : object->waits) waits |= range.holds(address);
    return waits;
  });
  return waits ? Calm::kSleeps : Calm::kUnknown;
}

namespace {

constexpr int kCaught[] = {SIGINT, SIGTERM, SIGHUP};

volatile std::sig_atomic_t g_caught = 0;
bool g_catching = false;
thread_local int t_uninterrupted = 0;

void on_signal(int signal) { g_caught = signal; }

std::atomic<int> g_outlives = 0;

// 0: none.
int waiting_signal() {
  sigset_t pending;
  if (::sigpending(&pending) != 0) return 0;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    if (sigismember(&pending, signal) == 1) return signal;
  }
  return 0;
}

struct sigaction g_before[std::size(kCaught)];

}  // namespace

bool interrupted() { return t_uninterrupted == 0 && (g_caught != 0 || waiting_signal() != 0); }

void end_if_interrupted() {
  const int signal = g_outlives == 0 ? waiting_signal() : 0;
  if (signal == 0) return;
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

void check_interruption() {
  if (interrupted()) throw AttachError("is left alone: a signal has interrupted memlog");
}

void catch_interruption() {
  if (g_catching) return;
  g_catching = true;
  for (size_t i = 0; i < std::size(kCaught); ++i) {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    ::sigaction(kCaught[i], nullptr, &g_before[i]);
    if (g_before[i].sa_handler != SIG_IGN) ::sigaction(kCaught[i], &action, nullptr);
  }
}

void stop_catching() {
  if (!g_catching) return;
  g_catching = false;
  for (size_t i = 0; i < std::size(kCaught); ++i) ::sigaction(kCaught[i], &g_before[i], nullptr);
}
int caught_signal() { return g_caught; }

Uninterrupted::Uninterrupted() { ++t_uninterrupted; }
Uninterrupted::~Uninterrupted() { --t_uninterrupted; }

Outlives::Outlives() { ++g_outlives; }
Outlives::~Outlives() { --g_outlives; }
namespace {

bool blocks(pid_t pid, pid_t tid, int signal) {
  const std::string mask = task_status(pid, tid, "SigBlk");
  return mask.empty() || (std::strtoull(mask.c_str(), nullptr, 16) >> (signal - 1) & 1) != 0;
}

}  // namespace

void send_held(pid_t pid, int signal, const std::function<bool()>& is_same,
               std::chrono::milliseconds timeout) {
  // Without a cave there is no room for restart code, so calls with a time limit end early. The
  // signal itself ends them early, too.
  const TargetMemory memory(pid);
  Restarts restarts(pid, memory, {});
  Tasks tasks(pid, restarts);
  if (!tasks.stop_all(Clock::now() + timeout)) throw AttachError(tasks.trouble());
  if (!is_same()) throw AttachError("has executed another program (exec)");
  check_signal_return(pid, tasks.stopped());
  for (const pid_t tid : tasks.stopped()) {
    if (!blocks(pid, tid, signal) && ::syscall(SYS_tgkill, pid, tid, signal) == 0) return;
  }
  throw AttachError("blocks the signal in every thread");
}

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
