// Interprets a system call filter (seccomp(2), a classic BPF program) for a given call. Where an
// unknown word decides, it takes both branches, and the worst result counts. Bounded time.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/types.h>

#include "util/prelude.h"

namespace mtrace::process {

enum class Verdict : uint8_t {
  kAllowed,
  kFails,  // with an error
  kEnds,   // ends the process; or a signal, a tracer or another process decides; or it takes too
           // long to tell
};

// A system call and what is known of it.
struct SystemCall {
  uint32_t number;
  uint32_t known;  // bit i: arguments[i] is known
  uint64_t arguments[6];
};

namespace internal {

struct BpfWord {
  uint32_t value;
  bool known;
};

struct BpfMachine {
  uint32_t at;
  uint32_t set;  // bit i: memory[i] is known
  BpfWord a;
  BpfWord x;
  uint32_t memory[BPF_MEMWORDS];
};

#ifdef __aarch64__
inline constexpr uint32_t kNativeArch = AUDIT_ARCH_AARCH64;
#else
inline constexpr uint32_t kNativeArch = AUDIT_ARCH_X86_64;
#endif

// Returns what the filter reads at an offset of seccomp_data.
inline BpfWord data_at(uint32_t offset, const SystemCall& call) {
  if (offset == offsetof(seccomp_data, nr)) return {call.number, true};
  if (offset == offsetof(seccomp_data, arch)) return {kNativeArch, true};
  constexpr uint32_t kFirst = offsetof(seccomp_data, args);
  if (offset < kFirst || offset >= sizeof(seccomp_data) || offset % sizeof(uint32_t) != 0) {
    return {};
  }
  const uint32_t argument = (offset - kFirst) / sizeof(uint64_t);
  const bool high = (offset - kFirst) % sizeof(uint64_t) != 0;
  const uint64_t value = call.arguments[argument] >> (high ? 32 : 0);
  return {static_cast<uint32_t>(value), (call.known >> argument & 1) != 0};
}

inline BpfWord compute(uint16_t operation, BpfWord a, BpfWord b) {
  if (operation == BPF_NEG) return {-a.value, a.known};
  if (!a.known || !b.known) return {};
  switch (operation) {
    case BPF_ADD:
      return {a.value + b.value, true};
    case BPF_SUB:
      return {a.value - b.value, true};
    case BPF_MUL:
      return {a.value * b.value, true};
    case BPF_DIV:
      return b.value == 0 ? BpfWord{} : BpfWord{a.value / b.value, true};
    case BPF_OR:
      return {a.value | b.value, true};
    case BPF_AND:
      return {a.value & b.value, true};
    case BPF_XOR:
      return {a.value ^ b.value, true};
    case BPF_LSH:
      return {a.value << (b.value & 31), true};
    case BPF_RSH:
      return {a.value >> (b.value & 31), true};
    default:
      return {};
  }
}

enum class Branch : uint8_t { kNo, kYes, kBoth };

inline Branch compare(uint16_t operation, BpfWord a, BpfWord b) {
  if (!a.known || !b.known) return Branch::kBoth;
  switch (operation) {
    case BPF_JEQ:
      return a.value == b.value ? Branch::kYes : Branch::kNo;
    case BPF_JGT:
      return a.value > b.value ? Branch::kYes : Branch::kNo;
    case BPF_JGE:
      return a.value >= b.value ? Branch::kYes : Branch::kNo;
    case BPF_JSET:
      return (a.value & b.value) != 0 ? Branch::kYes : Branch::kNo;
    default:
      return Branch::kBoth;
  }
}

inline Verdict verdict_of(BpfWord result) {
  if (!result.known) return Verdict::kEnds;
  switch (result.value & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
    case SECCOMP_RET_LOG:
      return Verdict::kAllowed;
    case SECCOMP_RET_ERRNO:
      return Verdict::kFails;
    default:
      return Verdict::kEnds;
  }
}

// Runs a load or store. Returns false for an instruction that filters do not have.
inline bool move(const sock_filter& code, const SystemCall& call, BpfMachine& machine) {
  const uint16_t kind = BPF_CLASS(code.code);
  if (kind == BPF_ST || kind == BPF_STX) {
    if (code.k >= BPF_MEMWORDS) return false;
    const BpfWord word = kind == BPF_ST ? machine.a : machine.x;
    machine.memory[code.k] = word.value;
    machine.set = (machine.set & ~(1u << code.k)) | uint32_t{word.known} << code.k;
    return true;
  }
  BpfWord& target = kind == BPF_LDX ? machine.x : machine.a;
  switch (BPF_MODE(code.code)) {
    case BPF_IMM:
      target = {code.k, true};
      return true;
    case BPF_ABS:
      target = data_at(code.k, call);
      return kind != BPF_LDX;
    case BPF_LEN:
      target = {sizeof(seccomp_data), true};
      return true;
    case BPF_MEM:
      if (code.k >= BPF_MEMWORDS) return false;
      target = {machine.memory[code.k], (machine.set >> code.k & 1) != 0};
      return true;
    default:
      return false;
  }
}

}  // namespace internal

// Returns the worst result that one filter can give a call.
inline Verdict judge(const sock_filter* filter, size_t length, const SystemCall& call) {
  constexpr size_t kWays = 1024;         // branches at a time; more count as kEnds
  constexpr size_t kMostSteps = 100000;  // over all branches
  internal::BpfMachine ways[kWays];
  ways[0] = {0, 0, {0, true}, {0, true}, {}};
  size_t open = 1;
  auto worst = Verdict::kAllowed;
  for (size_t steps = 0; open != 0; ++steps) {
    internal::BpfMachine& way = ways[open - 1];
    if (way.at >= length || steps == kMostSteps) return Verdict::kEnds;
    const sock_filter& code = filter[way.at++];
    const internal::BpfWord other =
        BPF_SRC(code.code) == BPF_X ? way.x : internal::BpfWord{code.k, true};
    switch (BPF_CLASS(code.code)) {
      case BPF_RET: {
        const Verdict end = internal::verdict_of(
            BPF_RVAL(code.code) == BPF_A ? way.a : internal::BpfWord{code.k, true});
        if (end == Verdict::kEnds) return end;
        if (end > worst) worst = end;
        --open;
        break;
      }
      case BPF_ALU:
        way.a = internal::compute(BPF_OP(code.code), way.a, other);
        break;
      case BPF_MISC:
        if (BPF_MISCOP(code.code) == BPF_TAX) {
          way.x = way.a;
        } else {
          way.a = way.x;
        }
        break;
      case BPF_JMP:
        if (BPF_OP(code.code) == BPF_JA) {
          way.at += code.k;
          break;
        }
        switch (internal::compare(BPF_OP(code.code), way.a, other)) {
          case internal::Branch::kYes:
            way.at += code.jt;
            break;
          case internal::Branch::kNo:
            way.at += code.jf;
            break;
          case internal::Branch::kBoth:
            if (open == kWays) return Verdict::kEnds;
            ways[open] = way;
            ways[open++].at += code.jf;
            way.at += code.jt;
        }
        break;
      default:
        if (!internal::move(code, call, way)) return Verdict::kEnds;
    }
  }
  return worst;
}

// Filters of system calls (seccomp(2)) in other processes, and whether they allow what attaching
// calls.

// Restrictions of other processes' system calls.

// Returns the largest number of seccomp filters (seccomp(2)) that a thread of the process has; 1 in
// strict mode, or where the kernel does not tell the number; 0: none, or the process is gone.
uint32_t system_call_filters(pid_t pid);

// The system calls that seccomp filters must allow in a process that memlog attaches to.

struct FilteredCall {
  const char* name;
  uint32_t number;
  bool needed;        // false: the library works without it, so it may fail
  int argument = -1;  // index of the argument with a known value below 2^32; -1: none
  uint32_t value = 0;
};

// Returns the calls that the library, its loading and the borrowed thread's code may make.
const std::vector<FilteredCall>& filtered_calls();

// Checks whether a process's system call filters (seccomp(2)) allow the calls that attaching and
// the library make. A filter is a classic BPF program. It is interpreted here; where unknown
// arguments decide, both branches are taken.

// Returns the worst result that the filter can give a call.
Verdict judge(const std::vector<sock_filter>& filter, const FilteredCall& call);

// Returns the mode of a thread; 0: none, 1: strict mode, 2: filters.
int seccomp_mode(pid_t pid, pid_t tid);

// Throws AttachError when a thread is in strict mode. Reads a file of /proc for each thread, so
// call it before the threads are stopped.
void refuse_strict_mode(pid_t pid);

// Checks the filters of stopped threads. Throws AttachError when a filter ends the process at a
// call, refuses a needed call, or may not be read (only root may read filters), and of threads that
// hand over their calls to the program (prctl(2), PR_SET_SYSCALL_USER_DISPATCH), which Linux tells
// since 6.4.
void check_filters(pid_t pid, const std::vector<pid_t>& stopped);

// Returns whether no filter of a stopped thread stands in the way of restart_syscall(2), with which
// the kernel continues poll, nanosleep and others after a stop. False of filters that may not be
// read.
bool may_restart(pid_t pid, pid_t tid);

// Throws SignalKills when a filter of one of these threads, stopped, does not let a signal handler
// return. Filters that may not be read are taken to let it.
void check_signal_return(pid_t pid, const std::vector<pid_t>& stopped);

}  // namespace mtrace::process
