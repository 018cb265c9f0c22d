#include "view/text/views_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "util/text.h"
#include "view/text/frame_text.h"
#include "view/text/style.h"

namespace mtrace::text {

std::string pages_by_size_text(const std::vector<analyze::PagesOfSize>& sizes, size_t rows,
                               uint64_t unit) {
  std::string out = fmt::format("\n{:>11} {:>13} {:>11} {:>11}  pages by size of their blocks\n",
                                "pages", "free in them", "blocks", "live");
  for (size_t i = 0; i < rows; ++i) {
    const analyze::PagesOfSize& one = sizes[i];
    out += fmt::format("{:>11} {:>13} {:>11} {:>11}  up to {} bytes\n", util::grouped(one.pages),
                       util::grouped(one.free() / unit), util::grouped(one.blocks),
                       util::grouped(one.live / unit), util::grouped(one.largest));
  }
  return out;
}
namespace {

using analyze::ByteCourse;
using analyze::course_of;
using analyze::RegionHistory;

// A row of a table: its course, and what it is of.
struct Line {
  ByteCourse course;
  size_t row;
};

std::string head(const char* what) {
  return fmt::format("{:>11} {:>11} {:>11} {:>6} {:>11}  {}\n", "first", "last", "most", "in",
                     "growth", what);
}

std::string numbers(const ByteCourse& course, const RegionHistory& history) {
  return fmt::format("{:>11} {:>11} {:>11} {:>6} {:>11}  ", kib_text(course.first),
                     kib_text(course.last), kib_text(course.most),
                     history.reports()[course.most_at].seq,
                     util::grouped(course.growth() / 1024, true));
}

std::string line_of(const analyze::ByteHistory& bytes, const RegionHistory& history,
                    const char* what) {
  const auto course = course_of(bytes);
  return course ? numbers(*course, history) + what + '\n' : std::string();
}

void order(std::vector<Line>& lines) {
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.course.most > b.course.most; });
}

std::string more_text(size_t all, size_t shown, const char* what) {
  if (shown == all) return {};
  return fmt::format("\n{} more: --limit 0 shows them\n", count_text(all - shown, what));
}

size_t shown_of(size_t all, const Style& style) {
  return style.limit == 0 ? all : std::min(all, style.limit);
}

std::string regions_text(const RegionHistory& history, const Style& style) {
  std::vector<Line> lines;
  for (size_t i = 0; i < history.regions().size(); ++i) {
    if (const auto course = course_of(history.regions()[i].resident)) lines.push_back({*course, i});
  }
  order(lines);
  const size_t shown = shown_of(lines.size(), style);
  std::string out = '\n' + head("resident, by kind or file");
  for (size_t i = 0; i < shown; ++i) {
    out += numbers(lines[i].course, history) + plain(history.regions()[lines[i].row].name) + '\n';
  }
  return out + more_text(lines.size(), shown, "region");
}

std::string mapped_text(const RegionHistory& history, const Style& style) {
  const analyze::Series& mapped = history.mapped();
  std::vector<Line> lines;
  for (size_t row = 0; row < mapped.table().rows().size(); ++row) {
    analyze::ByteHistory bytes;
    for (const int64_t value : mapped.values(row)) bytes.push_back(static_cast<uint64_t>(value));
    if (const auto course = course_of(bytes)) lines.push_back({*course, row});
  }
  if (lines.empty()) return {};
  order(lines);
  const size_t shown = shown_of(lines.size(), style);
  std::string out = '\n' + head("mapped, resident or not, by stack");
  for (size_t i = 0; i < shown; ++i) {
    const analyze::Row& row = mapped.table().rows()[lines[i].row];
    out += numbers(lines[i].course, history);
    out += fmt::format("stack={:016x}\n", row.stack);
    for (const std::string& frame : stack_lines(mapped.table(), row, style)) {
      out += "    " + frame + '\n';
    }
  }
  return out + more_text(lines.size(), shown, "stack");
}

}  // namespace

std::string region_history_text(const RegionHistory& history, const Style& style) {
  std::string out = head("in KiB");
  out += line_of(history.resident(), history, "resident in all");
  out += line_of(history.live(), history, "live in malloc's blocks");
  const size_t reports = history.reports().size();
  size_t silent = 0;
  for (size_t i = 0; i < reports; ++i) silent += history.tells_regions(i) ? 0 : 1;
  if (silent != reports) out += regions_text(history, style);
  out += mapped_text(history, style);
  if (silent == 0) return out;
  return out + '\n' +
         remark(fmt::format("{} not tell regions: run the program with MTRACE_MMAP=1",
                            silent == 1 ? "1 report does" : count_text(silent, "report") + " do"),
                style);
}
namespace {

using analyze::SizeHistogram;

// "64..127", "1 KiB..".
std::string range(size_t number, const Style& style) {
  const uint64_t least = SizeHistogram::least(number);
  if (number < 2) return fmt::format("{}", least);
  if (!style.units || least < 1024) {
    return fmt::format("{}..{}", least, SizeHistogram::most(number));
  }
  return size_text(least, style) + "..";
}

}  // namespace

std::string sizes_line(const SizeHistogram& sizes, const Style& style) {
  return fmt::format("{} in {} of {} on average", size_text(sizes.bytes(), style),
                     count_text(sizes.blocks(), "block"), size_text(sizes.average(), style));
}

std::string sizes_text(const SizeHistogram& sizes, const Style& style) {
  if (sizes.blocks() == 0) return {};
  const auto& classes = sizes.classes();
  size_t first = 0;
  while (classes[first].blocks == 0) ++first;
  size_t last = SizeHistogram::kClasses - 1;
  while (classes[last].blocks == 0) --last;
  std::string out = coloured(fmt::format("  {:>22} {:>13} {:>15}", "block size", "blocks", "bytes"),
                             kFaint, style) +
                    '\n';
  for (size_t i = first; i <= last; ++i) {
    const auto bar = static_cast<size_t>(std::bit_width(classes[i].blocks));
    out += fmt::format(
        "  {:>22} {:>13} {:>15}", range(i, style), util::grouped(classes[i].blocks),
        style.units ? size_text(classes[i].bytes, style) : fmt::format("{}", classes[i].bytes));
    if (bar != 0) out += "  " + std::string(bar, '#');
    out += '\n';
  }
  return out;
}

}  // namespace mtrace::text
