// Names: the resolver fills them in after a report and does not show in the host; `memlog resolve`
// does the same later. The names are held against the symbol table as nm prints it.
#include <sys/resource.h>

#include <tuple>

#include "host_test.h"

namespace mtrace::test {
namespace {

class ResolverTest : public HostTest {
 protected:
  std::vector<Memlog> run_named(const std::string& name) {
    const Result result = expect_exit(run(named({program(name), "signals"})));
    EXPECT_EQ(result.err, "");
    told_ = told_sites(result.out);
    return logs_of(result.pid);
  }
  Result resolve(Words arguments) const { return memlog(joined({"resolve"}, arguments)); }
  // `resolved` says "partly" where a stripped system library has no name for a frame.
  // Every frame of the program has the name that nm says (or, inlined, belongs to one that has),
  // and a line of its source.
  static void expect_names(const std::vector<Memlog>& logs, const std::string& module,
                           const std::string& source) {
    const Symbols symbols(module);
    int seen = 0;
    for (const Memlog& log : logs) {
      EXPECT_NE(log.get("resolved"), "no") << log.path;
      for (const Entry& entry : log.entries) {
        for (const Frame& frame : entry.frames) {
          if (frame.module != module) continue;
          const std::string name = symbols.at(frame.offset);
          if (!name.starts_with("site_")) continue;
          EXPECT_EQ(frame.function.substr(0, frame.function.find_first_of("(.[ ")),
                    name.substr(0, name.find('.')))
              << log.path << ":" << entry.line;
          EXPECT_HAS(frame.source, source + ":") << log.path << entry.line;
          ++seen;
        }
      }
    }
    EXPECT_GT(seen, 10);
  }
  std::map<int, Sites> told_;
};

TEST_F(ResolverTest, NamesAreFilledIn) {
  for (const char* name : {"truth_c.gcc.O2.pie.nofp", "truth_c.clang.O0.nopie.fp"}) {
    const std::vector<Memlog> logs = run_named(name);
    ASSERT_EQ(logs.size(), 5u);
    expect_names({logs[0], logs[1]}, program(name), "truth_c.c");
    EXPECT_EQ(named_site_sums({logs[0]}), told_.at(1)) << describe(named_site_sums({logs[0]}));
  }
}

TEST_F(ResolverTest, CxxNamesAndInlinedFrames) {
  for (const char* name : {"truth_cxx.gcc.O2.nopie.nofp", "truth_cxx.clang.O2.pie.nofp"}) {
    const std::vector<Memlog> logs = run_named(name);
    ASSERT_EQ(logs.size(), 4u);
    expect_names({logs[0], logs[1]}, program(name), "truth_cxx.cc");
    bool demangled = false;
    bool inlined = false;
    for (const Entry& entry : logs[0].entries) {
      for (const Frame& frame : entry.frames) {
        demangled |= frame.function.starts_with("operator new");
        inlined |= frame.inlined;
        EXPECT_FALSE(frame.function.starts_with("_Z")) << frame.function;
      }
    }
    EXPECT_TRUE(demangled);
    EXPECT_TRUE(inlined) << "containers at -O2";
  }
}

// Resolving changes frames and nothing else, and a second time changes nothing.
TEST_F(ResolverTest, ResolveKeepsEverythingElse) {
  const Result result = run(traced({program("truth_cxx.gcc.O2.pie.nofp"), "signals"}));
  const std::vector<Memlog> raw = logs_of(result.pid, 4);
  expect_exit(resolve({raw[0].path}));
  const Memlog resolved = read_memlog(raw[0].path);
  const std::string text = read_file(raw[0].path);
  EXPECT_NE(resolved.get("resolved"), "no");
  ASSERT_EQ(resolved.entries.size(), raw[0].entries.size());
  for (size_t i = 0; i < resolved.entries.size(); ++i) {
    Entry one = resolved.entries[i];
    const Entry& other = raw[0].entries[i];
    EXPECT_EQ(std::tie(one.bytes, one.blocks, one.live, one.stack, one.cut),
              std::tie(other.bytes, other.blocks, other.live, other.stack, other.cut));
    std::erase_if(one.frames, [](const Frame& frame) { return frame.inlined; });
    ASSERT_EQ(one.frames.size(), other.frames.size());
    for (size_t k = 0; k < one.frames.size(); ++k) {
      EXPECT_EQ(one.frames[k].module, other.frames[k].module);
      EXPECT_EQ(one.frames[k].offset, other.frames[k].offset);
    }
  }
  expect_exit(resolve({raw[0].path}));
  EXPECT_EQ(read_file(raw[0].path), text);
  // To another file, or to standard output: the input stays.
  const std::string before = read_file(raw[1].path);
  const Result printed = expect_exit(resolve({"-o", "-", raw[1].path}));
  EXPECT_EQ(read_file(raw[1].path), before);
  EXPECT_NE(parse_memlog(printed.out, raw[1].path).get("resolved"), "no");
}

// In the background behind everybody else; but while the program waits for it at its end, as the
// program itself. It is the first to go when memory is short, and leaves no core file.
TEST_F(ResolverTest, NicenessAndLimits) {
  const std::string tool = temp() + "/tool";
  write_script(tool, "#!/bin/sh\ncd " + temp() +
                         "\n/usr/bin/nice >>niceness\nread adjustment </proc/self/oom_score_adj\n"
                         "echo $adjustment $(ulimit -v) $(ulimit -c) >limits\n");
  Command command = traced({program("idle"), "poll"}, {{"MTRACE_RESOLVER", tool}});
  run(command);
  EXPECT_LE(std::stoi(read_file(temp() + "/niceness")), ::getpriority(PRIO_PROCESS, 0));
  EXPECT_EQ(read_file(temp() + "/limits"), "1000 8388608 0\n");

  fs::remove(temp() + "/niceness");
  command.env["MTRACE_EXIT_REPORT"] = "0";
  Process process(command, "ready");
  process.send(SIGUSR1);
  wait_for_report("idle", process.pid(), 1);
  process.wait();
  EXPECT_EQ(std::stoi(read_file(temp() + "/niceness")), 19);
}

// memlog runs under the library's environment, but never traces itself.
TEST_F(ResolverTest, ToolIsNotTraced) {
  const Result result = run(traced({program("exits"), "return"}));
  const std::vector<Memlog> logs = logs_of(result.pid, 1);
  EXPECT_NE(expect_exit(run(traced({memlog_tool(), "show", logs[0].path}))).out, "");
  EXPECT_EQ(all_logs().size(), 1u);
}

// The first process of a pid namespace is its init, and when that ends, nobody can start another.
TEST_F(ResolverTest, NamespaceOfItsChildrenIsItsOwn) {
  const Result bare = run(plain({program("namespaces")}));
  if (bare.exited(77)) GTEST_SKIP() << "this user may make no pid namespace";
  EXPECT_EQ(bare.out, "two children\n");
  const Result result = expect_exit(run(named({program("namespaces")})));
  EXPECT_EQ(result.out, bare.out);
  EXPECT_EQ(logs_of(result.pid).size(), 2u);
}

// What starts the tool never has a copy of the program's descriptors, be it for a moment: a socket
// that the program closes would stay open, and in an epoll set.
TEST_F(ResolverTest, ClosedIsClosed) {
  const Result result =
      expect_exit(run(traced({program("closes"), "200"}, {{"MTRACE_RESOLVER", "/bin/true"}})), 5);
  // A socket has a low descriptor for a moment, before it gets a high one. One that the child of a
  // report copies in just this moment is held until that child runs on. A tool that keeps what it
  // was given holds one or more in each of the 200 reports.
  EXPECT_LT(std::stoi(result.out), 20) << result.out;
  EXPECT_GT(logs_of(result.pid).size(), 100u);
}

}  // namespace
}  // namespace mtrace::test
