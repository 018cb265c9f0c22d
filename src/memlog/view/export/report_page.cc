#include "view/export/report_page.h"

#include "format/memlog.h"
#include "util/file.h"
#include "util/json.h"
#include "util/text.h"
#include "view/analyze/filter.h"
#include "view/analyze/function_name.h"
#include "view/analyze/responsible.h"
#include "view/export/flame_graph.h"

namespace mtrace::exporting {
namespace {

using json::Value;

constexpr size_t kMostStacks = 20000;
constexpr size_t kMostChanges = 400000;
constexpr int64_t kMostCountable = int64_t{1} << 53;

// Returns `number` if JavaScript can represent it exactly. Throws std::runtime_error otherwise.
int64_t countable(int64_t number) {
  if (number > kMostCountable || number < -kMostCountable) {
    throw std::runtime_error(fmt::format("{} is too large for a page", util::grouped(number)));
  }
  return number;
}

// What one stack held before the first report and at each state.
struct Course {
  std::vector<int64_t> bytes;
  std::vector<int64_t> blocks;
  analyze::Held held;

  explicit Course(size_t states) : bytes(states + 1), blocks(states + 1) {}

  bool changes(size_t state) const {
    return state == 0 ? bytes[0] != 0 || blocks[0] != 0
                      : bytes[state] != bytes[state - 1] || blocks[state] != blocks[state - 1];
  }
  size_t changes() const {
    size_t count = 0;
    for (size_t state = 0; state < bytes.size(); ++state) count += changes(state);
    return count;
  }
  bool empty() const {
    return changes() == 0 && held.peak == 0 && held.allocations == 0 && held.frees == 0;
  }
};

Course course_of(const analyze::Series& series, size_t row) {
  Course course(0);
  course.bytes[0] = series.before(row);
  for (const int64_t value : series.values(row)) course.bytes.push_back(value);
  for (const int64_t value : series.blocks(row)) course.blocks.push_back(value);
  course.held = series.held(row);
  return course;
}

using analyze::add_to;

void add_to(Course& sum, const Course& more) {
  for (size_t state = 0; state < sum.bytes.size(); ++state) {
    add_to(sum.bytes[state], more.bytes[state]);
    add_to(sum.blocks[state], more.blocks[state]);
  }
  add_to(sum.held.peak, more.held.peak);
  analyze::add_to(sum.held.allocations, more.held.allocations);
  analyze::add_to(sum.held.allocated_bytes, more.held.allocated_bytes);
  analyze::add_to(sum.held.temporary, more.held.temporary);
  analyze::add_to(sum.held.timed_frees, more.held.timed_frees);
  sum.held.lived += more.held.lived;
}

Value turnover_json(const analyze::Held& turnover) {
  const auto number = [](uint64_t value) { return countable(static_cast<int64_t>(value)); };
  return {number(turnover.allocations), number(turnover.allocated_bytes),
          number(turnover.temporary), number(turnover.timed_frees), number(turnover.lifetime())};
}

// [class, blocks, bytes, ...], or null unless they add up to what the stack held at that state. How
// many blocks it had at the peak, no report tells.
Value classes_json(const SizeClasses& classes, const Course& course, int64_t state) {
  Value out = Value::array();
  const bool at_peak = state == kPeakState;
  int64_t bytes = at_peak ? course.held.peak : course.bytes[static_cast<size_t>(state)];
  int64_t blocks = at_peak ? 0 : course.blocks[static_cast<size_t>(state)];
  for (const auto& [number, sum] : classes) {
    bytes -= static_cast<int64_t>(sum.bytes);
    blocks -= static_cast<int64_t>(sum.blocks);
    out.push_back(number);
    out.push_back(sum.blocks);
    out.push_back(countable(static_cast<int64_t>(sum.bytes)));
  }
  return bytes == 0 && (at_peak || blocks == 0) ? out : Value();
}

// [state, classes, ...]: those of the stack at the states where they changed.
Value sizes_json(const std::map<int64_t, StackSizes>& sizes, uint64_t stack, const Course& course) {
  Value out = Value::array();
  for (const auto& [state, stacks] : sizes) {
    const auto found = stacks.find(stack);
    Value now = found == stacks.end() ? Value() : classes_json(found->second, course, state);
    const bool same = out.size() == 0 ? now.is_null() : out.back() == now;
    if (same) continue;
    out.push_back(state);
    out.push_back(std::move(now));
  }
  return out;
}

// Numbers for texts, from 0 in the order of their first use.
class Texts {
 public:
  size_t of(const std::string& text) {
    const auto [place, added] = known_.try_emplace(text, all_.size());
    if (added) all_.push_back(text);
    return place->second;
  }
  const Value& all() const { return all_; }

