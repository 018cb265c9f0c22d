// memlog attach on processes with a filter of system calls, as containers and services have them.
#include <linux/audit.h>

#include "host_test.h"
#include "seccomp_filter.h"

namespace mtrace::test {
namespace {

constexpr unsigned kRefuse = SECCOMP_RET_ERRNO | EPERM;

class AttachFilterTest : public HostTest {
 protected:
  Result memlog(const std::string& command, pid_t pid) const {
    return HostTest::memlog({command, std::to_string(pid)});
  }
  // Treats the listed calls in one way, clone by its flags, and all others in another.
  Command filtered(const std::vector<unsigned>& listed, unsigned then, unsigned otherwise,
                   Words argv = {program("attached"), "sites"}) const {
    std::vector<sock_filter> code = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x7e020000, 1, 0),  // new namespaces
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    for (const unsigned number : listed) answer_call(code, number, then);
    code.push_back(BPF_STMT(BPF_RET | BPF_K, otherwise));
    return under_filter(plain(argv), code);
  }
  // Attached to, asked, detached from, and counted right.
  void expect_attached(const Command& command) const {
    Ready process(command);
    for (const char* step : {"attach", "report", "detach"}) {
      if (step == std::string("report")) process.say("aap", "told");
      expect_exit(memlog(step, process.pid()));
    }
    EXPECT_EQ(only_log(process.pid()).amount("live"), (Amount{2 * 321, 2}));
    expect_exit(process.wait());
  }
  void expect_refused(const Command& command, const std::string& why) const {
    Ready process(command);
    EXPECT_HAS(expect_exit(memlog("attach", process.pid()), 1).err, why);
    expect_exit(process.wait());
  }
};

TEST_F(AttachFilterTest, ThatLetsItBe) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may look at filters";
  expect_attached(
      filtered({SYS_mount, SYS_ptrace, SYS_bpf, SYS_process_vm_readv}, kRefuse, SECCOMP_RET_ALLOW));
  // All of the first calls but a few, and none of the later.
  std::vector<unsigned> listed;
  for (unsigned number = 0; number < 150; ++number) listed.push_back(number);
  for (const unsigned number :
       {SYS_prctl,         SYS_arch_prctl, SYS_gettid,    SYS_futex,        SYS_set_tid_address,
        SYS_clock_gettime, SYS_exit_group, SYS_openat,    SYS_newfstatat,   SYS_unlinkat,
        SYS_renameat2,     SYS_readlinkat, SYS_faccessat, SYS_ppoll,        SYS_set_robust_list,
        SYS_prlimit64,     SYS_getrandom,  SYS_rseq,      SYS_memfd_create, SYS_tgkill}) {
    listed.push_back(number);
  }
  expect_attached(filtered(listed, SECCOMP_RET_ALLOW, kRefuse));
}

TEST_F(AttachFilterTest, ThatDoesNot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may look at filters";
  expect_refused(filtered({SYS_memfd_create}, kRefuse, SECCOMP_RET_ALLOW),
                 "has a system call filter (seccomp) that denies memfd_create");
  // The library installs a handler, so memlog looks at its way back, too.
  for (const auto& [number, then, name] :
       {std::tuple{SYS_renameat2, SECCOMP_RET_KILL_PROCESS, "renameat2"},
        {SYS_wait4, SECCOMP_RET_TRAP, "wait4"},
        {SYS_rt_sigreturn, SECCOMP_RET_KILL_PROCESS, "rt_sigreturn"}}) {
    expect_refused(filtered({static_cast<unsigned>(number)}, then, SECCOMP_RET_ALLOW),
                   std::string("has a system call filter (seccomp) that could kill it at ") + name);
  }
}

// A call that was interrupted goes on by no call that the filter does not let through.
TEST_F(AttachFilterTest, ThatEndsItAtWhatACallWouldGoOnWith) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may look at filters";
  Ready process(filtered({SYS_ppoll}, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW,
                         {"/usr/bin/python3", "-c", R"TEXT(
import ctypes, socket, struct
ours, its = socket.socketpair()
its.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack('ll', 1, 0))
libc = ctypes.CDLL(None, use_errno=True)
byte = ctypes.create_string_buffer(1)
print('ready', flush=True)
print(libc.recv(its.fileno(), byte, 1, 0), ctypes.get_errno(), flush=True)
)TEXT"}));
  wait_until_blocked(process.pid(), SYS_recvfrom);
  for (int round = 0; round < 3; ++round) {
    EXPECT_HAS(expect_exit(memlog("attach", process.pid()), 1).err, "could kill it at ppoll");
  }
  EXPECT_EQ(process.read_line(), "-1 " + std::to_string(EAGAIN));
  expect_exit(process.wait());
}

}  // namespace
}  // namespace mtrace::test
