// memlog pack: names on a machine without the files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "expect.h"
#include "resolve_fixture.h"

namespace mtrace::test {
namespace {

namespace fs = std::filesystem;

// Leaves a report, and a copy of its ledger as if it had been killed.
constexpr char kOrders[] = R"(
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
namespace shop {
struct Order { char text[40]; };
__attribute__((noinline)) Order* remember() { return new Order(); }
}
shop::Order* all[100];
int main() {
  for (shop::Order*& one : all) one = shop::remember();
  raise(SIGUSR1);
  const int from = open("data/live", O_RDONLY), to = open("data/a.ledger", O_WRONLY | O_CREAT, 0600);
  while (copy_file_range(from, nullptr, to, nullptr, 1 << 30, 0) > 0) {}
}
)";

class Pack : public Resolve {
 protected:
  // Runs a program built with these flags in home/. Returns nothing; the files are in home/data.
  void record(const std::string& flags) {
    write_file(directory_ / "orders.cc", kOrders);
    shell("mkdir -p {0}/home/data && {1} -g -O2 {2} -o {0}/home/orders {0}/orders.cc",
          directory_.path(), compiler(), Script{flags});
    shell(
        "cd {0}/home && env LD_PRELOAD={1} MTRACE_OUTPUT=data/a MTRACE_LEDGER=data/live "
        "MTRACE_EVENTS=data/a.events MTRACE_DEPTH=2 MTRACE_EXIT_REPORT=0 MTRACE_RESOLVER={2} "
        "MTRACE_EXIT_WAIT=600 ./orders && mv data/a-*-1.memlog data/a.memlog",
        directory_.path(), library(), memlog_tool());
  }

  // Packs home/data, unless other words are given, and takes home/ away.
  Outcome pack(const std::vector<std::string>& options) {
    std::vector<std::string> words = {"pack", "-o", archive_, directory_ / "home/data"};
    words.insert(words.end(), options.begin(), options.end());
    Outcome result = memlog(words);
    fs::rename(directory_ / "home", directory_ / "away");
    return result;
  }

  std::string unpack() {
    fs::create_directory(directory_ / "elsewhere");
    shell("tar -C {} -xf {}", directory_ / "elsewhere", archive_);
    return directory_ / "elsewhere/home";
  }

  // What commands show of the files in a directory.
  static std::vector<std::string> views(const std::string& place) {
    std::vector<std::string> out;
    for (std::vector<std::string> words : std::vector<std::vector<std::string>>{
             {"events", "/a.events"},
             {"sql", "--format", "csv",
              "select function, file, line, module from frames order by 1, 2, 3, 4", "/a.events"},
             {"recover", "-o", "-", "/a.ledger"},
             {"show", "--frames", "all", "/a.memlog"},
             {"tree", "/a.memlog"},
             {"export", "-f", "folded", "/a.memlog"}}) {
      words.back() = place + words.back();
      const Outcome result = memlog(words);
      EXPECT_EQ(result.status, 0) << words[0] << ": " << result.err;
      out.push_back(result.out);
    }
    return out;
  }

  void expect_same_views(const std::string& flags, const Script& change) {
    record(flags);
    shell("cd {}/home && {}", directory_.path(), change);
    const auto before = views(directory_ / "home/data");
    for (const std::string& view : before) {
      EXPECT_HAS(view, "shop::remember");
    }
    const Outcome packed = pack({});
    EXPECT_EQ(packed.status, 0);
    EXPECT_EQ(packed.err, "");
    EXPECT_EQ(views(unpack()), before);
    // It is the symbols that do it.
    fs::remove_all(directory_ / "elsewhere/home/symbols");
    const auto without = views(directory_ / "elsewhere/home");
    EXPECT_LACKS(without[0], "shop::remember");
    EXPECT_LACKS(without[2], "shop::remember");
    EXPECT_EQ(without[3], before[3]);
  }

  // The symbols file of home/orders.
  std::string packed_orders(const std::string& place) const {
    const std::string id = build_id_of(directory_ / "away/orders");
    return fmt::format("{}/symbols/.build-id/{}/{}", place, id.substr(0, 2), id.substr(2));
  }

