// Parts of memlog run that have no command of their own. What it does and says:
// transcripts/run.txt and run_end.txt.
#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <utility>

#include "process/inspect/process.h"
#include "process/run/launch.h"
#include "tool_test.h"

namespace mtrace::test {
namespace {

class Run : public testing::Test {
 protected:
  // The output of a shell script in the test's directory, where `run` is memlog run with reports
  // of sh alone; stderr is among it.
  std::string script(const std::string& text) {
    return shell(
        "exec 2>&1; cd {} && memlog={}/memlog && run=\"$memlog run --output . --follow sh\"; {}",
        directory_.path(), build_dir(), Script{text});
  }

  TemporaryDirectory directory_;
};

TEST_F(Run, PreloadsInFrontOfWhatIsPreloaded) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer ends a memlog before which something else is preloaded";
#endif
  const std::string library = test::library();
  EXPECT_EQ(script("LD_PRELOAD=libm.so.6 $run -q sh -c 'echo $LD_PRELOAD'"),
            library + ":libm.so.6\n");
  EXPECT_EQ(
      script(fmt::format("LD_PRELOAD=libm.so.6:{0} $run -q sh -c 'echo $LD_PRELOAD'", library)),
      "libm.so.6:" + library + "\n");
}

TEST_F(Run, SaysWhatItDoesNotCover) {
  write_file(directory_ / "a.c", "int main(void) { return 3; }\n");
  const std::string out = script("gcc -static -o a a.c && $run ./a; echo $?");
  EXPECT_TRUE(
      out.starts_with("memlog: ./a is statically linked: libmtrace.so cannot be loaded "
                      "into it, so it runs untraced\nmemlog: ./a ("))
      << out;
  EXPECT_TRUE(out.ends_with("\n3\n")) << out;

  EXPECT_EQ(process::uncovered("/bin/sh").why, "");
  write_file(directory_ / "script", "#!" + (directory_ / "a") + " -x\n");
  EXPECT_EQ(process::uncovered(directory_ / "script").why,
            (directory_ / "a") + " is statically linked");
  for (const auto& [machine, why] :
       {std::pair(EM_386,
                  " is a 32-bit x86 program, which libmtrace.so, made for 64 bits, cannot trace"),
        std::pair(EM_X86_64,
                  " is an x32 program with 32-bit pointers, which libmtrace.so, made for 64 bits, "
                  "cannot trace"),
        std::pair(EM_ARM, " is built for another processor architecture than libmtrace.so")}) {
    Elf32_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS32;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_EXEC;
    header.e_machine = static_cast<Elf32_Half>(machine);
    header.e_version = EV_CURRENT;
    header.e_ehsize = sizeof header;
    write_file(directory_ / "short",
               std::string(reinterpret_cast<const char*>(&header), sizeof header));
    EXPECT_EQ(process::uncovered(directory_ / "short").why, (directory_ / "short") + why);
  }
  if (::getuid() != 0) GTEST_SKIP() << "not root: no set-uid program can be made";
  std::filesystem::copy_file("/bin/true", directory_ / "other");
  ASSERT_EQ(::chown((directory_ / "other").c_str(), 12345, 12345), 0);
  ASSERT_EQ(::chmod((directory_ / "other").c_str(), 04755), 0);
  EXPECT_EQ(process::uncovered(directory_ / "other").why, (directory_ / "other") + " is set-uid");
}

// As on Linux before 5.3.
TEST(ProcessHandle, NeedsNoPidfd) {
  const auto child_of_an_old_kernel = [] {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter = {4, code};
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return 1;
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) ::pause();
    }
    process::ProcessHandle handle(child);
    if (!handle.valid() || handle.wait_end(0) || !handle.send(0)) return 2;
    if (!handle.send(SIGTERM) || !handle.wait_end(-1)) return 3;
    int status = 0;
    if (::waitpid(child, &status, 0) != child || WTERMSIG(status) != SIGTERM) return 4;
    if (handle.send(0) || errno != ESRCH || !handle.wait_end(0)) return 5;
    const process::ProcessHandle none(child);
    return none.valid() || errno != ESRCH ? 6 : 0;
  };
  EXPECT_EXIT(::_exit(child_of_an_old_kernel()), testing::ExitedWithCode(0), "");
}

TEST(SignalNumber, IsTheInverseOfTheName) {
  for (int signal = 1; signal <= 64; ++signal) {
    if (signal == 9 || signal == 19 || signal == 32 || signal == 33) continue;
    EXPECT_EQ(process::signal_number(process::signal_name(signal)), signal);
    EXPECT_EQ(process::signal_number(std::to_string(signal)), signal);
  }
  EXPECT_EQ(process::signal_number("SIGUSR2"), 12);
  EXPECT_EQ(process::signal_number("RTMAX-1"), 63);
  EXPECT_EQ(process::signal_number("none"), 0);
  for (const char* bad : {"", "KILL", "SIGSTOP", "9", "65", "0", "RTMIN+40", "usr1", "SIG"}) {
    EXPECT_EQ(process::signal_number(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace mtrace::test
