// memlog decode, on a program whose functions and lines are known. On glibc's own backtraces:
// transcripts/backtraces.txt.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "model/symbols/text_decoder.h"
#include "resolve_fixture.h"
#include "tool_test.h"
#include "util/text.h"

namespace mtrace::test {
namespace {

using symbols::find_places;

class Decode : public Resolve {
 protected:
  Outcome decode(const std::string& text, std::vector<std::string> options = {}) {
    const std::string file = directory_ / "text";
    write_file(file, text);
    options.insert(options.begin(), "decode");
    options.push_back(file);
    Outcome result = memlog(options);
    EXPECT_EQ(result.status, 0) << result.err;
    return result;
  }

  std::string build_known() {
    std::string file = build("known", "-fPIE -pie");
    marks_ = marks_of(file);
    return file;
  }
  std::string at(const std::string& file, const char* mark) {
    return fmt::format("({}+0x{})", file, marks_.at(mark));
  }

  std::map<std::string, std::string> marks_;
};

TEST(TextPlace, FormsAreTold) {
  // "" for no place; a letter for a frame alone, glibc's form, a place in text, an address.
  const auto form = [](std::string_view line) -> std::string {
    const auto places = find_places(line);
    if (places.empty()) return "";
    const symbols::TextPlace& last = places.back();
    return last.alone ? "f" : !last.offset ? "a" : last.address != 0 ? "g" : "t";
  };
  EXPECT_EQ(form("\t(/usr/bin/app+0x1105)"), "f");
  EXPECT_EQ(form("    (/usr/bin/app+0x1105)\r"), "f");
  EXPECT_EQ(form("(/usr/bin/app#2+0x1105)"), "f");
  EXPECT_EQ(form("(/opt/my app (copy)/bin+0x1105)"), "f");
  EXPECT_EQ(form("\t([vdso]+0x5)"), "f");
  EXPECT_EQ(form("at (/usr/bin/app+0x1105), (x+0x2)"), "t");
  EXPECT_EQ(form("    #1 0x55d0 in main (/usr/bin/app+0x1105) (BuildId: 12)"), "t");
  EXPECT_EQ(form("./app(+0x1d)[0x55d0c0a01106]"), "g");
  EXPECT_EQ(form("/usr/bin/app() [0x401106]"), "g");
  EXPECT_EQ(form("/usr/bin/app[0x401106]"), "g");
  EXPECT_EQ(form("app[7]: /a b/(c)(+0x1) [0x5]"), "g");
  EXPECT_EQ(form("\t(./bin/app+0x1105)"), "f");
  EXPECT_EQ(form("in (../app+0x1105), again"), "t");
  EXPECT_EQ(form("[0x5]"), "a");
  EXPECT_EQ(form("#3 [0x00007f0012345678], [5]"), "a");
  EXPECT_EQ(form("(main+0x1d) [0x5]"), "a");
  EXPECT_EQ(form("/usr/bin/app(main+0x1d) [0x55d0c0a01106]"), "a");
  EXPECT_EQ(form("/a/b: [0x5][0x6]"), "a");
  EXPECT_EQ(form("#1  0x00007f0012345678 in main ()"), "a");
  EXPECT_EQ(find_places("bt: 0x5, 0x6 [0x7] 0x8;0x9 x0xa 0xb/ (0xc) a=0xd [0xe 0xf] 0x0010").size(),
            5u);
  for (const char* line : {"",
                           "\t",
                           "+0x",
                           "(+0x1)",
                           "\t(0x7f0012345678)",
                           "\tmain\ta.c:1\t(/usr/bin/app+0x1105)",
                           "\tmain\t(/usr/bin/app+0x1105)",
                           "\t(/usr/bin/app+0x)",
                           "\t(/usr/bin/app+0x01)",
                           "\t(/usr/bin/app+0x12345678901234567)",
                           "(/usr/bin/app+0x1105",
                           "f(a+0x1)",
                           "\t(/usr/bin/app#1+0x5)",
                           "\t(/usr/bin/app\\q+0x5)",
                           "app(main+0x1d) [0xzz]",
                           "[0x",
                           "[0x]",
                           "[0x12345678901234567]",
                           "+0x)(/",
                           "\t...",
                           "+63360\tblocks=+12"}) {
    EXPECT_EQ(form(line), "") << line;
  }
  const auto found = find_places("Nov 21 app[7]: /opt/my app/bin(+0x1d) [0x55d0c0a01106]");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].module, "/opt/my app/bin");
  EXPECT_EQ(found[0].offset, 0x1cu);
  EXPECT_EQ(found[0].address, 0x55d0c0a01106u);
  const auto escaped = find_places("\t(/a\\x23b#3+0x5)");
  ASSERT_EQ(escaped.size(), 1u);
  EXPECT_EQ(escaped[0].module, "/a#b");
  EXPECT_EQ(escaped[0].generation, 3u);
}

