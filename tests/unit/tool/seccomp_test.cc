// What a filter of system calls makes of a call, judged without running it; the kernel has the last
// word.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "process/inspect/system_calls.h"
#include "tool_test.h"

namespace mtrace::test {
namespace {

using process::FilteredCall;
using process::judge;
using process::Verdict;
using Filter = std::vector<sock_filter>;

sock_filter statement(int code, uint32_t k) { return {static_cast<uint16_t>(code), 0, 0, k}; }
sock_filter jump(int code, uint32_t k, uint8_t jt, uint8_t jf) {
  return {static_cast<uint16_t>(code), jt, jf, k};
}
sock_filter load(size_t offset) {
  return statement(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
}
sock_filter answer(uint32_t what) { return statement(BPF_RET | BPF_K, what); }

constexpr size_t kNumber = offsetof(seccomp_data, nr);
constexpr size_t argument(int n) { return offsetof(seccomp_data, args) + 8 * n; }
constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
constexpr uint32_t kOther = 999;

FilteredCall call(uint32_t number) { return {"", number, true}; }

// What the kernel does in a child with the filter: "0", an errno, or the signal that ended it.
std::string kernel(const Filter& filter, long number, const std::array<long, 3>& arguments) {
  const pid_t child = ::fork();
  if (child == 0) {
    const sock_fprog program = {static_cast<uint16_t>(filter.size()),
                                const_cast<sock_filter*>(filter.data())};
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) ::_exit(255);
    const long result = ::syscall(number, arguments[0], arguments[1], arguments[2]);
    ::_exit(result < 0 ? errno : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                             : std::to_string(WEXITSTATUS(status));
}

// As a container's: the architecture, a refusal by flags of clone, one by number; else allowed.
const Filter kContainer = {load(offsetof(seccomp_data, arch)),
                           jump(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
                           answer(SECCOMP_RET_KILL_PROCESS),
                           load(kNumber),
                           jump(BPF_JMP | BPF_JEQ | BPF_K, SYS_mount, 5, 0),
                           jump(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 0, 3),
                           load(argument(0)),
                           statement(BPF_ALU | BPF_AND | BPF_K, 0xff),
                           jump(BPF_JMP | BPF_JGT | BPF_K, 7, 1, 0),
                           answer(SECCOMP_RET_ALLOW),
                           answer(kRefuse)};

TEST(Seccomp, OfAContainer) {
  EXPECT_EQ(judge(kContainer, call(SYS_openat)), Verdict::kAllowed);
  EXPECT_EQ(judge(kContainer, call(SYS_mount)), Verdict::kFails);
  EXPECT_EQ(judge(kContainer, call(SYS_personality)), Verdict::kFails) << "of some arguments";
  EXPECT_EQ(judge(kContainer, {"", SYS_personality, true, 0, 0x100}), Verdict::kAllowed);
  EXPECT_EQ(judge(kContainer, {"", SYS_personality, true, 0, 0x108}), Verdict::kFails);
  EXPECT_EQ(kernel(kContainer, SYS_getppid, {}), "0");
  EXPECT_EQ(kernel(kContainer, SYS_mount, {}), std::to_string(EPERM));
  EXPECT_EQ(kernel(kContainer, SYS_personality, {0x100}), "0");
  EXPECT_EQ(kernel(kContainer, SYS_personality, {0x108}), std::to_string(EPERM));
}

// Each operation on known words, also in the kernel.
TEST(Seccomp, ComputesAsTheKernelDoes) {
  const auto computed = [](int operation, uint32_t a, uint32_t b) {
    return Filter{statement(BPF_LD | BPF_IMM, b), statement(BPF_ST, 3),
                  statement(BPF_LD | BPF_IMM, a), statement(BPF_LDX | BPF_MEM, 3),
                  statement(BPF_ALU | operation | (operation == BPF_NEG ? BPF_K : BPF_X), 0)};
  };
  struct Case {
    int operation;
    uint32_t a, b, result;
  };
  for (const Case& one : std::vector<Case>{{BPF_ADD, 0x7ffffff0, 0x10, 0x80000000},
                                           {BPF_SUB, 5, 6, 0xffffffff},
                                           {BPF_MUL, 0x10000, 0x10001, 0x10000},
                                           {BPF_DIV, 17, 5, 3},
                                           {BPF_OR, 5, 3, 7},
                                           {BPF_AND, 5, 3, 1},
                                           {BPF_XOR, 5, 3, 6},
                                           {BPF_LSH, 3, 31, 0x80000000},
                                           {BPF_RSH, 0x80000000, 31, 1},
                                           {BPF_NEG, 1, 0, 0xffffffff}}) {
    Filter filter = computed(one.operation, one.a, one.b);
    filter.insert(filter.end(), {jump(BPF_JMP | BPF_JEQ | BPF_K, one.result, 1, 0), answer(kRefuse),
                                 answer(SECCOMP_RET_ALLOW)});
    EXPECT_EQ(judge(filter, call(kOther)), Verdict::kAllowed) << one.operation;
    EXPECT_EQ(kernel(filter, SYS_getppid, {}), "0") << one.operation;
  }
}

TEST(Seccomp, WhateverIsNotAnAnswerEndsIt) {
  for (const uint32_t what : {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP,
                              SECCOMP_RET_TRACE, SECCOMP_RET_USER_NOTIF, 0x12340000u}) {
    EXPECT_EQ(judge({answer(what)}, call(kOther)), Verdict::kEnds) << what;
  }
  EXPECT_EQ(judge({answer(SECCOMP_RET_LOG)}, call(kOther)), Verdict::kAllowed);
  // What it returns hangs on an argument; it runs off its end; it branches without end.
  EXPECT_EQ(judge({load(argument(1)), statement(BPF_RET | BPF_A, 0)}, call(kOther)),
            Verdict::kEnds);
  EXPECT_EQ(judge({load(kNumber)}, call(kOther)), Verdict::kEnds);
  Filter endless = {load(argument(1))};
  for (int i = 0; i < 60; ++i)
    endless.push_back(jump(BPF_JMP | BPF_JSET | BPF_K, 1u << (i % 32), 0, 0));
  endless.push_back(answer(SECCOMP_RET_ALLOW));
  EXPECT_EQ(judge(endless, call(kOther)), Verdict::kEnds);
}

// The names of system calls in a source.
std::set<std::string> calls_in(const std::filesystem::path& path) {
  const std::vector<std::string> names = matches(read_file(path), "SYS_([a-z0-9_]+)");
  return {names.begin(), names.end()};
}

// No call of the library's is forgotten, by memlog or by the library's own list.
TEST(Seccomp, KnowsTheCallsOfTheLibrary) {
  std::set<std::string> known;
  for (const FilteredCall& one : process::filtered_calls()) known.insert(one.name);
  const auto library = std::filesystem::path(source_dir()) / "src/libmtrace";
  std::set<std::string> listed = calls_in(library / "base/filters.cc");
  listed.insert({"exit", "mlockall"});  // of a helper that ends; the program's
  for (const char* folder : {"base", "modules", "unwind", "python", "ledger", "events", "report",
                             "next", "record", "life", "entry"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(library / folder)) {
      // What these name are the program's calls, and those of a child at the start.
      const std::string name = entry.path().filename();
      const std::set<std::string> kOthers = {"filter_hooks.cc", "system_call_hook.cc",
                                             "filters.cc"};
      if (entry.is_directory() || kOthers.contains(name)) {
        continue;
      }
      for (const std::string& call : calls_in(entry.path())) {
        EXPECT_TRUE(known.contains(call)) << entry.path() << ": " << call;
        EXPECT_TRUE(listed.contains(call)) << entry.path() << ": " << call;
      }
    }
  }
}

}  // namespace
}  // namespace mtrace::test
