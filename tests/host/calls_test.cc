// The function that was called stands in each entry, also where libstdc++ and libc reach malloc by
// another one; the allocator's controls stand in the report that follows; usable bytes in all.
#include <sys/utsname.h>

#include <nlohmann/json.hpp>

#include "host_test.h"

namespace mtrace::test {
namespace {

class CallsTest : public HostTest {
 protected:
  // The function of a report's site, or of the call that a site makes: "SITE CALL".
  static Sites calls_of(const Memlog& log, const std::string& kind = "") {
    Sites calls;
    for (const Entry& entry : log.entries) {
      if (entry.kind != kind) continue;
      for (const Frame& frame : entry.frames) {
        const size_t at = frame.function.find("site_");
        if (at == std::string::npos) continue;
        const std::string site = frame.function.substr(at, frame.function.find('(', at) - at);
        calls[site + ' ' + entry.call] += Amount{entry.bytes, entry.blocks};
        break;
      }
    }
    return calls;
  }
  static const Sites kForms;
  // Each site once in a stack, called by main.
  static void expect_whole(const Memlog& log) {
    size_t seen = 0;
    for (const Entry& entry : log.entries) {
      for (size_t i = 0; i < entry.frames.size(); ++i) {
        const std::string& site = entry.frames[i].function;
        const size_t at = site.find("site_");
        if (at == std::string::npos) continue;
        // Not what has a site in its name: functions of the library, lambdas.
        const std::string scope = site.substr(0, at);
        if (scope != "" && scope != "(anonymous namespace)::") continue;
        if (site.find("::", at) != std::string::npos) continue;
        ASSERT_LT(i + 1, entry.frames.size()) << entry.line;
        EXPECT_TRUE(entry.frames[i + 1].function.starts_with("main"))
            << site << ": " << entry.frames[i + 1].function;
        ++seen;
      }
    }
    EXPECT_GE(seen, 8u);
  }
  Memlog log_of(const Command& command) const { return only_log(expect_exit(run(command)).pid); }
};

const Sites CallsTest::kForms = {
    {"site_malloc malloc", {33, 3}},
    {"site_calloc calloc", {66, 3}},
    {"site_realloc realloc", {99, 3}},
    {"site_reallocarray reallocarray", {132, 3}},
    {"site_memalign memalign", {165, 3}},
    {"site_posix_memalign posix_memalign", {198, 3}},
    {"site_aligned_alloc aligned_alloc", {384, 3}},
    {"site_new new", {231, 3}},
    {"site_new_array new[]", {264, 3}},
    {"site_new_nothrow nothrow-new[]", {99, 1}},
    {"site_aligned_new aligned-new", {101, 1}},
    {"site_aligned_new_array aligned-new[]", {102, 1}},
    {"site_aligned_nothrow aligned-nothrow-new", {103, 1}},
    {"site_aligned_nothrow_array aligned-nothrow-new[]", {104, 1}},
    {"site_wide aligned-new", {128, 1}},
    {"site_strdup strdup", {13, 1}},
    {"site_strndup strndup", {7, 1}},
    {"site_wcsdup wcsdup", {16, 1}},
    {"site_large_new new", {100000, 1}},
    {"site_zero_new new", {1, 1}},
    {"site_zero_new_array nothrow-new[]", {1, 1}},
    {"site_zero_aligned aligned-new", {1, 1}},
    {"site_zero_aligned_array aligned-nothrow-new[]", {1, 1}},
    {"site_zero_malloc malloc", {0, 1}},
    {"site_after_strdup malloc", {44, 1}},
    {"site_after_strdup strdup", {0, 0}},
    // One call through a pointer.
    {"site_pointer malloc", {5000, 5}},
    {"site_pointer new", {10000, 5}},
    {"site_pointer new[]", {15000, 5}},
    {"site_pointer valloc", {20000, 5}},
};

TEST_F(CallsTest, OfEveryForm) {
  EXPECT_EQ(calls_of(log_of(named({program("call_forms")}))), kForms);
}

// Where the allocator has operators of its own: the aligned ones of jemalloc are libstdc++'s.
TEST_F(CallsTest, OfOtherAllocators) {
  for (const char* allocator :
       {"libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"}) {
    Command command = named({program("call_forms")});
    SCOPED_TRACE(allocator);
    command.env["LD_PRELOAD"] += std::string(":") + allocator;
    const Memlog log = log_of(command);
    EXPECT_EQ(calls_of(log), kForms);
    expect_whole(log);
  }
}

// By callers of both compilers, with frame pointers and without. (mimalloc ends this program.)
TEST_F(CallsTest, CallersOfEachOperatorOfOtherAllocators) {
  for (const char* allocator : {"libtcmalloc_minimal.so.4", "libjemalloc.so.2"}) {
    for (const char* compiler : {"gcc.O2.pie.nofp", "gcc.O0.pie.fp", "clang.O2.pie.nofp"}) {
      SCOPED_TRACE(std::string(allocator) + ' ' + compiler);
      const Result result =
          expect_exit(run(named({program(std::string("truth_cxx.") + compiler), "signals"},
                                {{"LD_PRELOAD", library() + ":" + allocator}})));
      expect_whole(logs_of(result.pid).at(0));
    }
  }
}

// The form of a call whose block is not recorded must not be given to a later one.
TEST_F(CallsTest, OfSamples) {
  for (const char* mean : {"1", "64", "4K"}) {
    for (const auto& [call, amount] :
         calls_of(log_of(named({program("call_forms")}, {{"MTRACE_SAMPLE", mean}})))) {
      EXPECT_TRUE(kForms.contains(call)) << mean << ": " << call;
    }
  }
}

// As the ledger of a process that is killed has them, whatever the size of its pages.
TEST_F(CallsTest, Recovered) {
  const Words emulated = {"4096", "16384", "65536"};
  for (const std::string& page : emulator().empty() ? Words{""} : emulated) {
    SCOPED_TRACE(page);
    Command command = named({program("call_forms"), "pause"});
    command.env["MTRACE_LEDGER"] = temp();
    if (!page.empty()) command.env["QEMU_PAGESIZE"] = page;
    Ready process(command);
    process.end(SIGKILL);
    const std::string ledger = temp() + "/call_forms-" + process.id() + ".ledger";
    expect_exit(memlog({"recover", ledger, "-o", temp() + "/recovered.memlog"}));
    const Memlog log = read_memlog(temp() + "/recovered.memlog");
    EXPECT_EQ(calls_of(log), kForms);
    EXPECT_TRUE(log.has("usable"));
    utsname here = {};
    ASSERT_EQ(::uname(&here), 0);
    const std::string processor = emulator().empty() ? here.machine : "aarch64";
    EXPECT_TRUE(log.get("host").ends_with(" arch=" + processor)) << log.get("host");
    // The same after memlog pack, and in a format of other tools.
    const std::string elsewhere = temp() + "/elsewhere" + page;
    const std::string archive = elsewhere + ".tar";
    expect_exit(memlog({"pack", "-o", archive, ledger}));
    expect_exit(run(plain({"/usr/bin/tar", "-C", temp(), "-xf", archive})));
    const std::string there = elsewhere + ledger.substr(ledger.rfind('/'));
    const std::string report = elsewhere + "/recovered.memlog";
    expect_exit(memlog({"recover", there, "-o", report}));
    EXPECT_EQ(calls_of(read_memlog(report)), kForms);
    int64_t bytes = 0;
    for (const std::string& line : lines_of(memlog({"export", "-f", "folded", report}).out)) {
      bytes += std::stoll(line.substr(line.rfind(' ')));
    }
    EXPECT_EQ(bytes, log.amount("live").bytes);
  }
}

TEST_F(CallsTest, ShownAndChosen) {
  const Memlog log = log_of(named({program("call_forms")}));
  const Result shown =
      expect_exit(memlog({"show", "--call", "new[]", "--call", "aligned-new", "--json", log.path}));
  std::map<std::string, int64_t> bytes;
  const auto view = nlohmann::json::parse(shown.out);
  for (const auto& stack : view["reports"][0]["stacks"]) {
    bytes[stack["call"]] += stack["bytes"].get<int64_t>();
  }
  EXPECT_EQ(bytes, (std::map<std::string, int64_t>{{"new[]", 264 + 15000},
                                                   {"aligned-new", 101 + 128 + 1}}));
  EXPECT_HAS(memlog({"show", log.path}).out, "by aligned-new[]");
  EXPECT_HAS(expect_exit(memlog({"show", "--call", "new()", log.path}), 2).err, "--call new()");
}

// The sum of malloc_usable_size() over what lives.
TEST_F(CallsTest, UsableBytes) {
  const Result result = expect_exit(run(named({program("usable"), "signals"})));
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_GE(logs.size(), 2u);
  for (int phase = 1; phase <= 2; ++phase) {
    const std::string told = "usable " + std::to_string(phase) + ' ';
    const size_t at = result.out.find(told);
    ASSERT_NE(at, std::string::npos) << result.out;
    EXPECT_EQ(logs[phase - 1].get("usable"),
              std::to_string(std::stoll(result.out.substr(at + told.size()))) + " bytes");
  }
}

TEST_F(CallsTest, Controls) {
  const Result result = expect_exit(run(named({program("controls"), "signals"})));
  const std::vector<Memlog> logs = logs_of(result.pid, 3);
  EXPECT_EQ(calls_of(logs[0], "control"), (Sites{{"site_mallopt mallopt", {0, 1}},
                                                 {"site_trim malloc_trim", {0, 1}},
                                                 {"site_info mallinfo", {0, 1}}}));
  EXPECT_EQ(calls_of(logs[1], "control"), (Sites{{"site_info2 mallinfo2", {0, 100}}}));
  const auto notes = [](const Memlog& log) {
    Words lines;
    for (const std::string& note : log.all("note")) {
      // 2026-11-20T20:15:31.123456Z TEXT
      if (note.find("called at stack=") != note.npos) lines.push_back(note.substr(28));
    }
    return lines;
  };
  const Words first = notes(logs[0]);
  ASSERT_EQ(first.size(), 3u);
  EXPECT_TRUE(first[0].starts_with("mallopt(M_ARENA_MAX, 2) returned 1, called at stack="));
  EXPECT_TRUE(first[1].starts_with("malloc_trim(1000) returned "));
  EXPECT_TRUE(first[2].starts_with("mallinfo() found "));
  const std::string id = first[0].substr(first[0].find("stack=") + 6);
  for (const Entry& entry : logs[0].entries) {
    if (entry.call == "mallopt") {
      EXPECT_EQ(entry.stack, id) << entry.line;
    }
  }
  EXPECT_EQ(notes(logs[1]).size(), 16u) << "a quarter of the places for notes";
  EXPECT_EQ(notes(logs[2]).size(), 0u);
}

}  // namespace
}  // namespace mtrace::test
