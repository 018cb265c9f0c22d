// memlog pack and unpack: names on a machine without the files, and archives that are not to be
// trusted.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "resolve_fixture.h"
#include "util/tar.h"

namespace mtrace::test {
namespace {

namespace fs = std::filesystem;

// Leaves a report, and a copy of its ledger as if it had been killed.
constexpr char kOrders[] = R"(
#include <csignal>
#include <filesystem>
#include <vector>
namespace shop {
struct Order { char text[40]; };
__attribute__((noinline)) void remember(std::vector<Order>& all) { all.push_back(Order()); }
}
int main() {
  static std::vector<shop::Order> all;
  for (int i = 0; i < 100; ++i) shop::remember(all);
  std::raise(SIGUSR1);
  std::filesystem::copy_file("data/live", "data/a.ledger");
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
        "MTRACE_EVENTS=data/a.events MTRACE_EXIT_REPORT=0 MTRACE_RESOLVER={2} "
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
    std::string place = directory_ / "elsewhere";
    const Outcome result = memlog({"unpack", "-o", place, archive_});
    EXPECT_EQ(result.status, 0) << result.err;
    return place;
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
      EXPECT_NE(view.find("shop::remember"), std::string::npos) << view.substr(0, 2000);
    }
    const Outcome packed = pack({});
    EXPECT_EQ(packed.status, 0);
    EXPECT_EQ(packed.err, "");
    EXPECT_EQ(views(unpack()), before);
    // It is the symbols that do it.
    fs::remove_all(directory_ / "elsewhere/symbols");
    const auto without = views(directory_ / "elsewhere");
    EXPECT_EQ(without[0].find("shop::remember"), std::string::npos);
    EXPECT_EQ(without[2].find("shop::remember"), std::string::npos);
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
    EXPECT_NE(line.substr(0, line.find('\n')).find("NOBITS"), std::string::npos) << line;
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
  EXPECT_NE(text.find("app::Store::grow(long, char const*)\tknown_stack.cc:"), std::string::npos)
      << text;
}

TEST_F(Pack, SaysWhatIsMissing) {
  record("");
  fs::remove(directory_ / "home/orders");
  write_file(directory_ / "home/data/cut.memlog", "# memlog 2\n# program: /bin/app\n");
  const Outcome packed = pack({});
  EXPECT_EQ(packed.status, 2);
  EXPECT_NE(packed.err.find("/home/orders is here: its frames"), std::string::npos) << packed.err;
  EXPECT_NE(packed.err.find("cut.memlog:2: "), std::string::npos) << packed.err;
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

class Unpack : public testing::Test {
 protected:
  // Unpacks into DIR/to, whose content is `before`.
  std::string says(int status, const std::vector<std::string>& options = {}) {
    std::vector<std::string> words = {"unpack", "-o", directory_ / "to", archive_};
    words.insert(words.end(), options.begin(), options.end());
    const Outcome result = memlog(words);
    EXPECT_EQ(result.status, status);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), status == 0 ? 0 : 1)
        << result.err;
    const std::string own = "memlog: " + archive_;
    return result.err.starts_with(own) ? result.err.substr(own.size()) : result.err;
  }
  // An archive as Python makes it: a member for each of these.
  void make(const std::string& members) {
    write_file(directory_ / "make.py", R"(
import io, sys, tarfile
out = tarfile.open(sys.argv[1], 'w', format=tarfile.PAX_FORMAT)
def add(name, content=b'x', kind=tarfile.REGTYPE, link=''):
    member = tarfile.TarInfo(name)
    member.size, member.type, member.linkname = len(content), kind, link
    out.addfile(member, io.BytesIO(content))
)" + members + "\nout.close()\n");
    shell("python3 {} {}", directory_ / "make.py", archive_);
  }
  size_t files_below() const {
    const auto all = fs::recursive_directory_iterator(directory_ / "to");
    return static_cast<size_t>(std::count_if(
        fs::begin(all), fs::end(all), [](const auto& entry) { return entry.is_regular_file(); }));
  }

  TemporaryDirectory directory_;
  std::string archive_ = directory_ / "a.tar";
};

