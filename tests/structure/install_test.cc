// make install, make uninstall and make deb: what is there afterwards, and that it works where it
// was put.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>

#include "expect.h"
#include "install_fixture.h"
#include "process.h"

namespace mtrace::test {
namespace {

namespace fs = std::filesystem;

constexpr char kProgram[] =
    "#include <mtrace.h>\n"
    "#include <stdlib.h>\n"
    "static void* kept;\n"
    "int main(void) {\n"
    "  kept = malloc(4321);\n"
    "  return mtrace_report_label(\"ready\") == 1 && kept != NULL ? 7 : 1;\n"
    "}\n";

class InstallTest : public InstallFixture {
 protected:
  // Files and links below the root, by path, with their mode.
  std::map<std::string, unsigned> files() const {
    std::map<std::string, unsigned> found;
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      if (entry.is_directory()) continue;
      const auto mode = entry.symlink_status().permissions();
      found[entry.path().string().substr(root_.size())] = static_cast<unsigned>(mode);
    }
    return found;
  }
  // Compiles a program with what pkg-config says, runs it by the tool and library below the root,
  // and reads its report.
  void expect_works(const std::string& prefix) const {
    write_file(temp_ / "app.c", kProgram);
    const std::string pc = good("find \"$ROOT\" -name mtrace.pc");
    ASSERT_NE(pc, "");
    good("cd \"$TMP\"; export PKG_CONFIG_PATH=" + fs::path(pc).parent_path().string() +
         " PKG_CONFIG_SYSROOT_DIR=\"$ROOT\" PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1\n"
         "gcc -g -O0 -Wall -Werror $(pkg-config --cflags mtrace) -o app app.c");
    const std::string tool = "\"$ROOT\"" + prefix + "/bin/memlog";
    const Result result = expect_exit(
        shell("cd \"$TMP\"; MTRACE_EXIT_WAIT=600 " + tool + " run --output reports ./app"), 7);
    EXPECT_HAS(result.err, "main");
    const std::string shown = good(tool + " show --no-resolve $TMP/reports/app-*-1.memlog");
    EXPECT_HAS(shown, "ready");
    EXPECT_HAS(shown, "+4321");
    // The library has found the tool, which has filled the names in.
    EXPECT_HAS(shown, "main");
  }

