// The recipe for pytest in doc/ci.md, as it stands there, on tests that leak and tests that do not.
#include <fmt/format.h>

#include <string>

#include "host_test.h"

namespace mtrace::test {
namespace {

constexpr char kTests[] = R"PY(
import ctypes, json, sqlite3, zlib
import pytest

libc = ctypes.CDLL(None)
libc.strdup.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
kept = []

def test_leaks():
    libc.strdup(b"x" * 99)

def test_frees():
    libc.free(libc.strdup(b"x" * 99))

def test_real_work(tmp_path):
    data = json.dumps(list(range(5000))).encode()
    assert zlib.decompress(zlib.compress(data)) == data
    base = sqlite3.connect(tmp_path / "base")
    base.execute("create table if not exists t(a)")
    base.executemany("insert into t values (?)", [(i,) for i in range(100)])
    base.close()

@pytest.mark.keeps_memory
def test_may_keep():
    kept.append(libc.strdup(b"x" * 99))

def test_fails_by_itself():
    assert zlib.crc32(b"") == 1
)PY";

class CiRecipe : public HostTest {
 protected:
  // The first part of doc/ci.md in that language.
  static std::string recipe(const std::string& language) {
    const std::string text = read_file(source_dir() + "/doc/ci.md");
    const std::string fence = "```" + language + "\n";
    const size_t begin = text.find(fence);
    EXPECT_NE(begin, std::string::npos);
    return text.substr(begin + fence.size(), text.find("\n```", begin) - begin - fence.size() + 1);
  }
  static std::vector<std::string> pytest() {
    return {"/usr/bin/python3", "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--tb=short"};
  }
  void write_tests() const {
    write_file(temp() + "/conftest.py", recipe("python"));
    write_file(temp() + "/test_native.py", kTests);
  }
};

TEST_F(CiRecipe, PytestFailsWhatLeaks) {
  write_tests();
  Command command = named(pytest());
  command.directory = temp();
  command.env["MTRACE_EXIT_REPORT"] = "0";
  const Result result = run(command);
  EXPECT_TRUE(result.exited(1)) << result.how() << result.out << result.err;
  for (const char* line :
       {"FAILED test_native.py::test_leaks", "PASSED test_native.py::test_frees",
        "PASSED test_native.py::test_real_work", "PASSED test_native.py::test_may_keep",
        "FAILED test_native.py::test_fails_by_itself", "10 runs leave 1000 bytes of native memory",
        "+1000 bytes +10 blocks"}) {
    EXPECT_NE(result.out.find(line), std::string::npos) << line << '\n' << result.out;
  }
}

// Without the library the tests run as ever.
TEST_F(CiRecipe, PytestWithoutTheLibrary) {
  write_tests();
  Command command = plain(pytest());
  command.directory = temp();
  const Result result = run(command);
  EXPECT_NE(result.out.find("1 failed, 4 passed"), std::string::npos) << result.out << result.err;
}

}  // namespace
}  // namespace mtrace::test