 private:
  absl::flat_hash_map<std::string, size_t> known_;
  Value all_ = Value::array();
};

class PageWriter {
 public:
  explicit PageWriter(const PageInput& input)
      : responsible_(*input.responsible), lines_(input.lines), sizes_(input.sizes) {}

  void add(const analyze::Table& table, const analyze::Row& row, const Course& course) {
    Value frames = Value::array();
    for (size_t i = 0; i < row.frames.size(); ++i) {
      const size_t frame = frame_of(table, row.frames[i]);
      frames.push_back(frame);
      if (lines_ && responsible_.own(row.frames, i, table.modules())) list(row, i, frame);
    }
    Value folded = Value::array();
    for (const auto& line : responsible_.drawn(row.frames, table.modules(), row.depth)) {
      if (line.missing()) continue;
      folded.push_back(line.frame);
    }
    if (row.cut || row.frames.empty()) {
      const bool missing = responsible_.missing(row.frames, table.modules(), row.depth);
      folded.push_back(frames.size());
      frames.push_back(missing ? frame_of(format::kCutLine, "", "", analyze::cut_text(row.depth))
                               : frame_of(format::kCutLine));
    }
    if (analyze::kept_by_runtimes(row.frames, table.modules())) folded = nullptr;
    add(fmt::format("{:016x}", row.stack), std::move(frames), std::move(folded), course,
        beginning_of(row, table), sizes_json(sizes_, row.stack, course));
  }
  // What is no stack, under a name for it.
  void add(const std::string& name, const Course& course) {
    if (course.empty()) return;
    add("", Value::array({frame_of(name)}), Value::array({0}), course);
  }

  Value json() const {
    return {{"names", names_.all()}, {"sources", sources_.all()}, {"modules", modules_.all()},
            {"frames", frames_},     {"listings", listings_},     {"stacks", stacks_}};
  }

 private:
  // `begun`: the frame whose function the thread began with; null: not known.
  void add(const std::string& id, Value frames, Value folded, const Course& course,
           const Value& begun = nullptr, const Value& sizes = Value::array()) {
    Value values = Value::array();
    for (size_t state = 0; state < course.bytes.size(); ++state) {
      if (!course.changes(state)) continue;
      values.push_back(state);
      values.push_back(countable(course.bytes[state]));
      values.push_back(countable(course.blocks[state]));
    }
    stacks_.push_back({id, std::move(frames), std::move(values), countable(course.held.peak),
                       std::move(folded), turnover_json(course.held), begun, sizes});
  }

  // The source lines of a frame, once.
  void list(const analyze::Row& row, size_t at, size_t frame) {
    const std::string key = std::to_string(frame);
    if (listings_.find(key) != nullptr) return;
    const SourceLines lines = lines_(row, at);
    if (!lines.texts.empty()) listings_[key] = {lines.first, lines.chosen, lines.texts};
  }

  Value beginning_of(const analyze::Row& row, const analyze::Table& table) {
    if (row.cut) return nullptr;
    for (size_t at = row.frames.size(); at-- > 0;) {
      if (responsible_.own(row.frames, at, table.modules())) return at;
    }
    return nullptr;
  }

