// Names in memlogs, against a program whose functions and lines are known and against addr2line.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "model/profile/reader.h"
#include "model/symbols/perf_map.h"
#include "model/symbols/symbolizer.h"
#include "resolve_fixture.h"
#include "tool_test.h"
#include "util/text.h"

namespace mtrace::test {
namespace {

class ResolveBuild : public Resolve, public testing::WithParamInterface<const char*> {};

TEST_P(ResolveBuild, NamesInlinedAndOtherFunctions) {
  const std::string file = build("known", GetParam());
  const auto lines = resolve(frames_at_marks(file, file), module_line(file, build_id_of(file)));
  expect_known(lines, file, marks_of(file));
  EXPECT_TRUE(says("# resolved: yes\n"));
  EXPECT_FALSE(says("# note:"));
}

INSTANTIATE_TEST_SUITE_P(Flags, ResolveBuild,
                         testing::Values("-fPIE -pie", "-fno-pie -no-pie", "-gdwarf-4", "-gdwarf-5",
                                         "-gsplit-dwarf", "-gz=zlib",
                                         "-Wl,-Ttext-segment=0x30000000 -no-pie"));

TEST_F(Resolve, AgreesWithAddr2line) {
  // binutils 2.40 does not find the inlined functions of DWARF 5 by clang.
  const std::string file = build("known", "-fPIE -pie -gdwarf-4");
  // Each instruction of the fixture's functions, but none of the padding between them.
  const std::string listing = shell(
      "objdump -d --no-show-raw-insn -j .text {} | "
      "grep -vE 'nop|xchg|data16' | "
      "sed -n 's/^ *\\([0-9a-f]*\\):.*/\\1/p'",
      file);
  size_t compared = 0;
  std::vector<std::string> frames;
  std::string addresses;
  for (const std::string_view address : util::split(listing, '\n')) {
    if (address.empty()) continue;
    frames.push_back(fmt::format("({}+0x{})", file, address));
    addresses += fmt::format(" 0x{}", address);
  }
  ASSERT_GT(frames.size(), 20u);
  frames.resize(std::min<size_t>(frames.size(), 128));
  // addr2line -a -f -i: the address, then pairs of lines; -i begins with the innermost.
  const std::string independent = shell("addr2line -a -i -f -C -e {}{}", file, Script{addresses});
  std::map<std::string, std::vector<std::string>> expected;
  std::vector<std::string>* group = nullptr;
  std::string function;
  for (const std::string_view line : util::split(independent, '\n')) {
    if (line.starts_with("0x")) {
      std::string address(line.substr(2));
      address.erase(0, address.find_first_not_of('0'));
      group = &expected[address];
      function.clear();
    } else if (!line.empty() && function.empty()) {
      function = line;
    } else if (!line.empty()) {
      std::string source(line.substr(line.rfind('/') + 1));
      source = source.substr(0, source.find(' '));  // "(discriminator 3)"
      group->push_back(function + "\t" + source);
      function.clear();
    }
  }
  const auto lines = resolve(frames, module_line(file, build_id_of(file)));
  std::vector<std::string> chain;
  for (const std::string& line : lines) {
    const auto fields = util::split(line, '\t');
    if (fields.size() == 3) chain.push_back(fmt::format("{}\t{}", fields[0], fields[1]));
    if (fields.back() == "(inlined)") continue;
    // Code of the start files has no line: addr2line says ?, a memlog leaves it out.
    const std::string address(fields.back().substr(fields.back().rfind("0x") + 2));
    if (fields.size() == 3) {
      const auto& want = expected.at(address.substr(0, address.size() - 1));
      EXPECT_EQ(chain, want) << line;
      ++compared;
    }
    chain.clear();
  }
  EXPECT_GT(compared, 15u);
}

TEST_F(Resolve, MangledNamesOfEachLanguage) {
  const std::string file = directory_ / "mangled";
  write_file(directory_ / "versions", "OLD_1.0 {};");
  shell(
      "gcc -nostdlib -shared -Wl,--build-id -Wl,--version-script={0}/versions "
      "-o {1} {2}/tests/fixtures/mangled.s",
      directory_.path(), file, source_dir());
  std::vector<std::string> frames;
  const std::string symbols = shell("nm -n {} | grep ' T ' | grep -v @", file);
  for (const std::string_view line : util::split(symbols, '\n')) {
    if (line.empty()) continue;
    std::string address(line.substr(0, line.find(' ')));
    address.erase(0, address.find_first_not_of('0'));
    frames.push_back(fmt::format("({}+0x{})", file, address));
  }
  ASSERT_EQ(frames.size(), 7u);
  const auto lines = resolve(frames, module_line(file, build_id_of(file)));
  const char* names[] = {"app::Store::grow(unsigned long, char const*)",
                         "core::ptr::drop_in_place",
                         "mycrate::foo",
                         "<demo::Store>::grow",
                         "_Znot_a_mangled_name",
                         "plain_name",
                         "public_name"};
  ASSERT_EQ(lines.size(), 7u);
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(lines[i], fmt::format("{}\t{}", names[i], frames[i]));
}

TEST_F(Resolve, DamagedModulesAreLeft) {
  const std::string whole = build("known", "-fPIE -pie");
  const auto frames = frames_at_marks(whole, whole);
  const std::string image = read_file(whole);
  const std::string damaged = directory_ / "known";
  uint64_t random = 1;
  const auto next = [&random] {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(random >> 33);
  };
  for (int round = 0; round < 40; ++round) {
    std::string bytes = image;
    if (round % 4 == 0) bytes.resize(next() % bytes.size());
    // Headers first, where most is derived from each byte.
    for (int i = 0; i < 20; ++i)
      bytes[next() % (i % 2 == 0 ? 4096 : bytes.size()) % bytes.size()] = static_cast<char>(next());
    write_file(damaged, bytes);
    resolve(frames, module_line(damaged, ""));
    profile::read("f", text_);
  }
  write_file(damaged, "");
  EXPECT_EQ(resolve(frames, module_line(damaged, "")), frames);
  std::filesystem::remove(damaged);
  ASSERT_EQ(::mkfifo(damaged.c_str(), 0600), 0);
  EXPECT_EQ(resolve(frames, module_line(damaged, "")), frames);
}

TEST_F(Resolve, Vdso) {
  void* image = ::dlopen("linux-vdso.so.1", RTLD_NOLOAD | RTLD_LAZY);
  void* clock = image == nullptr ? nullptr : ::dlsym(image, "__vdso_clock_gettime");
  if (clock == nullptr) GTEST_SKIP() << "no vdso here";
  const uint64_t offset = reinterpret_cast<uintptr_t>(clock) - ::getauxval(AT_SYSINFO_EHDR);
  const std::string frame = fmt::format("([vdso]+0x{:x})", offset);
  const std::string here =
      fmt::format("# module: [vdso] base=0x0\n# host: {} boot-id={} arch=x86_64\n",
                  symbols::this_host(), symbols::this_boot_id());
  const auto lines = resolve({frame}, here);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].find("clock_gettime\t") != std::string::npos) << lines[0];
  const std::string elsewhere = "# module: [vdso] base=0x0\n# host: other boot-id=x arch=x86_64\n";
  EXPECT_EQ(resolve({frame}, elsewhere), std::vector<std::string>{frame});
}

