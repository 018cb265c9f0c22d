// mtrace.h by itself: C99 and C++, both compilers, every warning, static, and left out.
#include "host_test.h"

namespace mtrace::test {
namespace {

constexpr char kUses[] = R"(#include <mcheck.h>
#include <mtrace.h>
int main(void) {
  mtrace_savepoint savepoint = mtrace_savepoint_new();
  int64_t sum = mtrace_savepoint_label(savepoint, "a") + mtrace_savepoint_update(savepoint) +
                mtrace_savepoint_compare(savepoint) + mtrace_savepoint_check(savepoint) +
                mtrace_savepoint_explain(savepoint, 1) * 0 + mtrace_note("%d of %s", 1, "x") +
                mtrace_note_text("y", 0) + mtrace_save("n") + mtrace_update("n") +
                mtrace_compare("n") + mtrace_check("n") + mtrace_record("k", 1, 2) +
                mtrace_release("k", 1);
  mtrace_savepoint_assert(savepoint);
  mtrace_assert("n");
  sum += mtrace_savepoint_free(savepoint);
  if (sum != 0) return 1;
  if (mtrace_backtrace(2) < 0) return 2;
  /* What differs with the library. */
  return mtrace_start() + mtrace_stop() * 2 + (mtrace_report() == 1) * 4 +
         (mtrace_report_label("l") == 2) * 8 + (mtrace_savepoint_new() != 0) * 16 +
         (mtrace_live_bytes() > mtrace_peak_bytes() || mtrace_live_blocks() > 1000) * 64;
}
)";
constexpr char kUnused[] = "#include <mtrace.h>\nint main(void) { return 0; }\n";
constexpr int kAllThere = 31;

class ApiHeaderTest : public HostTest {
 protected:
  // Compiles with all warnings as errors and runs, without and with the library.
  void expect_exits(const Words& compiler, const std::string& name, const char* source, int with) {
    const std::string file = temp() + "/" + name;
    write_file(file, source);
    SCOPED_TRACE(testing::PrintToString(compiler));
    const Words strict = joined(compiler, {"-pedantic", "-Wall", "-Wextra", "-Werror",
                                           "-Wconversion", "-Wsign-conversion", "-Wshadow"});
    const Words words = {"-I" + source_dir() + "/include", "-o", temp() + "/program", file};
    EXPECT_EQ(expect_exit(run(plain(joined(strict, words)))).err, "");
    EXPECT_EQ(expect_exit(run(plain({temp() + "/program"}))).err, "");
    expect_exit(run(traced({temp() + "/program"})), with);
  }

  // As C99 with two compilers and as C++11 and C++20 with two.
  void expect_everywhere(const Words& options, const char* source, int with) {
    for (const char* level : {"-O0", "-O2"}) {
      for (const auto& [compiler, standard] : {std::pair{"gcc", "-std=c99"},
                                               {"clang", "-std=c99"},
                                               {"g++", "-std=c++11"},
                                               {"clang++", "-std=c++11"},
                                               {"g++", "-std=c++20"},
                                               {"clang++", "-std=c++20"}}) {
        Words argv = joined({"/usr/bin/env", compiler, standard, level}, options);
        const bool cxx = std::string(standard).find('+') != std::string::npos;
        if (cxx) argv.emplace_back("-Wold-style-cast");
        expect_exits(argv, cxx ? "source.cc" : "source.c", source, with);
      }
    }
  }
};

TEST_F(ApiHeaderTest, CompilesWithoutAWarning) {
  expect_everywhere({}, kUses, kAllThere);
  expect_everywhere({}, kUnused, 0);
}

// With declarations as GL's and CUDA's headers have them.
TEST_F(ApiHeaderTest, WrappersOfResourcesCompile) {
  expect_everywhere({}, R"(#include <mtrace_resources.h>
typedef enum { cudaSuccess } cudaError_t;
static cudaError_t cudaMalloc(void** to, size_t size) {
  *to = size == 8 ? to : NULL;
  return cudaSuccess;
}
static cudaError_t cudaFree(void* memory) { return memory ? cudaSuccess : cudaSuccess; }
static void glGenTextures(int count, unsigned* names) { while (count-- > 0) names[count] = 7; }
static void glDeleteTextures(int count, const unsigned* names) { (void)count; (void)names; }
int main(void) {
  unsigned name = 0;
  void* memory = NULL;
  int ends[2];
  MTRACE_GL_GEN(Textures, 1, &name);
  if (name != 7) return 1;
  MTRACE_GL_DELETE(Textures, 1, &name);
  if (MTRACE_CUDA_MALLOC(&memory, 8) != cudaSuccess || memory != &memory) return 2;
  if (MTRACE_CUDA_FREE(memory) != cudaSuccess) return 3;
  if (mtrace_fds(pipe(ends), ends) != 0) return 4;
  return mtrace_close(ends[0]) + mtrace_close(ends[1]) + mtrace_close(mtrace_fd(dup(1)));
}
)",
                    0);
}

TEST_F(ApiHeaderTest, LinksStatically) { expect_everywhere({"-static"}, kUses, 0); }

TEST_F(ApiHeaderTest, LeavesNothingWhenLeftOut) {
  expect_everywhere({"-DMTRACE_NDEBUG"}, kUses, 0);
  // The program needs nothing then.
  const Result symbols = run(plain({"/usr/bin/nm", "--undefined-only", temp() + "/program"}));
  EXPECT_LACKS(symbols.out, "dlsym");
  EXPECT_LACKS(symbols.out, "abort");
  write_file(temp() + "/source.c", "#define MTRACE_NDEBUG\n#include <mtrace.h>\n");
  const Result text = run(plain({"/usr/bin/env", "gcc", "-std=c99", "-E",
                                 "-I" + source_dir() + "/include", temp() + "/source.c"}));
  EXPECT_LACKS(text.out, "stdio.h");
  EXPECT_LACKS(text.out, "weakref");
}

}  // namespace
}  // namespace mtrace::test
