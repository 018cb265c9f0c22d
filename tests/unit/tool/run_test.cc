// memlog run: that a program cannot tell it from being run directly, and what is said at its end.
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
#include <regex>
#include <utility>

#include "model/profile/reader.h"
#include "process/inspect/process.h"
#include "process/run/preload.h"
#include "tool_test.h"
#include "view/reports/catalog.h"

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
  std::vector<reports::Listed> reports() { return reports::list_memlogs(directory_.path()); }

  TemporaryDirectory directory_;
};

TEST_F(Run, KeepsArgumentsStreamsAndStatus) {
  EXPECT_EQ(script("echo in | $run -q sh -c 'cat; echo \"$0|$1|$2|$#\"; echo err >&2; exit 7' a "
                   "'b  c' ''  --help -q 2>err; echo $?; cat err"),
            "in\na|b  c||4\n7\nerr\n");
  EXPECT_EQ(reports().size(), 1u);
}

TEST_F(Run, HandsOptionsToTheLibrary) {
  EXPECT_EQ(
      script("MTRACE_DEPTH=4 MTRACE_ENTRIES=all $memlog run -q --depth=7 --signal USR2 -o new "
             "--follow 'sh:x*' --sample 64K -- sh -c 'echo $MTRACE_DEPTH $MTRACE_SIGNAL "
             "$MTRACE_OUTPUT $MTRACE_FOLLOW $MTRACE_SAMPLE $MTRACE_ENTRIES' 2>/dev/null"),
      fmt::format("7 USR2 {}/new/ sh:x* 65536 all\n", directory_.path()));
  EXPECT_TRUE(std::filesystem::is_directory(directory_ / "new"));
}

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

// A directory that the program can write to no longer, as one that gave up its privileges. The
// fallback is this test's own, since TMPDIR comes before /tmp.
TEST_F(Run, SaysWhereReportsWentInstead) {
  const std::string out =
      script("mkdir tmp && TMPDIR=$PWD/tmp $memlog run -o reports -- rmdir reports");
  EXPECT_HAS(out, "\npeak ");
  EXPECT_LACKS(out, "raw system call");
  EXPECT_HAS(out, "\nreports: " + directory_.path() + "/tmp/rmdir-");
  EXPECT_HAS(out, "\ncould not write to reports: No such file or directory; 1 report is in " +
                      directory_.path() + "/tmp\n");
}

TEST_F(Run, CountsWhatItsChildrenWroteElsewhere) {
  const std::string out = script(
      "mkdir tmp && TMPDIR=$PWD/tmp $memlog run -o reports -- sh -c 'rmdir reports; ls; true'");
  EXPECT_HAS(
      out, "\n3 processes have reported, those with the most resident memory first, shells last\n");
  EXPECT_HAS(out, "\ncould not write to reports: No such file or directory; 3 reports are in ");
}

TEST_F(Run, MissingDirectoryIsNoName) {
  const std::string out =
      script("mkdir tmp && TMPDIR=$PWD/tmp MTRACE_OUTPUT=$PWD/no/such $memlog run -- true; ls tmp");
  EXPECT_TRUE(
      out.starts_with(fmt::format("mtrace: cannot write reports to {0}/no/such: no such "
                                  "directory; using {0}/tmp\n",
                                  directory_.path())))
      << out;
  EXPECT_HAS(out, "/tmp/true-");
  EXPECT_HAS(out, "could not write to " + directory_.path() +
                      "/no/such: No such file or directory; 1 report is in ");
  EXPECT_LACKS(out, "such-");
}

TEST_F(Run, SaysWhichWayReportsGoOnceForATree) {
  const std::string out = script(
      "mkdir tmp && TMPDIR=$PWD/tmp MTRACE_OUTPUT=$PWD/no/such MTRACE_DEPHT=3 $memlog run -q -- "
      "sh -c 'ls >/dev/null; sh -c \"ls >/dev/null; ls -l >/dev/null\"; true'");
  EXPECT_EQ(out, fmt::format("mtrace: MTRACE_DEPHT is not an option (memlog help options)\n"
                             "mtrace: cannot write reports to {0}/no/such: no such directory; "
                             "using {0}/tmp\n",
                             directory_.path()));
}

TEST_F(Run, ThePageIsNamedAsTheReports) {
  const std::string out = script(
      "ln -s $(command -v perl) nap && $memlog run -o . ./nap -e 'select undef, undef, undef, "
      "0.4'");
  EXPECT_TRUE(
      std::regex_search(out, std::regex("export -f html -o (nap-[0-9]+)\\.html \\1-1\\.memlog\n")))
      << out;
}

// Where they cannot be written; also without a summary.
TEST_F(Run, SaysWhichReportsLackNames) {
  script("MTRACE_RESOLVER=none $memlog run -q --output . perl -e 1; mv perl-*.memlog raw");
  const uintmax_t raw = std::filesystem::file_size(directory_ / "raw");
  const std::string out =
      script(fmt::format("MTRACE_EXIT_WAIT=0 bash -c 'ulimit -f {}; '\"$memlog run -q --output . "
                         "perl -e 1\"; ls perl-*.memlog",
                         raw * 5 / 4 / 1024));
  const std::string name = out.substr(out.rfind("perl-"), out.rfind('\n') - out.rfind("perl-"));
  EXPECT_EQ(out, fmt::format("no names in {0}: it could not be replaced: File too large; memlog "
                             "resolve {0} adds them\n{0}\n",
                             name));
  EXPECT_EQ(script("rm perl-*; MTRACE_EXIT_WAIT=0 $memlog run -q --output . perl -e 1; grep -l "
                   "'resolved: no' perl-* || true"),
            "");
  EXPECT_EQ(script("rm perl-*; MTRACE_RESOLVER=none $memlog run -q --output . perl -e 1"), "")
      << "as it was asked to";
}