  size_t frame_of(const analyze::Table& table, const profile::Frame& frame) {
    const bool in_module = frame.place == profile::Place::kModule;
    const std::string& path = in_module ? table.modules()[frame.module].path : std::string();
    const std::string module = util::escaped(util::base_name(path), "");
    std::string name = analyze::short_name(util::escaped(frame.function, ""));
    std::string brief = util::escaped(analyze::brief_name(frame.function), "");
    if (name.empty()) {
      name = in_module ? fmt::format("{}+0x{:x}", module, frame.offset)
                       : fmt::format("0x{:x}", frame.offset);
      brief = name;
    }
    return frame_of(name, util::escaped(frame.source, ""),
                    frame.place == profile::Place::kInlined ? "inlined" : module, brief);
  }

  size_t frame_of(const std::string& mark) { return frame_of(mark, "", "", mark); }
  size_t frame_of(const std::string& name, const std::string& source, const std::string& module,
                  const std::string& brief) {
    const std::array<size_t, 4> key = {names_.of(name), sources_.of(source), modules_.of(module),
                                       names_.of(brief)};
    const auto [place, added] = known_.try_emplace(key, frames_.size());
    if (added) frames_.push_back(key);
    return place->second;
  }

  const analyze::Responsible& responsible_;
  const FindLines& lines_;
  const std::map<int64_t, StackSizes>& sizes_;
  Texts names_;
  Texts sources_;
  Texts modules_;
  absl::flat_hash_map<std::array<size_t, 4>, size_t> known_;
  Value frames_ = Value::array();
  Value listings_ = Value::object();  // by frame: number of the first line, of the
                                      // frame's, texts
  Value stacks_ = Value::array();
};

int64_t most_of(const Course& course) {
  int64_t most = course.held.peak;
  for (const int64_t bytes : course.bytes) most = std::max(most, bytes < 0 ? ~bytes : bytes);
  return most;
}

// What was live and is not in `listed`.
Course missing_in(const Course& listed, const PageInput& input) {
  Course missing(input.headers.size());
  const auto take = [&](size_t state, const profile::Total& live) {
    missing.bytes[state] = analyze::difference(live.bytes, listed.bytes[state]);
    missing.blocks[state] = analyze::difference(live.blocks, listed.blocks[state]);
  };
  take(0, input.before);
  for (size_t i = 0; i < input.headers.size(); ++i) take(i + 1, input.headers[i].live);
  if (const auto& peak = input.headers.back().peak) {
    missing.held.peak = static_cast<int64_t>(peak->bytes);
    add_to(missing.held.peak, -listed.held.peak);
  }
  return missing;
}

// Each name, place and module once, frames as indices of these, stacks as indices of frames.
// Layout: page/data.js.
Value page_stacks(const PageInput& input) {
  const analyze::Table& table = input.series.table();
  const size_t states = input.headers.size();
  Course listed(states);
  std::vector<std::tuple<int64_t, uint64_t, size_t>> order;  // most held, allocated; row
  for (size_t row = 0; row < table.rows().size(); ++row) {
    if (!table.rows()[row].kind.empty()) continue;
    const Course course = course_of(input.series, row);
    add_to(listed, course);
    if (!course.empty()) {
      order.emplace_back(-most_of(course), ~course.held.allocated_bytes, row);
    }
  }
  std::sort(order.begin(), order.end());
  PageWriter writer(input);
  Course rest(states);
  size_t stacks = 0;
  size_t changes = 0;
  for (const auto& [most, allocated, row] : order) {
    const Course course = course_of(input.series, row);
    changes += course.changes();
    if (stacks < kMostStacks && changes <= kMostChanges) {
      writer.add(table, table.rows()[row], course);
      ++stacks;
    } else {
      add_to(rest, course);
    }
  }
  const size_t places = order.size() - stacks;
  writer.add(
      fmt::format("in {} {}", util::grouped(uint64_t{places}), places == 1 ? "place" : "places"),
      rest);
  Course missing = missing_in(listed, input);
  if (!input.filtered) writer.add("in stacks that these reports do not list", missing);
  Value out = writer.json();
  out["keptByRuntimes"] = analyze::kKeptByRuntimes;
  out["before"] = input.before.bytes != 0;
  out["allFrames"] = input.all_frames;
  return out;
}

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
