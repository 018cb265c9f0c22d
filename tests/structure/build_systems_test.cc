// An installed mtrace as CMake and Meson find it: doc/examples/project, and what the function for
// tests takes.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "expect.h"
#include "install_fixture.h"
#include "process.h"

namespace mtrace::test {
namespace {

namespace fs = std::filesystem;

class BuildSystemsTest : public InstallFixture {
 protected:
  void need(const std::string& tool) const {
    if (!fs::exists("/usr/bin/" + tool)) GTEST_SKIP() << tool << " is not installed";
  }
  // The library waits five seconds for names. On a busy machine it prints what memlog decode reads.
  static constexpr char kDecoded[] = " | \"$BUILD/memlog\" decode";
  static constexpr char kMoved[] =
      "make -s install BUILD=\"$BUILD\" DESTDIR=\"$ROOT\" SHARE=\"$TMP/share\" PREFIX=/opt/m\n";
};

// The tree is not where it was installed for.
TEST_F(BuildSystemsTest, CMakeBuildsTheExample) {
  need("cmake");
  if (IsSkipped()) return;
  good(kMoved + std::string("cp -r doc/examples/project \"$TMP\"; cd \"$TMP/project\"\n"
                            "cmake -S . -B build -DCMAKE_PREFIX_PATH=\"$ROOT/opt/m\"\n"
                            "cmake --build build"));
  const Result result =
      shell("cd \"$TMP/project/build\"; ctest --output-on-failure" + std::string(kDecoded));
  EXPECT_FALSE(result.exited(0)) << result.out;
  EXPECT_TRUE(has_match(result.out, R"(frees \.+ +Passed)")) << result.out << result.err;
  EXPECT_TRUE(has_match(result.out, R"(leaks \.+\*+Failed)")) << result.out << result.err;
  EXPECT_TRUE(has_match(result.out, R"(\+13 bytes .*\n.*\n *copy_name  names\.c:\d+\n)"))
      << result.out;
  EXPECT_TRUE(has_match(result.out, R"(gtest \.+\*+Failed)")) << result.out << result.err;
  EXPECT_TRUE(has_match(result.out, R"(\[       OK \] Names\.Frees)")) << result.out;
  EXPECT_TRUE(has_match(result.out, R"(copy_name\(char const\*\)\tnames_test\.cc:\d+\t)"))
      << result.out;
}

TEST_F(BuildSystemsTest, MesonBuildsTheExample) {
  for (const char* tool : {"meson", "ninja", "pkg-config"}) need(tool);
  if (IsSkipped()) return;
  // mtrace.pc names paths, so the tree is installed for where it is; a DESTDIR keeps ldconfig away.
  good(
      "make -s install BUILD=\"$BUILD\" DESTDIR=/ SHARE=\"$TMP/share\" PREFIX=\"$ROOT\"\n"
      "cp -r doc/examples/project \"$TMP\"; cd \"$TMP/project\"\n"
      "export PKG_CONFIG_PATH=$(dirname \"$(find \"$ROOT\" -name mtrace.pc)\")\n"
      "meson setup build; meson test -C build -t 0");
  const Result result =
      shell("cd \"$TMP/project\"; meson test -C build -t 0 --setup memory --print-errorlogs" +
            std::string(kDecoded));
  EXPECT_FALSE(result.exited(0)) << result.out;
  EXPECT_TRUE(has_match(result.out, R"(frees +OK)")) << result.out << result.err;
  EXPECT_TRUE(has_match(result.out, R"(leaks +FAIL)")) << result.out << result.err;
  EXPECT_TRUE(has_match(result.out, R"(\+13 bytes .*\n.*\n *copy_name  names\.c:\d+\n)"))
      << result.out;
  EXPECT_TRUE(has_match(result.out, R"(gtest +FAIL)")) << result.out << result.err;
  EXPECT_TRUE(has_match(result.out, R"(copy_name\(char const\*\)\tnames_test\.cc:\d+\t)"))
      << result.out;
}

TEST_F(BuildSystemsTest, DocumentShowsTheExample) {
  const std::string page = read_file(source_dir() + "/doc/ci.md");
  for (const auto& [language, file] :
       {std::pair("cmake", "CMakeLists.txt"), std::pair("meson", "meson.build")}) {
    const std::string fence = "```" + std::string(language) + "\n";
    const size_t begin = page.find(fence) + fence.size();
    const std::string shown = page.substr(begin, page.find("```", begin) - begin);
    const std::string text = read_file(source_dir() + "/doc/examples/project/" + file);
    EXPECT_GE(lines_of(shown).size(), 4u);
    for (const std::string& line : lines_of(shown)) {
      EXPECT_HAS(text, line + '\n') << line;
    }
  }
}

constexpr char kLater[] =
    "#include <mtrace.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "#include <unistd.h>\n"
    "static void* kept;\n"
    "static void keep_some(void) { kept = malloc(100); }\n"
    "int main(int argc, char** argv) {\n"
    "  keep_some();\n"
    "  if (argc != 2 || strcmp(argv[1], \"two words\") != 0) return 3;\n"
    "  return mtrace_live_bytes() == 100 && access(\"here\", F_OK) == 0 ? 0 : 4;\n"
    "}\n";

// The target is made after the tests, in another directory.
TEST_F(BuildSystemsTest, CMakeFunctionTakesTargetsProgramsAndLimits) {
  need("cmake");
  if (IsSkipped()) return;
  fs::create_directories(temp_ / "project/sub/place");
  write_file(temp_ / "project/sub/place/here", "");
  write_file(temp_ / "project/later.c", kLater);
  write_file(temp_ / "project/CMakeLists.txt", R"(
cmake_minimum_required(VERSION 3.16)
project(more LANGUAGES C)
enable_testing()
find_package(mtrace REQUIRED)
add_subdirectory(sub)
add_executable(later later.c)
target_link_libraries(later mtrace::api)
if(NOT EXISTS "${mtrace_LIBRARY}" OR NOT EXISTS "${mtrace_MEMLOG}")
  message(FATAL_ERROR "no such file")
endif()
add_test(NAME preloaded COMMAND later "two words")
set_tests_properties(preloaded PROPERTIES
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/sub/place"
    ENVIRONMENT "LD_PRELOAD=${mtrace_LIBRARY};MTRACE_EXIT_REPORT=0")
)");
  write_file(temp_ / "project/sub/CMakeLists.txt", R"(
set(place WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/place")
mtrace_add_test(NAME within COMMAND later "two words" MAX_LIVE 100 ${place})
mtrace_add_test(NAME beyond COMMAND later "two words" MAX_LIVE 99 ${place})
mtrace_add_test(NAME nothing COMMAND later "two words" ${place})
mtrace_add_test(NAME left-out COMMAND later "two words" OPTIONS -x keep_some ${place})
mtrace_add_test(NAME by-file COMMAND $<TARGET_FILE:later> "two words" OPTIONS -x keep_some ${place})
mtrace_add_test(NAME program COMMAND test "a;b" != a MAX_LIVE 64K)
mtrace_add_test(NAME empty COMMAND sh -c "test $# = 5" x "" "" "" a "" MAX_LIVE 64K)
mtrace_add_test(NAME fails COMMAND later)
)");
  good(kMoved + std::string("cd \"$TMP/project\"\n"
                            "cmake -S . -B build -DCMAKE_PREFIX_PATH=\"$ROOT/opt/m\"\n"
                            "cmake --build build"));
  const Result result = shell("cd \"$TMP/project/build\"; ctest --output-on-failure");
  EXPECT_FALSE(result.exited(0)) << result.out;
  for (const char* name : {"within", "left-out", "by-file", "program", "empty", "preloaded"}) {
    EXPECT_TRUE(has_match(result.out, name + std::string(R"( \.+ +Passed)"))) << name << result.out;
  }
  for (const char* name : {"beyond", "nothing", "fails"}) {
    EXPECT_TRUE(has_match(result.out, name + std::string(R"( \.+\*+Failed)")))
        << name << result.out;
  }
  EXPECT_TRUE(has_match(result.out, R"(100 bytes in 1 stack, 99 bytes allowed)")) << result.out;
  EXPECT_TRUE(has_match(result.out, R"(100 bytes in 1 stack, 0 bytes allowed)")) << result.out;
  EXPECT_TRUE(has_match(result.out, R"(exited with status 3)")) << result.out;

  // What the function cannot use ends the configuration.
  for (const auto& [wrong, why] : {std::pair("NAME x", "give a name and a command"),
                                   std::pair("COMMAND later", "give a name and a command"),
                                   std::pair("NAME x what COMMAND later", "unknown: what")}) {
    write_file(temp_ / "project/sub/CMakeLists.txt",
               "mtrace_add_test(" + std::string(wrong) + ")\n");
    const Result refused = shell("cd \"$TMP/project\"; cmake build");
    EXPECT_FALSE(refused.exited(0)) << wrong << refused.out;
    EXPECT_HAS(refused.err, std::string("mtrace_add_test: ") + why);
  }
}

TEST_F(BuildSystemsTest, CMakeAsksForVersions) {
  need("cmake");
  if (IsSkipped()) return;
  fs::create_directory(temp_ / "project");
  write_file(temp_ / "project/CMakeLists.txt", R"(
cmake_minimum_required(VERSION 3.19)
project(versions LANGUAGES C)
find_package(mtrace REQUIRED)
set(it ${mtrace_VERSION})
math(EXPR next "${mtrace_VERSION_MAJOR} + 1")
foreach(want ${it} ${mtrace_VERSION_MAJOR} 0...${it} 0...99 ${it}...99 ${next} ${it}.1 0...<${it})
  find_package(mtrace ${want} QUIET)
  message(STATUS "${want}=${mtrace_FOUND}")
endforeach()
find_package(mtrace ${it} EXACT REQUIRED)
file(REMOVE "${mtrace_LIBRARY}")
find_package(mtrace REQUIRED)
)");
  good(kMoved);
  std::string it = good("\"$BUILD/memlog\" --version | cut -d' ' -f2");
  it.pop_back();
  const Result result =
      shell("cd \"$TMP/project\"; cmake -S . -B build -DCMAKE_PREFIX_PATH=\"$ROOT/opt/m\"");
  for (const std::string& good : {it, "0..." + it, std::string("0...99"), it + "...99"}) {
    EXPECT_HAS(result.out, "-- " + good + "=1\n") << good;
  }
  for (const std::string& bad : {it + ".1", "0...<" + it}) {
    EXPECT_HAS(result.out, "-- " + bad + "=0\n") << bad;
  }
  EXPECT_TRUE(has_match(result.out, "-- [0-9]+=1\n")) << result.out;
  EXPECT_TRUE(has_match(result.out, "-- [0-9]+=0\n")) << result.out;
  // A message is wrapped where it is long.
  EXPECT_TRUE(has_match(result.err, R"(libmtrace\.so\s+is\s+missing)")) << result.err;
  EXPECT_FALSE(result.exited(0));
}

}  // namespace
}  // namespace mtrace::test
