#include "resolve_fixture.h"

#include <fmt/format.h>

#include <fstream>

#include "util/text.h"

namespace mtrace::test {
namespace {

// The line of the fixture that ends in the comment "// what".
int line_of(const std::string& what) {
  std::ifstream file(source_dir() + "/tests/fixtures/known_stack.cc");
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.ends_with("// " + what)) return number;
  }
  ADD_FAILURE() << what;
  return 0;
}

}  // namespace

std::string strip_end(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string build_id_of(const std::string& file) {
  return strip_end(shell("readelf -nW {} | sed -n 's/.*Build ID: //p'", file));
}

std::map<std::string, std::string> marks_of(const std::string& file) {
  std::map<std::string, std::string> marks;
  const std::string symbols = shell("nm {}", file);
  for (const std::string_view line : util::split(symbols, '\n')) {
    const size_t mark = line.find("mark_");
    if (mark == std::string_view::npos) continue;
    std::string address(line.substr(0, line.find(' ')));
    address.erase(0, address.find_first_not_of('0'));
    marks[std::string(line.substr(mark + 5))] = address;
  }
  return marks;
}

std::vector<std::string> frames_at_marks(const std::string& file, const std::string& of) {
  auto marks = marks_of(of);
  std::vector<std::string> frames;
  for (const char* mark : {"inner", "method", "generic", "hidden", "plain"}) {
    frames.push_back(fmt::format("({}+0x{})", file, marks.at(mark)));
  }
  return frames;
}

std::string module_line(const std::string& file, const std::string& build_id) {
  return fmt::format("# module: {}{}{} base=0x0\n", file,
                     build_id.empty() ? "" : " build-id=", build_id);
}

std::string Resolve::build(const std::string& name, const std::string& flags) {
  std::string file = directory_ / name;
  // There: -gsplit-dwarf writes into the current directory.
  shell("cd {} && {} -g -O2 -Wl,--build-id {} -o {} {}/tests/fixtures/known_stack.cc",
        directory_.path(), compiler(), Script{flags}, file, source_dir());
  return file;
}

std::vector<std::string> Resolve::resolve(const std::vector<std::string>& frames,
                                          const std::string& after,
                                          std::vector<std::string> options) {
  const std::string file = directory_ / "report.memlog";
  write_file(file, small_memlog(frames, after));
  options.insert(options.begin(), "resolve");
  options.push_back(file);
  const Outcome result = memlog(options);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out + result.err, "");
  text_ = read_file(file);
  std::vector<std::string> lines;
  for (const std::string_view line : util::split(text_, '\n')) {
    if (line.starts_with('\t')) lines.emplace_back(line.substr(1));
  }
  return lines;
}

void Resolve::expect_known(const std::vector<std::string>& lines, const std::string& file,
                           const std::map<std::string, std::string>& marks) {
  const auto at = [&](const char* mark) { return fmt::format("({}+0x{})", file, marks.at(mark)); };
  const auto source = [](const char* what) {
    return fmt::format("known_stack.cc:{}", line_of(what));
  };
  const std::string grow = "app::Store::grow(long, char const*)";
  const std::vector<std::string> expected = {
      fmt::format("app::innermost(long)\t{}\t(inlined)", source("mark inner")),
      fmt::format("app::middle(long)\t{}\t(inlined)", source("call of innermost")),
      fmt::format("{}\t{}\t{}", grow, source("call of middle"), at("inner")),
      fmt::format("{}\t{}\t{}", grow, source("mark method"), at("method")),
      fmt::format("long app::twice<long>(long)\t{}\t{}", source("mark generic"), at("generic")),
      fmt::format("app::(anonymous namespace)::hidden(long)\t{}\t{}", source("mark hidden"),
                  at("hidden")),
      fmt::format("plain_c\t{}\t{}", source("mark plain"), at("plain"))};
  EXPECT_EQ(lines, expected);
}

}  // namespace mtrace::test