TEST_F(Decode, FramesBecomeThoseOfAMemlog) {
  const std::string file = build_known();
  std::string text = "assertion failed\n\n";
  for (const std::string& frame : frames_at_marks(file, file)) text += '\t' + frame + '\n';
  const std::string module = module_line(file, build_id_of(file));
  const Outcome result = decode(text + "\t(/none+0x12)\n\t...\n" + module);
  EXPECT_EQ(result.err, "");
  std::vector<std::string> lines;
  for (const std::string_view line : util::split(result.out, '\n')) {
    if (line.starts_with('\t')) lines.emplace_back(line.substr(1));
  }
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(lines.back(), "...");
  lines.pop_back();
  EXPECT_EQ(lines.back(), "(/none+0x12)");
  lines.pop_back();
  expect_known(lines, file, marks_);
  EXPECT_TRUE(result.out.starts_with("assertion failed\n\n\t"));
  EXPECT_TRUE(result.out.ends_with("\n" + module));
}

TEST_F(Decode, AnotherBuildGivesNoNames) {
  const std::string file = build_known();
  const std::string text = "\t" + at(file, "plain") + "\n" + module_line(file, "00ff");
  Outcome result = decode(text);
  EXPECT_EQ(result.out, text);
  EXPECT_EQ(result.err, "memlog: " + file +
                            " is not the file it was (its build-id differs): its frames have no "
                            "names\n");
  EXPECT_EQ(decode(text, {"-q"}).err, "");
  // The lines behind a stack are its own; what stands before the next stack is not asked.
  const std::string good = module_line(file, build_id_of(file));
  result = decode("\t" + at(file, "plain") + "\n" + good + text);
  EXPECT_TRUE(result.out.starts_with("\tplain_c\tknown_stack.cc:")) << result.out;
  EXPECT_TRUE(result.out.ends_with(good + text)) << result.out;
  // A stack without any takes those before.
  result = decode(module_line(file, "00ff") + "\t" + at(file, "plain") + "\n");
  EXPECT_EQ(result.out, module_line(file, "00ff") + "\t" + at(file, "plain") + "\n");
}

TEST_F(Decode, OtherLinesGetNamesAtTheirEnd) {
  const std::string file = build_known();
  const std::string line = "x: at " + at(file, "plain") + ", twice";
  Outcome result = decode(line + "\r\n" + line);
  const std::string named = line + "  plain_c  known_stack.cc:";
  EXPECT_TRUE(result.out.starts_with(named)) << result.out;
  EXPECT_HAS(result.out, "\r\n" + named);
  EXPECT_FALSE(result.out.ends_with('\n'));
  result = decode("in " + at(file, "inner"));
  EXPECT_HAS(result.out, ")  app::innermost(long)  known_stack.cc:");
  EXPECT_HAS(result.out, " < app::middle(long)  known_stack.cc:");
  EXPECT_HAS(result.out, " < app::Store::grow(long, char const*)  known_stack.cc:");
}

TEST_F(Decode, EverythingElseStays) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("\n\n"), std::string("x"),
        std::string("a\0b\n", 4), all, all + "+0x" + all + "(/" + all + "+0x1)",
        std::string("# module: \n# module: /x\n# module: /x base=0x1 base=0x1\n\t(/x+0x5)\n"),
        std::string("\t(/dev/null+0x5)\n\t(/proc/self/mem+0x5)\n\t(/+0x5)\n"),
        std::string("/etc/passwd(f+0x1) [0x5]\n/none(+0x0) [0x0]\n")}) {
    EXPECT_EQ(decode(text).out, text);
  }
  const std::string report = small_memlog({"f\ta.c:1\t(/usr/bin/app+0x5)", "(0x1)", "..."});
  EXPECT_EQ(decode(report).out, report);
}

TEST_F(Decode, BacktracesWithABaseNeedNoSymbol) {
  const std::string file = build_known();
  const uint64_t plain = std::stoull(marks_.at("plain"), nullptr, 16);
  // One past the mark is what glibc would tell of a call that ends there.
  const std::string line =
      fmt::format("{}(no_such_name+0x99) [0x{:x}]\n", file, 0x550000000000 + plain + 1);
  const std::string module =
      fmt::format("# module: {} build-id={} base=0x550000000000\n", file, build_id_of(file));
  EXPECT_EQ(decode(line).out, line);
  EXPECT_HAS(decode(line + module).out, "]  plain_c  known_stack.cc:");
}

