// What somebody else may have planted: names that hold newlines and escapes of terminals, programs
// that are called as the tool is. (Links and files in the place of reports: output_test.cc;
// raised privileges: coverage_test.cc.)
#include "host_test.h"
#include "shell.h"

namespace mtrace::test {
namespace {

class SecurityTest : public HostTest {
 protected:
  // A library whose functions have the name `symbol`, at `path`.
  void make_plugin(const std::string& path, const std::string& symbol) {
    shell(
        "cd {0} && g++ -g0 -O1 -fPIC -fno-builtin -c -o plugin.o "
        "{1}/tests/programs/plugin_first.cc "
        "&& objcopy --redefine-sym site_first={2} plugin.o && g++ -shared -o plugin.so plugin.o",
        temp(), source_dir(), symbol);
    fs::rename(temp() + "/plugin.so", path);
  }
  // A program that leaves a mark when it runs.
  void plant(const std::string& path) {
    write_script(path, "#!/bin/sh\n: > " + mark_ + "\nexec /bin/true\n");
  }
  const std::string mark_ = temp() + "/was-executed";
};

TEST_F(SecurityTest, NamesOfFunctionsAndLibraries) {
  const std::string evil =
      "x\n# end\n+999999\tblocks=+1\tlive=1\tstack=0\n\033]0;owned\007\033[31mred";
  // As long as a path may be, in pieces as long as a name may be.
  std::string directory = temp() + "/d\n# end\033[2J";
  while (directory.size() + 210 < 4000) directory += "/" + std::string(200, 'n');
  fs::create_directories(directory);
  const std::string path = directory + "/p\n\t(\033[31m#2.so";
  ASSERT_NO_FATAL_FAILURE(make_plugin(path, evil));
  const std::vector<Memlog> logs = reports_of(named({program("shortage"), path}), 4);
  bool seen = false;
  for (const Memlog& log : logs) {
    for (const Entry& entry : log.entries) {
      EXPECT_NE(entry.bytes, 999999);
      for (const Frame& frame : entry.frames)
        seen |= frame.function.starts_with("x\\x0a# end\\x0a");
    }
  }
  EXPECT_TRUE(seen) << "the function was not named: this shows nothing";
  for (const Words& words : std::vector<Words>{{"show", logs[1].path},
                                               {"show", "--sum", logs[0].path},
                                               {"show", "--json", logs[1].path}}) {
    const Result shown = expect_exit(memlog(words));
    for (const char byte : shown.out + shown.err) {
      const auto code = static_cast<unsigned char>(byte);
      ASSERT_TRUE(code >= 0x20 || byte == '\n' || byte == '\t') << words[1] << ": byte " << +code;
      ASSERT_NE(code, 0x7f);
    }
  }
}

// The tool is looked for beside the library, and nowhere else.
TEST_F(SecurityTest, ToolIsNotLookedForByPath) {
  fs::create_directories(temp() + "/lib");
  fs::copy_file(library(), temp() + "/lib/libmtrace.so");
  plant(temp() + "/memlog");
  Command command =
      named({program("exits"), "return"},
            {{"LD_PRELOAD", temp() + "/lib/libmtrace.so"}, {"PATH", temp() + ":/usr/bin:/bin"}});
  command.directory = temp();
  expect_exit(run(command), 11);
  EXPECT_FALSE(fs::exists(mark_));
}

// In another root the tool's path is somebody else's program.
TEST_F(SecurityTest, AnotherRoot) {
  const std::string root = temp() + "/root";
  fs::create_directories(root + out());
  fs::create_directories(root + "/bin");
  fs::create_directories(root + build_dir());
  fs::create_directories(root + temp());
  // A program that runs without libraries, so that nothing but its identity keeps it from running.
  write_file(temp() + "/mark.c", "#include <fcntl.h>\nint main(void) { return open(\"" + mark_ +
                                     "\", O_CREAT | O_WRONLY, 0600) < 0; }\n");
  shell("gcc -static -o {} {}", root + memlog_tool(), temp() + "/mark.c");
  const Result result = run(named({program("sandboxes"), "chroot", root}));
  if (result.out.find("wrong: chroot") != std::string::npos)
    GTEST_SKIP() << "chroot is not allowed";
  expect_exit(result);
  EXPECT_FALSE(fs::exists(root + mark_));
  const auto inside = read_directory(root + out());
  ASSERT_EQ(inside.size(), 1u);
  EXPECT_EQ(inside.begin()->second.size(), 2u);
}

}  // namespace
}  // namespace mtrace::test
