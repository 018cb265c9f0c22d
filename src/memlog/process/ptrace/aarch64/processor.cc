#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>

#include "process/inspect/process.h"
#include "process/ptrace/held_process.h"
#include "process/ptrace/tasks.h"

namespace mtrace::process {
namespace {

constexpr uint64_t kCallSize = 4;

bool is_call_at(uint64_t address, const TargetMemory& memory) {
  constexpr uint32_t kCall = 0xd4000001;  // svc #0
  uint32_t code = 0;
  return memory.read(address, &code, sizeof code) && code == kCall;
}

}  // namespace

void take_registers(const user_regs_struct& registers, cfi::FrameRegisters* frame) {
  for (unsigned i = 0; i < std::size(registers.regs); ++i) frame->set(i, registers.regs[i]);
  frame->set(cfi::kSp, registers.sp);
  frame->set(cfi::kPc, registers.pc);
}

// A call that begins again stands before its instruction; one that has ended with EINTR, behind it.
int64_t current_call(const user_regs_struct& registers, const TargetMemory& memory) {
  const bool ended = static_cast<int64_t>(registers.regs[0]) == -EINTR &&
                     is_call_at(registers.pc - kCallSize, memory);
  return ended || is_call_at(registers.pc, memory) ? static_cast<int64_t>(registers.regs[8]) : -1;
}

const std::span<const int64_t> kOwnWaitingCalls;

// See restarts.h: calls that end with EINTR stay as they are; all others the kernel begins again.

Restarts::Restarts(pid_t pid, const TargetMemory& memory, Range) : pid_(pid), memory_(memory) {}

uint64_t Restarts::code_size() { return 0; }
void Restarts::use_library(uint64_t) {}
void Restarts::settle(pid_t) {}
void Restarts::renew(pid_t) {}
bool Restarts::leave(user_regs_struct*) const { return false; }

namespace {

// Hidden: gas and ld of binutils 2.40 lose what is added to a section in references by the GOT.
#pragma GCC visibility push(hidden)
extern "C" {
extern const char mtrace_stub_begin[];
extern const char mtrace_stub_command[];
extern const char mtrace_stub_end[];
extern const char mtrace_stub_last[];
}
#pragma GCC visibility pop

// The stack pointer is at the frame for rt_sigreturn. System calls: mmap (222), ppoll (73) to wait
// for memlog, munmap (215), getpid (172) as a place to be stopped at, rt_sigreturn (139). After an
// interruption none of them needs restart_syscall(2), as nanosleep does: the kernel remembers one
// such call per thread, and that is the program's.
asm(R"(
  .pushsection .rodata, "a"
  .balign 4
mtrace_stub_begin:
  mov x8, #222
  mov x0, #0
  mov x1, #0x80000
  mov x2, #3
  mov x3, #0x22
  mov x4, #-1
  mov x5, #0
  svc #0
  mov x20, x0
  mov x21, sp
  mov x29, xzr
  cmn x20, #4095
  b.cs 1f
  add x9, x20, #0x80, lsl #12
  mov sp, x9
  msr fpcr, xzr
1:
  mov x8, #73
  mov x0, #0
  mov x1, #0
  add x2, x20, #64
  mov x3, #0
  mov x4, #0
  cmn x20, #4095
  b.cs 4f
  mov x9, #1
  stp x9, xzr, [x2]
4:
  svc #0
mtrace_stub_command:
  cmn x20, #4095
  b.cs 3f
  ldr x9, [x20]
  cbz x9, 2f
  str xzr, [x20]
  ldp x0, x1, [x20, #8]
  ldr x2, [x20, #24]
  blr x9
  str x0, [x20, #32]
  mov w9, #1
  add x10, x20, #40
  stlr w9, [x10]
  b 1b
2:
  mov sp, x21
  mov x8, #215
  mov x0, x20
  mov x1, #0x80000
  svc #0
3:
  mov x8, #172
  svc #0
mtrace_stub_end:
  mov x8, #139
  svc #0
mtrace_stub_last:
  .popsection
)");

uint64_t stub_offset(const char* place) { return static_cast<uint64_t>(place - mtrace_stub_begin); }

// What the kernel reads at rt_sigreturn (arch/arm64/kernel/signal.c, struct rt_sigframe).
struct SignalFrame {
  siginfo_t info;
  ucontext_t context;
};
static_assert(sizeof(SignalFrame) == 128 + 464 + 4096);

constexpr uint64_t kRedZone = 128;

// Appends records to the frame's context (sigcontext.h of the kernel).
class Records {
 public:
  explicit Records(mcontext_t& context)
      : at_(reinterpret_cast<char*>(context.__reserved)), end_(at_ + sizeof context.__reserved) {}

  // The size of its content in memory is rounded up to 16 bytes, as that of all records. Returns
  // nullptr where it has no room; the last 16 bytes are those of the record that ends them.
  template <typename Record>
  Record* add(uint32_t magic, size_t more = 0) {
    const size_t size = (sizeof(Record) + more + 15) & ~size_t{15};
    if (size + 16 > static_cast<size_t>(end_ - at_)) return nullptr;
    auto* record = reinterpret_cast<Record*>(at_);
    record->head = {magic, static_cast<uint32_t>(size)};
    at_ += size;
    return record;
  }

 private:
  char* at_;
  char* end_;
};

void add_vectors(Records& records, const std::string& simple, const std::string& scalable) {
  user_fpsimd_struct simd = {};
  if (simple.size() >= sizeof simd) std::memcpy(&simd, simple.data(), sizeof simd);
  auto* record = records.add<fpsimd_context>(FPSIMD_MAGIC);
  record->fpsr = simd.fpsr;
  record->fpcr = simd.fpcr;
  std::memcpy(record->vregs, simd.vregs, sizeof record->vregs);
  // The set's head (struct user_sve_header of the kernel): two sizes, the length of a vector, its
  // limit, flags. Behind it are the registers as in the record, if they are in use.
  constexpr size_t kHead = 16;
  constexpr uint16_t kInUse = 1;
  uint16_t length = 0;
  uint16_t flags = 0;
  if (scalable.size() < kHead) return;
  std::memcpy(&length, scalable.data() + 8, sizeof length);
  std::memcpy(&flags, scalable.data() + 12, sizeof flags);
  if ((flags & kInUse) == 0) return;
  const size_t size = size_t{32} * length + size_t{17} * (length / 8);
  auto* vectors = records.add<sve_context>(SVE_MAGIC, size);
  if (vectors == nullptr || scalable.size() < kHead + size) return;
  vectors->vl = length;
  std::memcpy(reinterpret_cast<char*>(vectors) + sizeof *vectors, scalable.data() + kHead, size);
}

// Whether the kernel may continue the call by restart_syscall(2).
bool has_restart_block(int64_t number) {
  return number == SYS_nanosleep || number == SYS_clock_nanosleep || number == SYS_futex;
}

}  // namespace

const StubPlaces& stub_places() {
  static const StubPlaces places = {stub_offset(mtrace_stub_command), stub_offset(mtrace_stub_end)};
  return places;
}

const uint64_t kStubRoom = sizeof(SignalFrame) + kRedZone + 16;

size_t stub_size() { return stub_offset(mtrace_stub_last); }

StubStart stub_start(pid_t tid, const user_regs_struct& before, uint64_t mask, uint64_t code) {
  StubStart start = {before, std::string(mtrace_stub_begin, mtrace_stub_last)};
  const std::string simple = Tasks::register_set(tid, NT_FPREGSET);
  start.vectors = Tasks::register_set(tid, NT_ARM_SVE);
  start.vector_set = start.vectors.empty() ? NT_FPREGSET : NT_ARM_SVE;
  SignalFrame frame = {};
  mcontext_t& context = frame.context.uc_mcontext;
  std::copy(std::begin(before.regs), std::end(before.regs), context.regs);
  context.sp = before.sp;
  context.pc = before.pc;
  context.pstate = before.pstate;
  std::memcpy(&frame.context.uc_sigmask, &mask, sizeof mask);
  Records records(context);
  add_vectors(records, simple, start.vectors);
  if (start.vectors.empty()) start.vectors = simple;
  start.frame_at = (before.sp - kRedZone - sizeof frame) & ~uint64_t{15};
  start.frame.assign(reinterpret_cast<const char*>(&frame), sizeof frame);
  start.registers.sp = start.frame_at;
  go_to(code, &start.registers);
  return start;
}

bool is_stub_code(const std::string& bytes) {
  return bytes == std::string_view(mtrace_stub_begin, stub_size());
}

uint64_t stub_scratch(const user_regs_struct& registers) { return registers.regs[20]; }

// At stops for system calls the kernel shows in x7 which they are: 0 before the call, 1 after it.
bool enters_call(const user_regs_struct& registers) { return registers.regs[7] == 0; }

// Without the type of the last branch: a branch to code that must be landed on in a certain way.
void go_to(uint64_t address, user_regs_struct* registers) {
  constexpr uint64_t kBranchType = 0xc00;
  registers->pc = address;
  registers->pstate &= ~kBranchType;
}

// The kernel puts the number of restart_syscall into x8 after this stop only, and the thread stops
// again as it begins the call. The call is then left out, and begun later.
void show_restart(Tasks& tasks, const TargetMemory& memory, pid_t tid, user_regs_struct* before,
                  Clock::time_point deadline) {
  const bool ended = static_cast<int64_t>(before->regs[0]) == -EINTR;
  if (ended || !has_restart_block(current_call(*before, memory))) return;
  uint64_t mask = 0;
  Tasks::signal_mask(tid, &mask);
  Tasks::set_signal_mask(tid, ~uint64_t{0});
  const bool stopped = tasks.run_to_system_call(tid, deadline);
  user_regs_struct now = {};
  if (!stopped || !Tasks::registers(tid, &now)) throw AttachError("has ended");
  int none = -1;
  iovec call = {&none, sizeof none};
  ::ptrace(PTRACE_SETREGSET, tid, NT_ARM_SYSTEM_CALL, &call);
  before->regs[8] = now.regs[8];
  Tasks::set_registers(tid, *before);
  Tasks::set_signal_mask(tid, mask);
}

}  // namespace mtrace::process