TEST_F(Resolve, PerfMapOfThisMachineAlone) {
  // The pid of a process that has just ended: nobody else's map.
  const std::string pid = strip_end(shell("sh -c 'echo $$'"));
  const std::string map = "/tmp/perf-" + pid + ".map";
  write_file(map, "7f0000001000 40 LazyCompile:*hot /app.js:3\n7f0000001040 10 other\nrubbish\n");
  const auto report = [&](const std::string& boot_id, const std::string& started) {
    std::string text = small_memlog(
        {"(0x7f000000103f)", "(0x7f0000001050)"},
        fmt::format("# host: {} boot-id={} arch=x86_64\n", symbols::this_host(), boot_id));
    text.replace(text.find("4711"), 4, pid);
    text.replace(text.find("2026-11-20T20:15:00"), 19, started);
    write_file(directory_ / "jit.memlog", text);
    EXPECT_EQ(memlog({"resolve", directory_ / "jit.memlog"}).status, 0);
    return read_file(directory_ / "jit.memlog");
  };
  const std::string named = report(symbols::this_boot_id(), "2000-01-01T00:00:00");
  EXPECT_HAS(named, "\n\tLazyCompile:*hot /app.js:3\t(0x7f000000103f)\n\t(0x7f0000001050)\n");
  EXPECT_HAS(named, "# resolved: partly\n");
  EXPECT_LACKS(report("x", "2000-01-01T00:00:00"), "LazyCompile");
  // A map from before the process began is another process's.
  EXPECT_LACKS(report(symbols::this_boot_id(), "2999-01-01T00:00:00"), "LazyCompile");
  std::filesystem::remove(map);
}

// Of the names of one address the last one that was there when the report was taken counts.
TEST_F(Resolve, PerfMapAsItWasThen) {
  const std::string before = "1000 40 first\n1000 40 second\n";
  const symbols::PerfMap map(before + "1000 40 third\n2000 40 later\n2000 40 last\nrubbish",
                             before.size());
  EXPECT_EQ(*map.find(0x1000), "second");
  EXPECT_EQ(*map.find(0x203f), "last");
  EXPECT_EQ(map.find(0x2040), nullptr);
  EXPECT_EQ(*symbols::PerfMap(before + "1000 40 third\n").find(0x1000), "third");
  // In the middle of a line.
  EXPECT_EQ(*symbols::PerfMap(before, before.size() - 3).find(0x1000), "first");
}