  std::string archive_ = directory_ / "home.tar.zst";
};

TEST_F(Pack, NamesAreTheSameWithoutTheProgram) {
  expect_same_views("", Script{"true"});
  fs::remove_all(directory_ / "elsewhere");
  const std::string sections = shell("readelf -SW {}", packed_orders(unpack()));
  for (const char* code : {".text", ".rodata", ".eh_frame"}) {
    const std::string line = sections.substr(sections.find(code));
    EXPECT_HAS(line.substr(0, line.find('\n')), "NOBITS");
  }
}

TEST_F(Pack, NamesOfASeparateDebugFile) {
  expect_same_views("", Script{"objcopy --only-keep-debug orders orders.debug && strip orders && "
                               "objcopy --add-gnu-debuglink=orders.debug orders"});
}

TEST_F(Pack, NamesOfAModuleWithoutBuildId) {
  expect_same_views("-Wl,--build-id=none", Script{"true"});
}

// Fedora's: the symbol table in a section, compressed.
TEST_F(Pack, NamesOfASymbolTableInASection) {
  expect_same_views("", Script{"objcopy --only-keep-debug orders mini && strip -g mini && "
                               "strip orders && python3 -c 'import lzma, sys; sys.stdout.buffer."
                               "write(lzma.compress(sys.stdin.buffer.read()))' <mini >mini.xz && "
                               "objcopy --add-section .gnu_debugdata=mini.xz orders"});
}

TEST_F(Pack, NamesOfASeparateDebugFileWithoutBuildId) {
  expect_same_views("-Wl,--build-id=none",
                    Script{"objcopy --only-keep-debug orders orders.debug && strip orders && "
                           "objcopy --add-gnu-debuglink=orders.debug orders"});
}

TEST_F(Pack, BinariesAreWhole) {
  record("");
  EXPECT_EQ(pack({"--binaries"}).status, 0);
  shell("cmp {} {}/away/orders", packed_orders(unpack()), directory_.path());
}

TEST_F(Pack, DataIsAsItWas) {
  record("");
  // Longer than a name in tar's header.
  fs::rename(directory_ / "home/data/a.events",
             directory_ / "home/data/" + std::string(150, 'a') + ".events");
  EXPECT_EQ(pack({}).status, 0);
  shell(
      "cd {0}/away/data && for i in *.events *.ledger; do cmp $i {1}/$i && "
      "test \"$(stat -c %y $i)\" = \"$(stat -c %y {1}/$i)\"; done",
      directory_.path(), unpack());
  EXPECT_EQ(shell("tar --zstd -tf {} | grep -c events", archive_), "1\n");
}

TEST_F(Pack, ReportsGetTheirNames) {
  const std::string file = build("known", "-fPIE -pie");
  const auto marks = marks_of(file);
  const std::string data = directory_ / "data";
  fs::create_directory(data);
  write_file(data + "/r-1.memlog",
             small_memlog(frames_at_marks(file, file), module_line(file, build_id_of(file))));
  EXPECT_EQ(memlog({"pack", "-o", archive_, data}).out,
            archive_ + ": 1 report; symbols of 0 modules\n");
  fs::remove(file);
  const std::string text = read_file(unpack() + "/r-1.memlog");
  EXPECT_HAS(text, "app::Store::grow(long, char const*)\tknown_stack.cc:");
}

TEST_F(Pack, SaysWhatIsMissing) {
  record("");
  fs::remove(directory_ / "home/orders");
  write_file(directory_ / "home/data/cut.memlog", "# memlog 2\n# program: /bin/app\n");
  const Outcome packed = pack({});
  EXPECT_EQ(packed.status, 2);
  EXPECT_HAS(packed.err, "/home/orders is here: its frames");
  EXPECT_HAS(packed.err, "cut.memlog:2: ");
  EXPECT_TRUE(fs::exists(unpack() + "/cut.memlog"));
}

TEST_F(Pack, RefusesWhatItWouldLose) {
  for (const char* place : {"a", "b", "none"}) fs::create_directory(directory_ / place);
  for (const char* file : {"a/x.memlog", "b/x.memlog", "none/y"}) {
    write_file(directory_ / file, small_memlog({"(0x1)"}));
  }
  const auto says = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all = {"pack", "-o", archive_};
    all.insert(all.end(), words.begin(), words.end());
    const Outcome result = memlog(all);
    EXPECT_EQ(result.status, 2);
    return result.err;
  };
  EXPECT_EQ(says({directory_ / "a", directory_ / "b"}),
            "memlog: pack: two files are called x.memlog: their directories would be lost\n");
  EXPECT_EQ(says({directory_ / "none"}),
            fmt::format("memlog: pack: no memlog, event log, timeline or ledger in {}/none\n",
                        directory_.path()));
  write_file(directory_ / "none/y", "text");
  EXPECT_EQ(says({directory_ / "none/y"}),
            fmt::format("memlog: pack: {}/none/y is no memlog, event log, timeline or ledger\n",
                        directory_.path()));
  EXPECT_FALSE(fs::exists(archive_));
}

}  // namespace
}  // namespace mtrace::test
