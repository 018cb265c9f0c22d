#include "view/export/report_page.h"

#include <fmt/format.h>

#include <map>

#include "util/file.h"
#include "util/json.h"
#include "util/text.h"
#include "view/export/flame_graph.h"
#include "view/export/page_stacks.h"

namespace mtrace::exporting {
namespace {

using json::Value;

std::string plain(const std::string& text) { return util::escaped(text, ""); }

Value reports_json(const std::vector<profile::Header>& headers) {
  Value out = Value::array();
  for (const profile::Header& header : headers) {
    out.push_back(
        {{"seq", header.seq},
         {"label", plain(header.label)},
         {"trigger", header.trigger},
         {"taken", header.taken},
         {"uptime", header.uptime},
         {"live", countable(header.live.bytes)},
         {"blocks", countable(header.live.blocks)},
         {"delta", countable(header.delta.bytes)},
         {"peak",
          header.peak ? Value(countable(static_cast<int64_t>(header.peak->bytes))) : Value()},
         {"rss", header.rss ? Value(countable(static_cast<int64_t>(*header.rss))) : Value()}});
  }
  return out;
}

Value peak_json(const profile::Header& last, bool first) {
  if (!last.peak) return {};
  return {{"bytes", countable(static_cast<int64_t>(last.peak->bytes))},
          {"time", last.peak->time},
          {"first", first}};
}

// Triples: milliseconds after the start, live and resident bytes.
Value samples_json(const std::vector<profile::Sample>& samples) {
  const auto number = [](uint64_t value) { return countable(static_cast<int64_t>(value)); };
  Value out = Value::array();
  for (const profile::Sample& sample : samples) {
    out.push_back({number(sample.milliseconds), number(sample.live), number(sample.resident)});
  }
  return out;
}

// JSON that is safe inside a script element: ASCII, and nothing that could end it or begin a
// comment.
std::string inside_script(const Value& json) {
  std::string out;
  // Source lines may not be UTF-8.
  for (const char c : compact(json, json::Letters::kAscii)) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

// `page` with each @NAME@ that `value` knows.
std::string filled(std::string_view page, const std::map<std::string, std::string>& values) {
  std::string out;
  size_t at = 0;
  while (at < page.size()) {
    const size_t begin = page.find('@', at);
    const size_t end = begin == std::string_view::npos ? begin : page.find('@', begin + 1);
    if (end == std::string_view::npos) break;
    const auto value = values.find(std::string(page.substr(begin + 1, end - begin - 1)));
    out += page.substr(at, begin - at);
    if (value == values.end()) {
      out += '@';
      at = begin + 1;
    } else {
      out += value->second;
      at = end + 1;
    }
  }
  return out.append(page.substr(at));
}

}  // namespace

std::string report_page(const PageInput& input) {
  const profile::Header& last = input.headers.back();
  Value data = page_stacks(input);
  data["command"] = input.command;
  data["pid"] = last.pid;
  data["started"] = last.started;
  data["host"] = plain(last.host);
  data["remarks"] = input.remarks;
  data["blocks"] = input.complete;
  data["peak"] = peak_json(last, input.at_peak);
  data["exactSizes"] = !input.sizes.empty();
  data["samples"] = samples_json(input.samples);
  data["ofLog"] = input.of_log;
  data["reports"] = reports_json(input.headers);
  const std::string name = plain(util::base_name(last.program));
  const auto file = [](PageFile one) { return std::string(page_file(one)); };
  return filled(page_file(PageFile::kPage),
                {{"TITLE", xml(fmt::format("{}[{}]", name, last.pid))},
                 {"VERSION", MTRACE_VERSION},
                 {"STYLE", file(PageFile::kFlameStyle) + file(PageFile::kPageStyle)},
                 {"DATA", inside_script(data)},
                 {"SCRIPT", file(PageFile::kFlameScript) + file(PageFile::kPageScripts)}});
}

}  // namespace mtrace::exporting

// The assembler looks for the files where the compiler looks for headers.
#define EMBED(symbol, files)                                                              \
  asm(".pushsection .rodata\n" #symbol "_begin:\n" files #symbol "_end:\n.popsection\n"); \
  extern "C" __attribute__((visibility("hidden"))) const char symbol##_begin[], symbol##_end[]
#define FILE_OF(name) ".incbin \"view/export/page/" name "\"\n"

EMBED(memlog_flame_css, FILE_OF("flame.css"));
EMBED(memlog_flame_js, FILE_OF("flame.js"));
EMBED(memlog_svg_js, FILE_OF("svg.js"));
EMBED(memlog_report_html, FILE_OF("report.html"));
EMBED(memlog_report_css, FILE_OF("report.css"));
EMBED(memlog_report_js,
      FILE_OF("text.js") FILE_OF("measure.js") FILE_OF("data.js") FILE_OF("tree.js")
          FILE_OF("graph.js") FILE_OF("plot.js") FILE_OF("timeline.js") FILE_OF("sizes.js")
              FILE_OF("table.js") FILE_OF("report.js"));

namespace mtrace::exporting {

std::string_view page_file(PageFile file) {
  switch (file) {
    case PageFile::kFlameStyle:
      return {memlog_flame_css_begin, memlog_flame_css_end};
    case PageFile::kFlameScript:
      return {memlog_flame_js_begin, memlog_flame_js_end};
    case PageFile::kSvgScript:
      return {memlog_svg_js_begin, memlog_svg_js_end};
    case PageFile::kPage:
      return {memlog_report_html_begin, memlog_report_html_end};
    case PageFile::kPageStyle:
      return {memlog_report_css_begin, memlog_report_css_end};
    case PageFile::kPageScripts:
      return {memlog_report_js_begin, memlog_report_js_end};
  }
  return {};
}

}  // namespace mtrace::exporting
