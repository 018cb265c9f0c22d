// The functions that allocators offer beside those of libc are counted to the byte, at the site
// that called them, preloaded and attached; and a program without such an allocator sees none of
// them.
#include "host_test.h"
#include "shell.h"

namespace mtrace::test {
namespace {

class InterfacesTest : public HostTest {
 protected:
  static Words not_covered(const Memlog& log) {
    Words lines;
    for (const auto& [key, value] : log.meta) {
      if (key == "note" && value.starts_with("not covered: ")) lines.push_back(value.substr(13));
    }
    return lines;
  }
  // Of both phases, and that no free was of an unknown block.
  void expect_truth(const Result& result, const std::string& file) const {
    expect_exit(result);
    EXPECT_EQ(result.err, "");
    ASSERT_GT(told_sites(result.out).at(1).size(), 8u);
    const std::vector<Memlog> logs = logs_of(result.pid, 3);
    expect_phases(result.out, logs, file, file);
    EXPECT_EQ(logs[1].number("unknown-frees"), 0);
    for (const Memlog& log : logs) {
      for (const std::string& line : not_covered(log)) ADD_FAILURE() << line;
    }
  }
};

class InterfacesOfAllocator : public InterfacesTest,
                              public ::testing::WithParamInterface<const char*> {};

// Also bound when it is started, and by functions' addresses; and with what is usable filled, which
// tells a size taken from another allocator's block.
TEST_P(InterfacesOfAllocator, Preloaded) {
  for (Settings settings : {Settings{}, {{"LD_BIND_NOW", "1"}}, {{"MTRACE_FILL", "0xa5"}}}) {
    settings["LD_PRELOAD"] = behind(GetParam());
    SCOPED_TRACE(settings.begin()->first);
    expect_truth(run(traced({program("interfaces"), "signals"}, settings)), program("interfaces"));
  }
}

TEST_P(InterfacesOfAllocator, Attached) {
  Process process(plain({program("interfaces"), "wait"}, {{"LD_PRELOAD", GetParam()}}), "ready 1");
  expect_exit(memlog({"attach", process.id()}));
  std::string told;
  for (int phase = 1; phase <= 2; ++phase) {
    process.write("x");
    for (const std::string& line : process.read_until(phase == 1 ? "ready 2" : "done")) {
      told += line + '\n';
    }
    expect_exit(memlog({"report", process.id()}));
  }
  std::vector<Memlog> logs = logs_of(process.pid(), 2);
  EXPECT_EQ(told_sites(told).size(), 2u) << told;
  logs.push_back(logs[1]);  // none is of the exit
  expect_phases(told, logs, program("interfaces"), program("interfaces"));
  EXPECT_EQ(logs[1].number("unknown-frees"), 0);
  // And led back: nothing of the library is called any more, and the program goes on.
  expect_exit(memlog({"detach", process.id()}));
  expect_exit(process.wait());
}

// Attached, detached and attached again between the phases: what was allocated by then is unknown.
TEST_P(InterfacesOfAllocator, AttachedTwice) {
  Process process(plain({program("interfaces"), "wait"}, {{"LD_PRELOAD", GetParam()}}), "ready 1");
  for (const char* step : {"attach", "detach", "attach"}) {
    ASSERT_TRUE(memlog({step, process.id()}).exited(0)) << step;
  }
  process.say("x", "ready 2");
  expect_exit(memlog({"detach", process.id()}));
  process.say("x", "done");
  expect_exit(process.wait());
}

INSTANTIATE_TEST_SUITE_P(Each, InterfacesOfAllocator,
                         ::testing::Values("libjemalloc.so.2", "libtcmalloc.so.4",
                                           "libtcmalloc_minimal.so.4", "libmimalloc.so.2"),
                         named_after);

// Whoever asks whether there is an allocator gets the answer that he gets without the library.
TEST_F(InterfacesTest, NoneWithoutTheAllocator) {
  for (const char* allocator : {"", "libjemalloc.so.2", "libtcmalloc.so.4", "libmimalloc.so.2"}) {
    const Result expected =
        run(plain({program("interfaces"), "weak"}, {{"LD_PRELOAD", allocator}}));
    const Result result = expect_exit(
        run(traced({program("interfaces"), "weak"}, {{"LD_PRELOAD", behind(allocator)}})));
    EXPECT_EQ(result.out, expected.out) << allocator;
    EXPECT_EQ(result.err, "");
  }
}

// Two allocators in a process: malloc is libc's, or tcmalloc's, and the other has a prefix. Neither
// is asked about the other's blocks.
TEST_F(InterfacesTest, OfAnotherAllocatorThanMalloc) {
  write_file(temp() + "/prefixed.c", R"(
#include <stddef.h>
#include <sys/mman.h>
// Blocks of a page, at its beginning: nothing can be read below them. Small ones lie side by side.
static char* page;
static size_t used = 1 << 20;
static void* take(size_t n) {
  size_t bytes = n < 64 ? 16 : (n + 4095) / 4096 * 4096;
  if (n >= 64) return mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (used + bytes > 1 << 16) {
    page = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    used = 0;
  }
  used += bytes;
  return page + used - bytes;
}
void* _rjem_malloc(size_t n) { return take(n); }
void* _rjem_calloc(size_t n, size_t m) { return take(n * m); }
void* _rjem_realloc(void* p, size_t n) { char* q = take(n); if (p) q[0] = *(char*)p; return q; }
void _rjem_free(void* p) { (void)p; }
void* _rjem_mallocx(size_t n, int flags) { (void)flags; return take(n); }
void* _rjem_rallocx(void* p, size_t n, int flags) { (void)flags; return _rjem_realloc(p, n); }
void _rjem_sdallocx(void* p, size_t n, int flags) { (void)p; (void)n; (void)flags; }
)");
  write_file(temp() + "/two.c", R"(
#include "truth.h"
void* _rjem_malloc(size_t);
void* _rjem_calloc(size_t, size_t);
void* _rjem_realloc(void*, size_t);
void _rjem_free(void*);
void* _rjem_mallocx(size_t, int);
void* _rjem_rallocx(void*, size_t, int);
void _rjem_sdallocx(void*, size_t, int);
static void* own[100];
static void* theirs[1000];
SITE void site_own(void) {
  for (int i = 0; i < 100; ++i) {
    own[i] = malloc(sized(20 + i));
    HOLD(20 + i);
  }
}
SITE void site_theirs(void) {
  for (int i = 0; i < 1000; ++i) {
    theirs[i] = i % 2 ? _rjem_malloc(sized(i)) : _rjem_mallocx(sized(i), 0);
    HOLD(i);
  }
}
SITE void site_theirs_cleared(void) {
  theirs[7] = _rjem_calloc(sized(3), 7);
  HOLD(21);
}
SITE void site_moved(void) {
  theirs[20] = _rjem_realloc(theirs[20], sized(2000));
  HOLD(2000);
  DROP(theirs, 20);
  theirs[21] = _rjem_rallocx(theirs[21], sized(2001), 0);
  HOLD(2001);
  DROP(theirs, 21);
}
int main(int argc, char** argv) {
  begin(argc, argv);
  site_own();
  site_theirs();
  void* seventh = theirs[7];
  site_theirs_cleared();
  site_moved();
  tell(1);
  for (int i = 0; i < 100; ++i) {
    free(own[i]);
    DROP(own, 20 + i);
  }
  for (int i = 100; i < 1000; ++i) {
    if (i % 3) _rjem_free(theirs[i]); else _rjem_sdallocx(theirs[i], i, 0);
    DROP(theirs, i);
  }
  _rjem_free(seventh);
  DROP(theirs, 7);
  tell(2);
  return 0;
}
)");
  shell("gcc -shared -fPIC -O1 -o {0}/libprefixed.so {0}/prefixed.c", temp());
  for (const std::string binding : {"lazy", "now"}) {
    shell(
        "gcc -g -fno-builtin -O1 -D_GNU_SOURCE -I{1}/tests/programs -Wl,-z,{2} -o {0}/two "
        "{0}/two.c {0}/libprefixed.so",
        temp(), source_dir(), binding);
    for (const char* allocator : {"", "libtcmalloc_minimal.so.4"}) {
      const std::string path = temp() + "/two";
      const Result result =
          expect_exit(run(traced({path, "signals"}, {{"LD_PRELOAD", behind(allocator)}})));
      expect_phases(result.out, logs_of(result.pid, 3), path, path);
    }
  }
}

// An allocator that comes by dlopen is told of, not counted.
TEST_F(InterfacesTest, LoadedLater) {
  write_file(
      temp() + "/allocator.c",
      "static char memory[1 << 16];\n"
      "void* mallocx(unsigned long size, int flags) { return memory + flags + size % 8; }\n");
  write_file(temp() + "/late_plugin.c", R"(
#include <stddef.h>
void* mallocx(size_t, int);
void* plugin_allocates(void) { return mallocx(12345, 0); }
)");
  write_file(temp() + "/late_main.c", R"(
#include <dlfcn.h>
int main(int argc, char** argv) {
  void* plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
  void* (*allocate)(void) = plugin ? (void* (*)(void))dlsym(plugin, "plugin_allocates") : 0;
  return allocate == 0 || allocate() == 0;
}
)");
  shell(
      "cd {} && gcc -shared -fPIC -o allocator.so allocator.c && gcc -shared -fPIC -o "
      "late_plugin.so late_plugin.c $PWD/allocator.so && gcc -o late_main late_main.c",
      temp());
  const Result result =
      expect_exit(run(traced({temp() + "/late_main", temp() + "/late_plugin.so"})));
  const std::vector<Memlog> logs = logs_of(result.pid, 1);
  const Words lines = not_covered(logs[0]);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with(temp() + "/late_plugin.so calls mallocx of ")) << lines[0];
}

// jemalloc as Rust's crates link it into a program, under a prefix, and tcmalloc with its own
// names: memlog tells of it, with what is resident and not malloc's.
class LinkedAllocatorTest : public InterfacesTest {
 protected:
  static constexpr long kBytes = 40 << 20;

