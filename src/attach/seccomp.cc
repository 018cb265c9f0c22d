#include "attach/seccomp.h"

#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/ptrace.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "attach/error.h"
#include "attach/task_list.h"

namespace mtrace::attach {
namespace {

using Word = std::optional<uint32_t>;  // without a value: not known

struct Machine {
  size_t at = 0;
  Word a = 0;
  Word x = 0;
  std::array<Word, BPF_MEMWORDS> memory;
};

constexpr size_t kMostSteps = 100000;  // of all ways together

// What the filter finds at an offset of seccomp_data.
Word data_at(uint32_t offset, const FilteredCall& call) {
  if (offset == offsetof(seccomp_data, nr)) return call.number;
  if (offset == offsetof(seccomp_data, arch)) return AUDIT_ARCH_X86_64;
  if (call.argument < 0) return {};
  const size_t low = offsetof(seccomp_data, args) + call.argument * sizeof(uint64_t);
  if (offset == low) return call.value;
  return offset == low + sizeof(uint32_t) ? Word(0) : Word();
}

Word compute(uint16_t operation, Word a, Word b) {
  if (!a || !b) return {};
  switch (operation) {
    case BPF_ADD:
      return *a + *b;
    case BPF_SUB:
      return *a - *b;
    case BPF_MUL:
      return *a * *b;
    case BPF_DIV:
      return *b == 0 ? Word() : Word(*a / *b);
    case BPF_OR:
      return *a | *b;
    case BPF_AND:
      return *a & *b;
    case BPF_XOR:
      return *a ^ *b;
    case BPF_LSH:
      return *a << (*b & 31);
    case BPF_RSH:
      return *a >> (*b & 31);
    case BPF_NEG:
      return -*a;
    default:
      return {};
  }
}

std::optional<bool> compare(uint16_t operation, Word a, Word b) {
  if (!a || !b) return {};
  switch (operation) {
    case BPF_JEQ:
      return *a == *b;
    case BPF_JGT:
      return *a > *b;
    case BPF_JGE:
      return *a >= *b;
    case BPF_JSET:
      return (*a & *b) != 0;
    default:
      return {};
  }
}

Verdict verdict_of(Word result) {
  if (!result) return Verdict::kEnds;
  switch (*result & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
    case SECCOMP_RET_LOG:
      return Verdict::kAllowed;
    case SECCOMP_RET_ERRNO:
      return Verdict::kFails;
    default:
      return Verdict::kEnds;
  }
}

// Loads and stores. False: an instruction that filters do not have.
bool move(const sock_filter& code, const FilteredCall& call, Machine& machine) {
  const bool to_x = BPF_CLASS(code.code) == BPF_LDX;
  Word& target = to_x ? machine.x : machine.a;
  switch (BPF_CLASS(code.code)) {
    case BPF_ST:
    case BPF_STX:
      if (code.k >= BPF_MEMWORDS) return false;
      machine.memory[code.k] = BPF_CLASS(code.code) == BPF_ST ? machine.a : machine.x;
      return true;
    default:
      break;
  }
  switch (BPF_MODE(code.code)) {
    case BPF_IMM:
      target = code.k;
      return true;
    case BPF_ABS:
      target = data_at(code.k, call);
      return !to_x;
    case BPF_LEN:
      target = sizeof(seccomp_data);
      return true;
    case BPF_MEM:
      if (code.k >= BPF_MEMWORDS) return false;
      target = machine.memory[code.k];
      return true;
    default:
      return false;
  }
}

constexpr int kStrict = 1;
constexpr int kFilters = 2;

// Of a thread.
int seccomp_mode(pid_t pid, pid_t tid) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/status", pid, tid));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Seccomp:")) return std::atoi(line.c_str() + sizeof "Seccomp:");
  }
  return 0;
}

