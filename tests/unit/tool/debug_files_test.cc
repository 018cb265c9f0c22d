// Where names come from: the file itself, its symbol table, separate debug files, other machines.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "resolve_fixture.h"
#include "tool_test.h"

namespace mtrace::test {
namespace {

using DebugFiles = Resolve;

TEST_F(DebugFiles, StrippedKeepsTheAddresses) {
  const std::string file = build("known", "-fPIE -pie");
  const auto frames = frames_at_marks(file, file);
  shell("strip {}", file);
  EXPECT_EQ(resolve(frames, module_line(file, build_id_of(file))), frames);
  EXPECT_TRUE(says("# resolved: no\n"));
  EXPECT_FALSE(says("# note:"));
}

TEST_F(DebugFiles, SymbolTableAloneGivesFunctions) {
  const std::string file = build("known", "-g0");
  const auto lines = resolve(frames_at_marks(file, file), module_line(file, build_id_of(file)));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_TRUE(lines[0].starts_with("app::Store::grow(long, char const*)\t(")) << lines[0];
  EXPECT_TRUE(lines[4].starts_with("plain_c\t(")) << lines[4];
  EXPECT_TRUE(says("# resolved: yes\n"));
}

TEST_F(DebugFiles, DebuglinkBesideTheFile) {
  const std::string file = build("known", "-fPIE -pie");
  const auto frames = frames_at_marks(file, file);
  const auto marks = marks_of(file);
  shell(
      "cd {} && objcopy --only-keep-debug known known.debug && strip known && "
      "objcopy --add-gnu-debuglink=known.debug known",
      directory_.path());
  expect_known(resolve(frames, module_line(file, build_id_of(file))), file, marks);
  // A debug file of another build is not believed.
  shell(
      "cd {} && echo 'int main() {{}}' | {} -O1 -g -xc++ -o other - && "
      "objcopy --only-keep-debug other known.debug",
      directory_.path(), compiler());
  EXPECT_EQ(resolve(frames, module_line(file, build_id_of(file))), frames);
}

TEST_F(DebugFiles, DebuglinkWithoutBuildIdInSymbolsDirectory) {
  const std::string file = build("known", "-Wl,--build-id=none");
  const auto frames = frames_at_marks(file, file);
  const auto marks = marks_of(file);
  shell(
      "cd {} && mkdir sym && objcopy --only-keep-debug known sym/k.dbg && "
      "strip known && objcopy --add-gnu-debuglink=sym/k.dbg known",
      directory_.path());
  EXPECT_EQ(resolve(frames, module_line(file, "")), frames);
  expect_known(resolve(frames, module_line(file, ""), {"--symbols", directory_ / "sym"}), file,
               marks);
}

// Below the directory of --symbols, with the path of the module or the end of it.
TEST_F(DebugFiles, DebuglinkBelowTheSymbolsDirectory) {
  const std::string file = build("known", "-Wl,--build-id=none");
  const auto frames = frames_at_marks(file, file);
  const auto marks = marks_of(file);
  shell(
      "cd {} && objcopy --only-keep-debug known k.dbg && strip known && "
      "objcopy --add-gnu-debuglink=k.dbg known",
      directory_.path());
  for (const std::string& below :
       {directory_.path(), "/" + std::filesystem::path(directory_.path()).filename().string()}) {
    const std::string place = directory_ / "sym" + below;
    shell("mkdir -p {0} && cp {1}/k.dbg {0}", place, directory_.path());
    shell("mv {0}/k.dbg {0}/k.away", directory_.path());
    expect_known(resolve(frames, module_line(file, ""), {"--symbols", directory_ / "sym"}), file,
                 marks);
    shell("mv {0}/k.away {0}/k.dbg && rm -r {0}/sym", directory_.path());
  }
}

// It is large, and of no use without a server.
TEST_F(DebugFiles, DebuginfodIsLoadedOnlyWhereTheEnvironmentNamesAServer) {
  if (::dlopen("libdebuginfod.so.1", RTLD_LAZY) == nullptr) GTEST_SKIP() << "no libdebuginfod";
  const std::string file = build("known", "-g0 -fPIE -pie");
  const std::string report = directory_ / "report.memlog";
  write_file(report, small_memlog({fmt::format("({}+0x1000)", file)}));
  const auto loads = [&](const std::string& servers) {
    return shell("DEBUGINFOD_URLS={} LD_DEBUG=files {}/memlog resolve -o /dev/null {} 2>&1",
                 servers, build_dir(), report)
               .find("libdebuginfod") != std::string::npos;
  };
  EXPECT_FALSE(loads(""));
  EXPECT_TRUE(loads("http://127.0.0.1:1"));
}

// Moves the debugging information to DIR/.build-id/xx/yyyy.debug.
void move_to_build_id(const std::string& file, const std::string& directory) {
  const std::string id = build_id_of(file);
  const std::string target = directory + "/.build-id/" + id.substr(0, 2);
  shell("mkdir -p {0} && objcopy --only-keep-debug {1} {0}/{2}.debug && strip {1}", target, file,
        id.substr(2));
}

TEST_F(DebugFiles, BuildIdInSymbolsDirectory) {
  const std::string file = build("known", "-fPIE -pie");
  const auto frames = frames_at_marks(file, file);
  const auto marks = marks_of(file);
  move_to_build_id(file, directory_ / "sym");
  const std::string module = module_line(file, build_id_of(file));
  EXPECT_EQ(resolve(frames, module), frames);
  expect_known(resolve(frames, module, {"--symbols", "/tmp", "--symbols", directory_ / "sym"}),
               file, marks);
  // The module itself is not even needed.
  std::filesystem::remove(file);
  EXPECT_EQ(resolve(frames, module), frames);
  expect_known(resolve(frames, module, {"--symbols", directory_ / "sym"}), file, marks);
}

// libdebuginfod reads file:// addresses like those of a server.
TEST_F(DebugFiles, DebuginfodWhereTheEnvironmentNamesIt) {
  if (::dlopen("libdebuginfod.so.1", RTLD_LAZY) == nullptr) GTEST_SKIP() << "no libdebuginfod";
  const std::string file = build("known", "-fPIE -pie");
  const auto frames = frames_at_marks(file, file);
  const auto marks = marks_of(file);
  const std::string id = build_id_of(file);
  const std::string served = directory_ / "server/buildid/" + id;
  shell(
      "mkdir -p {0} && objcopy --only-keep-debug {1} {0}/debuginfo && strip {1} && "
      "cp {1} {0}/executable",
      served, file);
  EXPECT_EQ(resolve(frames, module_line(file, id)), frames);
  ::setenv("DEBUGINFOD_URLS", ("file://" + (directory_ / "server/")).c_str(), 1);
  ::setenv("DEBUGINFOD_CACHE_PATH", (directory_ / "cache").c_str(), 1);
  expect_known(resolve(frames, module_line(file, id)), file, marks);
  // Also when the file itself is gone.
  std::filesystem::remove(file);
  expect_known(resolve(frames, module_line(file, id)), file, marks);
  ::unsetenv("DEBUGINFOD_URLS");
  ::unsetenv("DEBUGINFOD_CACHE_PATH");
}

TEST_F(DebugFiles, Sysroot) {
  const std::string file = build("known", "-fPIE -pie");
  const auto marks = marks_of(file);
  const auto frames = frames_at_marks("/opt/app/known", file);
  std::filesystem::create_directories(directory_ / "root/opt/app");
  std::filesystem::rename(file, directory_ / "root/opt/app/known");
  const std::string module =
      module_line("/opt/app/known", build_id_of(directory_ / "root/opt/app/known"));
  EXPECT_EQ(resolve(frames, module), frames);
  expect_known(resolve(frames, module, {"--sysroot", directory_ / "root"}), "/opt/app/known",
               marks);
}

TEST_F(DebugFiles, ChangedModuleIsNotMisnamed) {
  const std::string file = build("known", "-fPIE -pie");
  const auto frames = frames_at_marks(file, file);
  const std::string right = build_id_of(file);
  const std::string wrong(right.size(), '0');
  const std::string note = fmt::format(
      "# note: {} is not the file it was (its build-id differs): its frames have no names\n", file);
  EXPECT_EQ(resolve(frames, module_line(file, wrong)), frames);
  EXPECT_TRUE(says(note + "# module:"));
  EXPECT_TRUE(says("# resolved: no\n"));
  // Once for each module, however often it is resolved.
  const std::string first = text_;
  EXPECT_EQ(memlog({"resolve", directory_ / "report.memlog"}).status, 0);
  EXPECT_EQ(read_file(directory_ / "report.memlog"), first);
  // When the right file is there again, the note goes.
  std::string again = first;
  again.replace(again.find(wrong), wrong.size(), right);
  write_file(directory_ / "report.memlog", again);
  EXPECT_EQ(memlog({"resolve", directory_ / "report.memlog"}).status, 0);
  text_ = read_file(directory_ / "report.memlog");
  EXPECT_FALSE(says("# note:"));
  EXPECT_TRUE(says("# resolved: yes\n"));
}

TEST_F(DebugFiles, AgainGivesTheSameAndNeverLess) {
  const std::string file = build("known", "-fPIE -pie");
  const auto known = resolve(frames_at_marks(file, file), module_line(file, build_id_of(file)));
  const std::string first = text_;
  EXPECT_EQ(memlog({"resolve", directory_ / "report.memlog"}).status, 0);
  EXPECT_EQ(read_file(directory_ / "report.memlog"), first);
  shell("strip {}", file);
  EXPECT_EQ(memlog({"resolve", directory_ / "report.memlog"}).status, 0);
  EXPECT_EQ(read_file(directory_ / "report.memlog"), first);
  std::filesystem::remove(file);
  EXPECT_EQ(memlog({"resolve", directory_ / "report.memlog"}).status, 0);
  EXPECT_EQ(read_file(directory_ / "report.memlog"), first);
}

}  // namespace
}  // namespace mtrace::test
