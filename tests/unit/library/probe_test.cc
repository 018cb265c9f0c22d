#include "base/probe.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/process.h"
#include "concurrent.h"
#include "pages.h"

namespace mtrace::base {
namespace {

// Where a filter refuses futex, the wait lets other threads run: sched_yield is called.
TEST(WaitOn, YieldsWhereItIsRefused) {
  const auto wait_filtered = [] {
    constexpr auto kNumber = static_cast<unsigned>(offsetof(seccomp_data, nr));
    sock_filter filter[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, kNumber},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_futex},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EACCES},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_sched_yield},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    const sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      return 2;
    }
    const uint32_t word = 0;
    wait_on(word, 0, 1'000'000);
    return 1;
  };
  const int status = status_in_child(wait_filtered);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << status;
}

// Two readable pages, then one that is not, then one that is.
class Probe : public testing::Test {
 protected:
  void SetUp() override {
    memory_ = static_cast<char*>(
        mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory_, MAP_FAILED);
    memset(memory_, 'x', 4 * kPage);
    ASSERT_EQ(mprotect(memory_ + 2 * kPage, kPage, PROT_NONE), 0);
    errno = 4711;
  }
  void TearDown() override {
    EXPECT_EQ(errno, 4711);
    munmap(memory_, 4 * kPage);
  }
  uintptr_t at(size_t offset) const { return reinterpret_cast<uintptr_t>(memory_) + offset; }
  char* memory_ = nullptr;
};

TEST_F(Probe, TellsWhatCanBeRead) {
  EXPECT_TRUE(readable(at(0), 2 * kPage));
  EXPECT_TRUE(readable(at(2 * kPage - 1), 1));
  EXPECT_TRUE(readable(at(3 * kPage), kPage));
  EXPECT_TRUE(readable(at(2 * kPage), 0));
  EXPECT_FALSE(readable(at(2 * kPage - 1), 2));
  EXPECT_FALSE(readable(at(2 * kPage), 1));
  EXPECT_FALSE(readable(at(0), 4 * kPage));
  EXPECT_FALSE(readable(0, 1));
  EXPECT_FALSE(readable(~uintptr_t{0} - 8, 8));
  EXPECT_FALSE(readable(uintptr_t{1} << 47, 1));
  EXPECT_FALSE(readable(at(0), ~size_t{0}));
}

TEST_F(Probe, TellsWhatIsMapped) {
  EXPECT_TRUE(mapped(at(0), 4 * kPage));
  EXPECT_TRUE(mapped(at(2 * kPage), 1)) << "whatever its protection";
  ASSERT_EQ(munmap(memory_ + kPage, kPage), 0);
  EXPECT_TRUE(mapped(at(0), kPage));
  EXPECT_FALSE(mapped(at(0), kPage + 1));
  EXPECT_FALSE(mapped(at(kPage - 1), 2));
  EXPECT_FALSE(mapped(at(0), 4 * kPage));
  EXPECT_FALSE(mapped(at(kPage), 1));
  EXPECT_TRUE(mapped(at(2 * kPage), 2 * kPage));
}

TEST_F(Probe, ReadsAllOrNothing) {
  char to[16];
  EXPECT_TRUE(read_memory(at(2 * kPage - sizeof to), to, sizeof to));
  EXPECT_EQ(memcmp(to, memory_, sizeof to), 0);
  EXPECT_FALSE(read_memory(at(2 * kPage - sizeof to + 1), to, sizeof to));
  EXPECT_FALSE(read_memory(at(3 * kPage - 1), to, 2));
  uintptr_t word = 0;
  EXPECT_TRUE(read_word(at(2 * kPage - 8), &word));
  EXPECT_EQ(word, 0x7878787878787878u);
  EXPECT_FALSE(read_word(8, &word));
  EXPECT_FALSE(read_word(~uintptr_t{0}, &word));
}

TEST_F(Probe, ReadsStringsUpToTheEdge) {
  char to[kPage + 64];
  EXPECT_FALSE(read_string(at(2 * kPage - 5), to, sizeof to));
  memory_[2 * kPage - 1] = '\0';
  EXPECT_TRUE(read_string(at(2 * kPage - 5), to, sizeof to));
  EXPECT_STREQ(to, "xxxx");
  EXPECT_FALSE(read_string(at(2 * kPage - 5), to, 4));
  EXPECT_TRUE(read_string(at(2 * kPage - 5), to, 5));
  EXPECT_TRUE(read_string(at(kPage - 2), to, sizeof to));
  EXPECT_EQ(strlen(to), kPage + 1);
}

// In a sandbox that allows no process_vm_readv. In a child, because a filter stays.
int read_in_sandbox(const char* memory) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{4, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    return 2;
  }
  const auto edge = reinterpret_cast<uintptr_t>(memory) + 2 * kPage;
  uintptr_t word = 0;
  const bool good = read_word(edge - 8, &word) && word == 0x7878787878787878u &&
                    !read_word(edge, &word) && !read_word(edge - 4, &word) && !read_word(0, &word);
  return good ? 0 : 1;
}

TEST_F(Probe, ReadsWithoutTheSystemCallForIt) {
  const int status = status_in_child([&] { return read_in_sandbox(memory_); });
  if (status == 2) GTEST_SKIP() << "no seccomp filters here";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace mtrace::base