// Of a stopped thread. The kernel says at once that it has no filters, to root; its text takes
// twenty times as long.
bool has_filters(pid_t pid, pid_t tid) {
  if (::ptrace(PTRACE_SECCOMP_GET_FILTER, tid, 0, nullptr) >= 0) return true;
  return errno != EINVAL && seccomp_mode(pid, tid) == kFilters;
}

// The filter that was added as the last but `number`. Empty: there is none.
std::vector<sock_filter> filter_of(pid_t tid, uint64_t number) {
  std::vector<sock_filter> filter(BPF_MAXINSNS);
  const long length = ::ptrace(PTRACE_SECCOMP_GET_FILTER, tid, number, filter.data());
  if (length < 0 && errno != ENOENT) {
    throw AttachError(
        "has a filter of system calls (seccomp), which only root may look at and which could end "
        "it");
  }
  filter.resize(length < 0 ? 0 : static_cast<size_t>(length));
  return filter;
}

void check_filter(const std::vector<sock_filter>& filter) {
  for (const FilteredCall& call : filtered_calls()) {
    const Verdict verdict = judge(filter, call);
    if (verdict == Verdict::kAllowed || (verdict == Verdict::kFails && !call.needed)) continue;
    throw AttachError(fmt::format("has a filter of system calls (seccomp) that {} {}",
                                  verdict == Verdict::kEnds ? "could end it at" : "refuses it",
                                  call.name));
  }
}

}  // namespace

Verdict judge(const std::vector<sock_filter>& filter, const FilteredCall& call) {
  Verdict worst = Verdict::kAllowed;
  std::vector<Machine> ways(1);
  size_t steps = 0;
  while (!ways.empty()) {
    Machine& way = ways.back();
    if (way.at >= filter.size() || ++steps > kMostSteps) return Verdict::kEnds;
    const sock_filter& code = filter[way.at++];
    const Word other = BPF_SRC(code.code) == BPF_X ? way.x : Word(code.k);
    switch (BPF_CLASS(code.code)) {
      case BPF_RET:
        worst = std::max(worst, verdict_of(BPF_RVAL(code.code) == BPF_A ? way.a : Word(code.k)));
        ways.pop_back();
        break;
      case BPF_ALU:
        way.a = compute(BPF_OP(code.code), way.a, other);
        break;
      case BPF_MISC:
        (BPF_MISCOP(code.code) == BPF_TAX ? way.x : way.a) =
            BPF_MISCOP(code.code) == BPF_TAX ? way.a : way.x;
        break;
      case BPF_JMP:
        if (BPF_OP(code.code) == BPF_JA) {
          way.at += code.k;
        } else if (const auto yes = compare(BPF_OP(code.code), way.a, other)) {
          way.at += *yes ? code.jt : code.jf;
        } else {
          Machine no = way;
          no.at += code.jf;
          way.at += code.jt;
          ways.push_back(no);
        }
        break;
      default:
        if (!move(code, call, way)) return Verdict::kEnds;
    }
  }
  return worst;
}

void refuse_strict_mode(pid_t pid) {
  for (const pid_t tid : all_tasks(pid)) {
    if (seccomp_mode(pid, tid) != kStrict) continue;
    throw AttachError("is in strict mode of seccomp: any system call would end it");
  }
}

void check_filters(pid_t pid, const std::vector<pid_t>& stopped) {
  std::vector<sock_filter> checked;  // most threads have the same
  for (const pid_t tid : stopped) {
    const bool filtered = has_filters(pid, tid);
    for (uint64_t number = 0; filtered; ++number) {
      std::vector<sock_filter> filter = filter_of(tid, number);
      if (filter.empty()) break;
      const auto same = [](const sock_filter& a, const sock_filter& b) {
        return a.code == b.code && a.jt == b.jt && a.jf == b.jf && a.k == b.k;
      };
      if (std::equal(filter.begin(), filter.end(), checked.begin(), checked.end(), same)) continue;
      check_filter(filter);
      checked = std::move(filter);
    }
  }
}

}  // namespace mtrace::attach