// A jitdump by the specification of perf: two functions, of which one is moved, and one that comes
// to its old place; in each case as of so many bytes of the file.
TEST_F(Resolve, JitDump) {
  std::string file;
  const auto word = [&file](uint64_t value, size_t size) {
    file.append(reinterpret_cast<const char*>(&value), size);
  };
  const auto header = [&] {
    for (const uint64_t value : {0x4a695444, 1, 40, 62, 0, 4711}) word(value, 4);
    word(0, 8);
    word(0, 8);
  };
  const auto load = [&](uint64_t address, uint64_t index, const std::string& name) {
    word(0, 4);
    word(16 + 40 + name.size() + 1 + 3, 4);
    word(1, 8);
    word(4711, 4);
    word(4711, 4);
    for (const uint64_t value : {address, address, uint64_t{0x40}, index}) word(value, 8);
    file.append(name.c_str(), name.size() + 1);
    file.append("\x90\x90\xc3");
  };
  const auto move = [&](uint64_t from, uint64_t to, uint64_t index) {
    word(1, 4);
    word(16 + 48, 4);
    word(2, 8);
    word(4711, 4);
    word(4711, 4);
    for (const uint64_t value : {to, from, to, uint64_t{0x40}, index}) word(value, 8);
  };
  header();
  load(0x1000, 1, "first");
  load(0x2000, 2, "second\nline");
  const size_t before = file.size();
  move(0x1000, 0x3000, 1);
  load(0x1000, 3, "third");
  word(2, 4);  // of another kind, with nothing in it
  word(16, 4);
  word(3, 8);
  const auto name_at = [&](uint64_t then, uint64_t address) {
    const symbols::JitDumpLines lines = symbols::jit_dump_lines(file, then);
    const symbols::PerfMap map(lines.text, lines.then);
    const std::string* name = map.find(address);
    return name == nullptr ? std::string() : *name;
  };
  EXPECT_EQ(name_at(before, 0x1000), "first");
  EXPECT_EQ(name_at(file.size(), 0x1000), "third");
  EXPECT_EQ(name_at(before, 0x203f), "second line");
  EXPECT_EQ(name_at(file.size(), 0x3000), "first");
  EXPECT_EQ(name_at(file.size(), 0x2040), "");
  // Cut short anywhere, and of another format.
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string_view part = std::string_view(file).substr(0, size);
    const symbols::JitDumpLines lines = symbols::jit_dump_lines(part, size);
    EXPECT_EQ(lines.then, lines.text.size());
    EXPECT_EQ(lines.text.empty(), size < 40 + 16 + 40 + 6 + 3) << size;
  }
  file[0] = 'x';
  EXPECT_EQ(name_at(file.size(), 0x1000), "");
}

TEST_F(Resolve, FilesAndStatus) {
  const std::string good = directory_ / "good.memlog";
  const std::string bad = directory_ / "bad.memlog";
  write_file(good, small_memlog({"(0x1)"}));
  write_file(bad, "hello\n");
  ::chmod(good.c_str(), 0600);
  Outcome result = memlog({"resolve", bad, directory_ / "gone", good});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err, bad + ":1: not a memlog: it does not begin with \"# memlog 2\"\n" +
                            "memlog: cannot open " + (directory_ / "gone") +
                            ": No such file or directory\n");
  EXPECT_HAS(read_file(good), "# resolved: no\n");
  EXPECT_EQ(read_file(bad), "hello\n");
  struct stat state = {};
  ::stat(good.c_str(), &state);
  EXPECT_EQ(state.st_mode & 07777, 0600u);
  result = memlog({"resolve", "--quiet", "--", bad, directory_ / "gone", good});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.out + result.err, "");
  EXPECT_EQ(memlog({"resolve", "--quiet", "--", directory_ / "gone"}).status, 1);
  result = memlog({"resolve", "-o", "-", good});
  EXPECT_EQ(result.out, read_file(good));
  result = memlog({"resolve", "-o", directory_ / "copy", good});
  EXPECT_EQ(read_file(directory_ / "copy"), read_file(good));
  // Nothing is left beside the files.
  size_t count = 0;
  for ([[maybe_unused]] const auto& item : std::filesystem::directory_iterator(directory_.path())) {
    ++count;
  }
  EXPECT_EQ(count, 3u);
}

}  // namespace
}  // namespace mtrace::test
