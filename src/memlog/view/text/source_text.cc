#include "view/text/source_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "util/columns.h"
#include "util/file.h"
#include "util/text.h"
#include "view/analyze/function_name.h"

namespace mtrace::text {
namespace {

constexpr uint64_t kAround = 3;  // lines before and after one with numbers

std::string number(int64_t value, const Style& style) {
  if (value == 0) return ".";
  const bool bytes = style.order != analyze::Order::kBlocks &&
                     style.order != analyze::Order::kAllocations &&
                     style.order != analyze::Order::kTemporary;
  return style.units && bytes ? bytes_text(value, style, false) : fmt::format("{}", value);
}

// A line of a file, safe to print on a terminal, with tabs as blanks.
std::string printable(std::string_view line) {
  constexpr size_t kTab = 8;
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    const auto next = static_cast<unsigned char>(i + 1 < line.size() ? line[i + 1] : 0);
    if (byte == '\t') {
      out.append(kTab - util::columns_of(out) % kTab, ' ');
    } else if (byte < 0x20 || byte == 0x7f) {
      out += '?';
    } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {  // a control character of Latin-1
      out += '?';
      ++i;
    } else {
      out += line[i];
    }
  }
  return out;
}

std::string row(const analyze::LineSum& sum, const Style& style) {
  return fmt::format("{:>12} {:>12}", number(sum.flat, style), number(sum.cumulative, style));
}

}  // namespace

std::string source_text(const analyze::ListedFunction& function, const Style& style) {
  const std::string name =
      style.full_names ? function.function : analyze::brief_name(function.function);
  std::string out = row(function.sum, style) + "  " + coloured(plain(name), kBold, style) + "  " +
                    coloured(plain(function.file), kFaint, style) + '\n';
  std::string content;
  try {
    content = util::read_file(function.file);
  } catch (const std::exception& error) {
    return out + remark(error.what(), style);
  }
  const std::vector<std::string_view> text = util::split(content, '\n');
  const uint64_t lines = text.size() - (content.ends_with('\n') ? 1 : 0);
  uint64_t next = 0;  // the first line that is not printed yet
  for (const auto& [at, sum] : function.lines) {
    const uint64_t begin = std::max(next, at > kAround ? at - kAround : 1);
    if (next != 0 && begin > next) out += fmt::format("{:>32}\n", "...");
    for (next = begin; next <= std::min(at + kAround, lines); ++next) {
      const auto known = function.lines.find(next);
      const bool has = known != function.lines.end();
      const std::string line =
          fmt::format("{} {:>6}  {}", row(has ? known->second : analyze::LineSum(), style), next,
                      printable(text[next - 1]));
      out += (has ? line : coloured(line, kFaint, style)) + '\n';
    }
    if (at > lines) {
      out += remark(fmt::format("{} has {} lines, not {}: it is not the file that was compiled",
                                plain(function.file), lines, at),
                    style);
    }
  }
  return util::cut_lines(out, style.columns);
}

}  // namespace mtrace::text
