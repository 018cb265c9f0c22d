// The plugin for pytest in doc/examples, as it stands there, on tests that leak and tests that do
// not.
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

def test_leaks_much():
    libc.strdup(b"x" * 9999)

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
  static Words pytest() {
    return {"/usr/bin/python3", "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--tb=short"};
  }
  void SetUp() override {
    Command command = plain({"/usr/bin/python3", "-c", "import pytest"});
    if (!run(command).exited(0)) GTEST_SKIP() << "python3-pytest is not installed";
    write_file(temp() + "/conftest.py", read_file(source_dir() + "/doc/examples/conftest.py"));
    write_file(temp() + "/test_native.py", kTests);
  }
  void expect_tests(Settings more, const Words& says) const {
    more["MTRACE_EXIT_REPORT"] = "0";
    // The library waits five seconds for names. On a busy machine it prints what memlog decode
    // reads.
    Command decode = tool({"decode"});
    decode.input = expect_exit(run(named(pytest(), more)), 1).out;
    const Result decoded = run(decode);
    for (const std::string& line : says) EXPECT_HAS(decoded.out, line);
  }
};

TEST_F(CiRecipe, PytestFailsWhatLeaks) {
  expect_tests({}, {"FAILED test_native.py::test_leaks", "PASSED test_native.py::test_frees",
                    "PASSED test_native.py::test_real_work", "PASSED test_native.py::test_may_keep",
                    "FAILED test_native.py::test_fails_by_itself",
                    "10 runs leave 1000 bytes of native memory", "+1000 bytes +10 blocks", "strdup",
                    "test_leaks\ttest_native.py:"});
}

// Every object of Python's comes from malloc, too. The interpreter's caches may grow a little.
TEST_F(CiRecipe, PytestWithPythonObjects) {
  expect_tests({{"PYTHONMALLOC", "malloc"}, {"LEAK_LIMIT", "5000"}},
               {"FAILED test_native.py::test_leaks_much", "PASSED test_native.py::test_frees",
                "PASSED test_native.py::test_real_work", "+100000 bytes +10 blocks",
                "test_leaks_much\ttest_native.py:"});
}

// Without the library the tests run as ever.
TEST_F(CiRecipe, PytestWithoutTheLibrary) {
  EXPECT_HAS(run(plain(pytest())).out, "1 failed, 5 passed");
}

}  // namespace
}  // namespace mtrace::test