  void build(const std::string& allocate, const std::string& archive, bool renamed) {
    shell(R"(cat >{0}/linked.c <<X
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void* {1}(size_t);
int main(void) {{
  char* p = {1}({2});
  memset(p, 1, {2});
  puts(malloc(1000) != 0 ? "ready" : "none");
  fflush(stdout);
  char byte;
  return read(0, &byte, 1) < 0 || p[100] != 1;
}}
X)",
          temp(), Script{allocate}, kBytes);
    std::string used = archive.starts_with('/') ? archive : "/usr/lib/x86_64-linux-gnu/" + archive;
    if (renamed) {
      std::string symbols;
      for (const std::string name :
           {"malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign",
            "valloc", "malloc_usable_size", "mallocx", "rallocx", "xallocx", "sallocx", "dallocx",
            "sdallocx", "nallocx"}) {
        symbols += " --redefine-sym " + name + "=_rjem_" + name;
      }
      shell("objcopy{} {} {}/renamed.a", Script{symbols}, used, temp());
      used = temp() + "/renamed.a";
    }
    shell("gcc -O1 -o {0}/linked {0}/linked.c {1} -lstdc++ -lm -pthread", temp(), used);
  }

  // How many bytes `text` says are resident, and how many of them not malloc's; checks the share.
  static std::pair<long, long> share_in(const std::string& text) {
    long resident = 0;
    long other = 0;
    double share = 0;
    const size_t at = text.find("; of ", text.find("not covered: "));
    EXPECT_EQ(std::sscanf(at == std::string::npos ? "" : text.c_str() + at,
                          "; of %ld resident bytes %ld (%lf%%) are not malloc's", &resident, &other,
                          &share),
              3)
        << text;
    EXPECT_NEAR(share, 100.0 * static_cast<double>(other) / static_cast<double>(resident), 0.06);
    return {resident, other};
  }