TEST_F(Decode, BareAddressesByTheModulesOfMtrace) {
  const std::string file = build_known();
  const uint64_t plain = std::stoull(marks_.at("plain"), nullptr, 16);
  const std::string module =
      fmt::format("# module: {} build-id={} base=0x7f0000000000\n", file, build_id_of(file));
  const std::string line = fmt::format("at [0x{:x}]", 0x7f0000000000 + plain + 1);
  EXPECT_TRUE(decode(line + "\n" + module).out.starts_with(line + "  plain_c  known_stack.cc:"));
  EXPECT_EQ(decode(module + line).out.find(module + line + "  plain_c  "), 0u);
  // Below the module, behind it, and in another build.
  for (const std::string& text :
       {std::string("at [0x7effffffffff]\n") + module,
        std::string("at [0x7f1000000000]\n") + module,
        line + "\n# module: " + file + " build-id=00ff base=0x7f0000000000\n"}) {
    EXPECT_EQ(decode(text).out, text);
  }
  // A frame of another process between: the first of its kind takes the second's addresses not.
  const std::string other = fmt::format("at [0x{:x}]", 0x7e0000000000 + plain + 1);
  const std::string second =
      fmt::format("# module: {} build-id={} base=0x7e0000000000\n", file, build_id_of(file));
  const std::string out = decode(line + "\n" + module + other + "\n" + second).out;
  EXPECT_HAS(out, line + "  plain_c");
  EXPECT_HAS(out, other + "  plain_c");
}

TEST_F(Decode, RelativePaths) {
  const std::string file = build_known();
  const std::string frame = fmt::format("\t(./known+0x{})\n", marks_.at("plain"));
  EXPECT_EQ(decode(frame).out, frame);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path());
  const std::string out = decode("in " + frame.substr(1)).out;
  std::filesystem::current_path(before);
  EXPECT_HAS(out, ")  plain_c  known_stack.cc:");
}

TEST_F(Decode, LooksWhereItIsTold) {
  const std::string file = build_known();
  const std::string root = directory_ / "root";
  std::filesystem::create_directories(root + "/opt");
  std::filesystem::rename(file, root + "/opt/known");
  const std::string text = "\t" + at("/opt/known", "plain") + "\n";
  EXPECT_EQ(decode(text).out, text);
  EXPECT_TRUE(decode(text, {"--sysroot", root}).out.starts_with("\tplain_c\t"));
  EXPECT_EQ(memlog({"decode", "--sysroot", "/nowhere"}).status, 2);
  const Outcome result = memlog({"decode", directory_ / "gone", directory_ / "text"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, text);
  EXPECT_EQ(memlog({"decode", directory_.path()}).status, 1);
}

// As the library runs it: files for input and output, nothing else open.
TEST_F(Decode, WorksOnPlainDescriptors) {
  const std::string file = build_known();
  const std::string tool = build_dir() + "/memlog";
  ASSERT_EQ(::access(tool.c_str(), X_OK), 0) << tool;
  write_file(directory_ / "in", "\t" + at(file, "plain") + "\n");
  shell("{0} decode < {1}/in > {1}/out 2>&1", tool, directory_.path());
  EXPECT_TRUE(read_file(directory_ / "out").starts_with("\tplain_c\tknown_stack.cc:"));
  EXPECT_EQ(shell("cat {}/in | {} decode 2>&-", directory_.path(), tool),
            read_file(directory_ / "out"));
  EXPECT_EQ(shell("{} decode < /dev/null", tool), "");
}

TEST_F(Decode, HostileLinesTakeNoTime) {
  std::string line;
  while (line.size() < (size_t{1} << 20)) line += "(/a+0x";
  const std::string text = line + "\n" + line + ")[0x1]\n";
  EXPECT_EQ(decode(text).out, text);
}

TEST_F(Decode, LargeTexts) {
  const std::string file = build_known();
  const std::string frame = "\t" + at(file, "plain") + "\n";
  std::string text;
  while (text.size() < (size_t{66} << 20)) {
    for (int i = 0; i < 1000; ++i)
      text += "2026-11-20 20:15:00 a line of a log without any place\n";
    text += frame;
  }
  const Outcome result = decode(text);
  EXPECT_LACKS(result.out, "\n" + frame);
  EXPECT_GT(result.out.size(), text.size());
}

}  // namespace
}  // namespace mtrace::test