TEST_F(Unpack, StaysBelowItsDirectory) {
  for (const std::string name : {"../out", "/tmp/out", "a/../../out", "a//b", "./a", "a/"}) {
    make(fmt::format("add('{}')", name));
    EXPECT_EQ(says(2),
              fmt::format(" has a file that would lie outside of the directory: {}\n", name));
  }
  make("add('link', b'', tarfile.SYMTYPE, '/tmp')");
  EXPECT_EQ(says(2), " has link, which is a link or a device: memlog unpack makes only files\n");
  make("add('d/out')");
  fs::create_directory_symlink(directory_.path(), directory_ / "to/d");
  EXPECT_NE(says(1, {"--force"}).find("cannot write below"), std::string::npos);
  EXPECT_EQ(files_below(), 0U);
  EXPECT_FALSE(fs::exists(directory_ / "out"));
}

TEST_F(Unpack, ReplacesOnlyWhenAsked) {
  fs::create_directory(directory_ / "to");
  write_file(directory_ / "to/a", "mine");
  write_file(directory_ / "other", "mine");
  fs::create_symlink(directory_ / "other", directory_ / "to/b");
  make("add('a', b'new'); add('b', b'new')");
  EXPECT_EQ(says(1), fmt::format("memlog: {}/to/a is there already; --force replaces it\n",
                                 directory_.path()));
  EXPECT_EQ(read_file(directory_ / "to/a"), "mine");
  EXPECT_EQ(says(0, {"--force"}), "");
  EXPECT_EQ(read_file(directory_ / "to/a"), "new");
  EXPECT_EQ(read_file(directory_ / "to/b"), "new");
  EXPECT_EQ(read_file(directory_ / "other"), "mine");
}

TEST_F(Unpack, KeepsZerosAndLengths) {
  make("add('a', bytes(200000) + b'end' + bytes(70001)); add('" + std::string(120, 'n') +
       "'); add('empty', b'')");
  EXPECT_EQ(says(0), "");
  EXPECT_EQ(read_file(directory_ / "to/a"),
            std::string(200000, '\0') + "end" + std::string(70001, '\0'));
  EXPECT_EQ(read_file(directory_ / "to/" + std::string(120, 'n')), "x");
  EXPECT_TRUE(fs::exists(directory_ / "to/empty"));
}

TEST_F(Unpack, IsBounded) {
  make("add('a', bytes(700)); add('b', bytes(400))");
  EXPECT_EQ(says(2, {"--max-size", "1K"}),
            " has more than 1024 bytes or 1000000 files; --max-size allows more bytes\n");
  EXPECT_FALSE(fs::exists(directory_ / "to/b"));
  EXPECT_EQ(says(0, {"--max-size", "1100", "--force"}), "");
}

TEST_F(Unpack, DamagedOrCutShort) {
  make("add('a'); add('b', bytes(5000))");
  const std::string whole = read_file(archive_);
  const auto with = [&](const std::string& content) {
    write_file(archive_, content);
    return says(2, {"--force"});
  };
  EXPECT_EQ(with(whole.substr(0, 700)), " is cut short behind a\n");
  EXPECT_EQ(with(whole.substr(0, 1200)), " is cut short in a header\n");
  EXPECT_EQ(with(whole.substr(0, 3000)), " is cut short in b\n");
  EXPECT_TRUE(fs::exists(directory_ / "to/a"));
  EXPECT_FALSE(fs::exists(directory_ / "to/b"));
  EXPECT_EQ(with(whole.substr(0, 1024)), " is cut short: its end is missing\n");
  EXPECT_EQ(with("text" + std::string(600, 'x')), " is no archive of memlog pack\n");
  std::string damaged = whole;
  damaged[1] ^= 1;
  EXPECT_EQ(with(damaged), " is damaged: the checksum of a header is wrong\n");
  EXPECT_EQ(with(whole + std::string(2 << 20, 'x')), " has something else behind its end\n");
  // A byte that only the checksum at the end tells.
  make("import random; random.seed(1); add('a', random.randbytes(5000))");
  shell("cd {} && zstd -q --check a.tar -o b.zst", directory_.path());
  const std::string compressed = read_file(directory_ / "b.zst");
  damaged = compressed;
  damaged[compressed.size() / 2] ^= 1;
  EXPECT_TRUE(with(damaged).starts_with(": the compressed data is damaged (zstd: "));
  EXPECT_EQ(with(compressed.substr(0, 1000)), ": the compressed file is cut short\n");
}

}  // namespace
}  // namespace mtrace::test
