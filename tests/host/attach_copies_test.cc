// memlog attach on processes that have mapped a library once more than they run it: only the copy
// that the loader lists is called, patched and guarded.
#include "host_test.h"

namespace mtrace::test {
namespace {

constexpr char kLibc[] = "libc.so.6";
constexpr char kLoader[] = "ld-linux-x86-64.so.2";

// The file of a library by its name, as the loader finds it.
std::string file_of(const std::string& name) {
  for (const char* directory : {"/lib/x86_64-linux-gnu/", "/usr/lib/x86_64-linux-gnu/"}) {
    if (fs::exists(directory + name)) {
      return fs::canonical(directory + name);
    }
  }
  return name;
}

class AttachCopiesTest : public HostTest {
 protected:
  // `kind`: "below:read" and the like. `preload`: libraries besides.
  Command with_copies(Words argv, const std::string& kind, const Words& files,
                      const std::string& preload = "") const {
    std::string mappings = kind;
    for (const std::string& file : files) mappings += ":" + file;
    return plain(std::move(argv), {{"LD_PRELOAD", preload + program("plugin_second_mappings.so")},
                                   {"SECOND_MAPPINGS", mappings}});
  }
  void expect_good(const Result& result) const {
    expect_exit(result);
    EXPECT_EQ(result.err, "");
  }
  void expect_attached(pid_t pid) const {
    expect_good(memlog({"attach", std::to_string(pid)}));
    expect_good(memlog({"detach", std::to_string(pid)}));
  }
  void expect_refused(pid_t pid, const std::string& why) const {
    EXPECT_HAS(expect_exit(memlog({"attach", "--timeout", "1", std::to_string(pid)}), 1).err, why);
  }
};

TEST_F(AttachCopiesTest, LibcLoaderAndAllocatorsWhereverTheCopiesLie) {
  const Words files = {file_of(kLibc), file_of(kLoader), file_of("libjemalloc.so.2")};
  for (const char* kind : {"below:read", "above:read", "below:execute", "above:execute"}) {
    for (const char* preload : {"", "libjemalloc.so.2:"}) {
      SCOPED_TRACE(std::string(kind) + " " + preload);
      Ready process(with_copies({program("attached"), "busy"}, kind, files, preload));
      for (int round = 0; round < 2; ++round) expect_attached(process.pid());
      EXPECT_EQ(lines_of(expect_exit(process.wait()).out).back(), "done");
    }
  }
}

TEST_F(AttachCopiesTest, Counts) {
  for (const char* kind : {"below:read", "above:execute"}) {
    SCOPED_TRACE(kind);
    Ready process(with_copies({program("attached"), "sites"}, kind,
                              {file_of(kLibc), file_of(kLoader), program("attached")}));
    expect_good(memlog({"attach", process.id()}));
    process.say("aap", "told");
    expect_good(memlog({"report", process.id()}));
    expect_good(memlog({"detach", process.id()}));
    EXPECT_EQ(only_log(process.pid()).amount("live"), (Amount{2 * 321, 2}));
    expect_exit(process.wait());
  }
}

TEST_F(AttachCopiesTest, LibraryThatIsPreloadedIsFound) {
  for (const char* kind : {"below:read", "above:read"}) {
    SCOPED_TRACE(kind);
    Ready process(traced({program("idle"), "read"},
                         {{"LD_PRELOAD", library() + ":" + program("plugin_second_mappings.so")},
                          {"SECOND_MAPPINGS", std::string(kind) + ":" + library()}}));
    expect_good(memlog({"report", process.id()}));
    EXPECT_EQ(logs_of(process.pid()).size(), 1u);
    process.write("x");
    expect_exit(process.wait());
  }
}

TEST_F(AttachCopiesTest, InsideTheLoaderThatRuns) {
  for (const char* kind : {"below:read", "below:execute"}) {
    SCOPED_TRACE(kind);
    Ready process(with_copies({program("attached"), "loading", program("plugin_slow.so")}, kind,
                              {file_of(kLoader)}));
    expect_refused(process.pid(), std::string("is inside ") + kLoader);
    process.say("x", "loaded");
    expect_attached(process.pid());
    expect_exit(process.wait());
  }
}

TEST_F(AttachCopiesTest, InsideTheAllocatorThatRuns) {
  const std::string allocator = program("plugin_slow_allocator.so");
  Ready process(
      with_copies({program("attached"), "sites"}, "below:read", {allocator}, allocator + ":"));
  process.say("a", "inside");
  expect_refused(process.pid(), "is inside plugin_slow_allocator.so");
  process.say("xp", "told");
  expect_attached(process.pid());
  expect_exit(process.wait());
}

// Nothing is written over, and nothing called, that is not what the file has.
TEST_F(AttachCopiesTest, ChangedCodeIsRefused) {
  const auto expect_changed = [&](const std::string& what, const std::string& why) {
    Ready process(
        plain({program("attached"), "sites"},
              {{"LD_PRELOAD", program("plugin_changed_code.so")}, {"CHANGED_CODE", what}}));
    expect_refused(process.pid(), why);
    process.say("ap", "told");
    expect_exit(process.wait());
  };
  expect_changed("rest", "in the rest of a page of code that should be unused");
  // Its size, as nm prints it.
  const Result symbols = run(plain({"/usr/bin/nm", "-DS", file_of(kLibc)}));
  std::string size;
  for (const std::string& line : lines_of(symbols.out)) {
    if (line.find(" memfd_create@") != std::string::npos) {
      size = std::to_string(std::stoul(line.substr(17, 16), nullptr, 16));
    }
  }
  ASSERT_NE(size, "");
  expect_changed("memfd_create:" + size, "has modified memfd_create of libc.so.6 in memory");
}

// The loader and its list are found, too, when it was run as a program.
TEST_F(AttachCopiesTest, StartedThroughTheLoader) {
  Ready process(with_copies({file_of(kLoader), program("attached"), "busy"}, "below:read",
                            {file_of(kLibc), file_of(kLoader)}));
  expect_attached(process.pid());
  expect_exit(process.wait());
}

// Of a library that was removed, only root can read the file.
TEST_F(AttachCopiesTest, AllocatorThatWasRemoved) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  const std::string copy = temp() + "/libmalloc_of_ours.so";
  for (const std::string& directory : {temp(), out()}) {
    fs::permissions(directory, fs::perms::all);
  }
  for (const std::string& file : {memlog_tool(), library(), program("attached")}) {
    fs::copy_file(file, temp() + file.substr(file.rfind('/')));
  }
  fs::copy_file(program("plugin_slow_allocator.so"), copy);
  const auto as_nobody = [&](Words argv) {
    Command command = plain(
        joined({"/usr/bin/setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all"}, argv));
    command.directory = out();
    return command;
  };
  Ready process(as_nobody({"/usr/bin/env", "LD_PRELOAD=" + copy, temp() + "/attached", "sites"}));
  fs::remove(copy);
  const Result refused =
      expect_exit(run(as_nobody({temp() + "/memlog", "attach", process.id()})), 1);
  EXPECT_HAS(refused.err, "libmalloc_of_ours.so");
  EXPECT_HAS(refused.err, "cannot be read");
  expect_attached(process.pid());
  expect_exit(process.wait());
}

}  // namespace
}  // namespace mtrace::test