// Also those of the processes that the program started, and what came before the end.
TEST_F(Run, NamesWhatTheLibraryCouldNot) {
  EXPECT_EQ(script("MTRACE_RESOLVER=/bin/false MTRACE_NAME_AFTER_MS=0 $run -q -- sh -c 'kill -USR1 "
                   "$$; for i in 1 2 3 4; do sh -c :; done; :'; grep -l 'resolved: no' *.memlog || "
                   "true"),
            "");
  EXPECT_EQ(reports().size(), 6u);
}

TEST_F(Run, SaysWhichSignalKilled) {
  const std::string out = script("$run -q sh -c 'kill -SEGV $$'; echo $?");
  EXPECT_HAS(out, " was killed by SIGSEGV (Segmentation fault) after ");
  EXPECT_HAS(out, "\n139\n");
  // Not only the number: memlog itself has ended by the signal.
  EXPECT_EQ(script("python3 -c 'import subprocess, sys; print(subprocess.call(sys.argv[1:], "
                   "stderr=subprocess.DEVNULL))' $run -q sh -c 'kill -ABRT $$'"),
            "-6\n");
}

TEST_F(Run, PassesSignalsOn) {
  EXPECT_EQ(script("mkfifo pipe; $run -q sh -c 'trap \"echo hup\" HUP; trap \"echo term; exit 5\" "
                   "TERM; echo ready; while :; do sleep 0.01; done' >pipe & exec 3<pipe; "
                   "read a <&3; kill -HUP $!; read b <&3; kill -TERM $!; read c <&3; wait $!; "
                   "echo $a $b $c $?"),
            "ready hup term 5\n");
}

// Ctrl-C reaches the program once, by the terminal: memlog, which passes SIGTERM on, has passed
// SIGINT on before if at all.
TEST_F(Run, LeavesTheTerminalsSignalsToTheTerminal) {
  write_file(directory_ / "terminal.py", ctrl_c_script(1, "text.count(b'interrupted'), status"));
  EXPECT_EQ(
      script("python3 terminal.py $run -q sh -c 'trap \"echo interrupted; n=x\" INT; echo ready; "
             "while [ -z \"$n\" ]; do sleep 0.01; done; trap \"t=x\" TERM; kill -TERM $PPID; "
             "while [ -z \"$t\" ]; do sleep 0.01; done; exit 6'"),
      "1 6\n");
}

TEST_F(Run, KeepsMaskAndDispositions) {
  const std::string direct =
      shell("sh -c 'trap \"\" HUP; grep -E \"Sig(Blk|Ign)\" /proc/self/status'");
  EXPECT_EQ(script("trap \"\" HUP; $run -q --follow 0 grep -E 'Sig(Blk|Ign)' /proc/self/status"),
            direct);
}

TEST_F(Run, AsksForReportsFromTimeToTime) {
  script(
      // One process, whose reports at the end do not come before it has been asked.
      "$memlog run --output . -q --every 100ms perl -e 'select(undef, undef, undef, 0.02) "
      "while (() = glob(\"*.memlog\")) < 3'");
  size_t by_request = 0;
  for (const reports::Listed& listed : reports()) {
    by_request += profile::read_path(listed.path).header.trigger == "request";
  }
  EXPECT_GE(by_request, 2u);
}

TEST_F(Run, SumsUpAtTheEnd) {
  const std::string out =
      script("$memlog run -o . " + shell_quoted(program("accounting")) + " >/dev/null");
  const std::vector<reports::Listed> all = reports();
  ASSERT_FALSE(all.empty()) << out;
  profile::Memlog last;
  for (const reports::Listed& listed : all) {
    profile::Memlog memlog = profile::read_path(listed.path);
    if (memlog.header.trigger == "exit") last = std::move(memlog);
  }
  EXPECT_HAS(out, " ended with status 0 after ");
  EXPECT_HAS(out, fmt::format("\npeak {} bytes at ", last.header.peak.value().bytes));
  EXPECT_HAS(out, fmt::format("\nlive at exit {} bytes in {} block", last.header.live.bytes,
                              last.header.live.blocks));
  EXPECT_HAS(out, "site_some_kept < main");
  EXPECT_LACKS(out, "leak");
}

TEST_F(Run, SaysWhenThereIsNothingToRun) {
  EXPECT_EQ(script("$run ./gone; echo $?"),
            "memlog: run: ./gone: No such file or directory\n127\n");
  EXPECT_EQ(script("$run .; echo $?"), "memlog: run: .: a directory\n126\n");
  write_file(directory_ / "text", "hello\n");
  EXPECT_EQ(script("$run ./text; echo $?"), "memlog: run: ./text: Permission denied\n126\n");
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