  // systemd takes the unit and the drop-in, and they name files of the package.
  void expect_units() const {
    const std::string unit = root_ + "/usr/lib/systemd/system/memlog-serve.service";
    const std::string text = read_file(unit);
    EXPECT_HAS(text, "\nExecStart=/usr/bin/memlog serve ");
    EXPECT_LACKS(text, std::string("@") + "PREFIX");
    const std::string conf = read_file(root_ + "/usr/share/doc/mtrace/doc/systemd/mtrace.conf");
    const std::string library = lines_of(good("cd \"$ROOT\"; ls usr/lib/*/libmtrace.so")).at(0);
    EXPECT_HAS(conf, "LD_PRELOAD=/" + library + "\n");
    if (!fs::exists("/usr/bin/systemd-analyze")) {
      GTEST_SKIP() << "systemd is not installed: its units were not verified";
    }
    good("cd \"$TMP\"; mkdir -p units/app.service.d; cp " + unit +
         " units\n"
         "sed -i \"s|=/usr/bin/memlog|=$ROOT/usr/bin/memlog|\" units/memlog-serve.service\n"
         "printf '[Service]\\nExecStart=/bin/true\\n' >units/app.service\n"
         "cp \"$ROOT/usr/share/doc/mtrace/doc/systemd/mtrace.conf\" units/app.service.d\n"
         "SYSTEMD_UNIT_PATH=\"$TMP/units:\" systemd-analyze verify --man=no --recursive-errors=no "
         "units/memlog-serve.service units/app.service 2>&1 | tee verify; test ! -s verify");
    // 0 is locked away, 10 is free to do all; root that reads other processes is no less than this.
    good(
        "cd \"$TMP\"; systemd-analyze security --offline=yes --threshold=35 "
        "units/memlog-serve.service");
  }
};

TEST_F(InstallTest, InstallsWhatWorksAndTakesItAwayAgain) {
  good("make -s install BUILD=\"$BUILD\" DESTDIR=\"$ROOT\"");
  const auto installed = files();
  const auto mode_of = [&](const std::string& end) {
    for (const auto& [path, mode] : installed) {
      if (path.ends_with(end)) return mode;
    }
    return 0u;
  };
  EXPECT_EQ(mode_of("/usr/local/bin/memlog"), 0755u);
  EXPECT_EQ(mode_of("/libmtrace.so"), 0755u);
  EXPECT_EQ(mode_of("/mtrace/memlog-replay"), 0755u);
  for (const char* end : {"/include/mtrace.h",
                          "/include/mtrace_gtest.h",
                          "/include/mtrace_resources.h",
                          "/man1/memlog.1",
                          "/man5/memlog.5",
                          "/man7/libmtrace.7",
                          "/man3/mtrace_report.3",
                          "/man3/mtrace_savepoint_explain.3",
                          "/bash-completion/completions/memlog",
                          "/zsh/site-functions/_memlog",
                          "/fish/vendor_completions.d/memlog.fish",
                          "/pkgconfig/mtrace.pc",
                          "/cmake/mtrace/mtrace-config.cmake",
                          "/cmake/mtrace/mtrace-config-version.cmake",
                          "/share/doc/mtrace/README",
                          "/share/doc/mtrace/LICENSE",
                          "/share/doc/mtrace/index.html",
                          "/share/doc/mtrace/doc/api.md",
                          "/share/doc/mtrace/doc/internals/design.md",
                          "/mtrace/memlog-http.so",
                          "/systemd/system/memlog-serve.service",
                          "/share/doc/mtrace/doc/systemd/mtrace.conf",
                          "/share/doc/mtrace/doc/examples/project/CMakeLists.txt",
                          "/share/doc/mtrace/doc/examples/conftest.py",
                          "/share/doc/mtrace/doc/examples/github.yml"}) {
    EXPECT_EQ(mode_of(end), 0644u) << end;
  }
  expect_works("/usr/local");

  // What the .pc says of the paths is so.
  const std::string pc = good("find \"$ROOT\" -name mtrace.pc");
  const std::string ask = "export PKG_CONFIG_PATH=" + fs::path(pc).parent_path().string() + "; ";
  for (const char* variable : {"libmtrace", "memlog"}) {
    const std::string path = good(ask + "pkg-config --variable=" + variable + " mtrace");
    EXPECT_EQ(installed.count(lines_of(path).at(0)), 1u) << path;
  }

  // Every function has its page.
  const std::string page = good("man -M \"$ROOT/usr/local/share/man\" 3 mtrace_savepoint_free");
  EXPECT_HAS(page, "mtrace_savepoint_free()");

  good("make -s uninstall BUILD=\"$BUILD\" DESTDIR=\"$ROOT\"");
  EXPECT_EQ(good("find \"$ROOT\" -mindepth 1"), "");
}

TEST_F(InstallTest, OtherPrefixAndFilesOfOthers) {
  const std::string places =
      " BUILD=\"$BUILD\" DESTDIR=\"$ROOT\" SHARE=\"$TMP/share\" PREFIX=/opt/m";
  good("make -s install" + places);
  for (const auto& [path, mode] : files()) {
    EXPECT_TRUE(path.starts_with("/opt/m/")) << path;
  }
  expect_works("/opt/m");
  EXPECT_HAS(good("cat \"$ROOT\"/opt/m/share/man/man7/libmtrace.7"), "/opt/m/lib/");
  write_file(root_ + "/opt/m/bin/other", "");
  good("make -s uninstall" + places);
  EXPECT_EQ(files().size(), 1u);
  EXPECT_EQ(files().count("/opt/m/bin/other"), 1u);
}

TEST_F(InstallTest, DebianPackageHasTheSameAndWorks) {
  good("DPKG_DEB_COMPRESSOR_LEVEL=0 make -s deb BUILD=\"$BUILD\" STAGE=\"$TMP/deb\" OUT=\"$TMP\"");
  const auto package = [&](const std::string& name) {
    std::string path = good("echo \"$TMP\"/" + name + "_*.deb");
    path.pop_back();
    return path;
  };
  const std::string deb = package("mtrace");
  const std::string library = package("libmtrace");
  const std::string version = good("\"$BUILD/memlog\" --version");
  EXPECT_EQ("memlog " + good("dpkg-deb -f " + deb + " Version"), version);
  EXPECT_EQ(good("dpkg-deb -f " + deb + " Package"), "mtrace\n");
  EXPECT_EQ(good("dpkg-deb -f " + deb + " Architecture"), good("dpkg --print-architecture"));
  const std::string depends = ", " + good("dpkg-deb -f " + deb + " Depends");
  for (const char* name : {"libmtrace", "libc6", "libdw1", "libelf1", "libstdc++6", "zlib1g"}) {
    EXPECT_HAS(depends, ", " + std::string(name) + " ");
  }
  EXPECT_TRUE(is_match(good("dpkg-deb -f " + library + " Depends"), "libc6 \\(>= 2\\.[0-9]+\\)\n"));
  EXPECT_FALSE(has_match(good("dpkg-deb -f " + deb), "@[A-Z]+@"));
  EXPECT_EQ(good("dpkg-deb -c " + deb + " | awk '$2 != \"root/root\"'"), "");

  good("dpkg-deb -x " + deb + " \"$ROOT\"; dpkg-deb -x " + library + " \"$ROOT\"");
  for (const auto& [path, mode] : files()) {
    EXPECT_TRUE(path.starts_with("/usr/")) << path;
    const bool is_program =
        path.find("/bin/") != std::string::npos || path.ends_with("/memlog-replay");
    EXPECT_EQ(mode, is_program ? 0755u : 0644u) << path;
  }
  const std::string documents = root_ + "/usr/share/doc/mtrace/";
  EXPECT_EQ(good("zcat " + documents + "changelog.gz | dpkg-parsechangelog -l- -S Version"),
            good("dpkg-deb -f " + deb + " Version"));
  EXPECT_HAS(good("cat " + documents + "copyright"), "MIT License");
  EXPECT_EQ(good("dpkg-deb -I " + library + " triggers"), "activate-noawait ldconfig\n");
  for (const std::string& one : {deb, library}) {
    good("cd \"$ROOT\"; dpkg-deb --ctrl-tarfile " + one +
         " | tar -xO ./md5sums | md5sum --check --quiet");
  }
  // The debugging information is where its build-id says.
  good("cd \"$TMP\"; dpkg-deb -x " + package("libmtrace-dbgsym") +
       " debug; id=$(readelf -n \"$ROOT\"/usr/lib/*/libmtrace.so | sed -n 's/.*Build ID: //p')\n"
       "readelf -S debug/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug | grep -q debug_line");
  good(
      "cd \"$ROOT/usr\"; test -f lib/*/cmake/mtrace/mtrace-config.cmake\n"
      "test -f share/doc/mtrace/doc/examples/project/CMakeLists.txt");
  expect_works("/usr");
  expect_units();
  // Elsewhere it looks for the library where that usually is.
  const Result alone = shell(
      "mkdir \"$TMP/alone\"; cp \"$ROOT/usr/bin/memlog\" \"$TMP/alone\"; cd \"$TMP/alone\"; "
      "./memlog run true");
  EXPECT_TRUE(alone.exited(0) || alone.err.find(", /usr/lib/") != std::string::npos) << alone.err;
  const std::string page = good("man -M \"$ROOT/usr/share/man\" 3 mtrace_savepoint_free");
  EXPECT_HAS(page, "mtrace_savepoint_free()");
}

}  // namespace
}  // namespace mtrace::test