  // `reason`: what check gives as its reason, where it has a better one.
  void expect_told(const std::string& function, const std::string& reason = "") {
    const std::string told =
        "not covered: " + function + " of " + temp() + "/linked: linked into it";
    Process process(named({temp() + "/linked"}), "ready");
    const Result status = expect_exit(memlog({"status", process.id()}));
    EXPECT_HAS(status.out, told);
    const auto now = share_in(status.out);
    EXPECT_GE(now.second, kBytes);
    if (reason.empty()) {
      EXPECT_GE(now.first - now.second, 1000);
    }
    EXPECT_LT(now.first - now.second, 1 << 20);
    expect_exit(process.wait());
    const std::vector<Memlog> logs = logs_of(process.pid(), 1);
    const Result shown = memlog({"show", logs[0].path});
    const size_t at = shown.out.find(told);
    ASSERT_NE(at, std::string::npos) << shown.out << shown.err;
    const auto [resident, other] = share_in(shown.out.substr(at));
    EXPECT_GE(other, kBytes);
    EXPECT_EQ(resident - other, logs[0].amount("live").bytes);
    for (const char* command : {"run", "check"}) {
      const bool checks = std::string(command) == "check";
      const Result judged = run(plain({memlog_tool(), command, "--", temp() + "/linked"}));
      EXPECT_TRUE(judged.exited(checks ? 2 : 0)) << judged.how() << judged.err;
      EXPECT_HAS((judged.out + judged.err), checks && !reason.empty() ? reason : told)
          << command << judged.out << judged.err;
    }
  }
};

TEST_F(LinkedAllocatorTest, Prefixed) {
  build("_rjem_malloc", "libjemalloc.a", true);
  expect_told("_rjem_malloc");
}

// Debian has mimalloc as a library only. This one has its name and takes memory as it does.
TEST_F(LinkedAllocatorTest, Mimalloc) {
  write_file(
      temp() + "/mi.c",
      "#include <stddef.h>\n#include <sys/mman.h>\n"
      "void* mi_malloc(size_t size) {\n"
      "  void* p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, "
      "0);\n"
      "  return p == MAP_FAILED ? NULL : p;\n}\n");
  shell("gcc -O1 -c -o {0}/mi.o {0}/mi.c", temp());
  build("mi_malloc", temp() + "/mi.o", false);
  expect_told("mi_malloc");
}

TEST_F(LinkedAllocatorTest, WithItsOwnNames) {
  build("tc_malloc", "libtcmalloc_minimal.a", false);
  expect_told("tc_malloc", "not covered: malloc of " + temp() + "/linked comes before");
}

}  // namespace
}  // namespace mtrace::test
