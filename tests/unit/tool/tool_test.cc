// The helpers that tool_test.h declares.
#include "tool_test.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "surface/cli/command.h"

namespace mtrace::test {

// What is printed has characters that are not ASCII.
const bool g_utf8 = ::setenv("LC_ALL", "C.UTF-8", 1) == 0;

Outcome memlog(const std::vector<std::string>& words, bool terminal) {
  char* text[2] = {};
  size_t size[2] = {};
  FILE* out = open_memstream(&text[0], &size[0]);
  FILE* err = open_memstream(&text[1], &size[1]);
  Outcome result;
  if (terminal) ::setenv("MEMLOG_BYTES", "0", 1);
  result.status = cli::run(words, {out, err, terminal});
  if (terminal) ::setenv("MEMLOG_BYTES", "1", 1);
  std::fclose(out);
  std::fclose(err);
  result.out.assign(text[0], size[0]);
  result.err.assign(text[1], size[1]);
  std::free(text[0]);
  std::free(text[1]);
  return result;
}

std::string compiler() {
#ifdef __clang__
  return "clang++";
#else
  return "g++";
#endif
}

std::string small_memlog(const std::vector<std::string>& frames, const std::string& after,
                         int64_t seq) {
  std::string lines;
  for (const std::string& frame : frames) lines += '\t' + frame + '\n';
  return fmt::format(
      "# memlog 2\n# program: /usr/bin/app\n# pid: 4711\n# seq: {}\n# trigger: signal\n"
      "# started: 2026-11-20T20:15:00.000000Z\n# taken: 2026-11-20T20:15:31.123456Z\n"
      "# delta: +64 bytes +1 blocks\n# live: 64 bytes 1 blocks\n"
      "# lost: frames=0 stacks=0 blocks=0 inflight=0\n"
      "+64\tblocks=+1\tlive=64\tstack=00000000000000aa\n{}{}# end\n",
      seq, lines, after);
}

}  // namespace mtrace::test
