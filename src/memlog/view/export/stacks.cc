#include "view/export/stacks.h"

#include <re2/re2.h>

#include "format/memlog.h"
#include "util/file.h"
#include "util/text.h"
#include "view/analyze/filter.h"
#include "view/analyze/function_name.h"

namespace mtrace::exporting {
namespace {

using profile::Frame;
using profile::Place;

const char* column_name(analyze::Order order) {
  switch (order) {
    case analyze::Order::kBlocks:
      return "blocks";
    case analyze::Order::kLive:
      return "live";
    case analyze::Order::kAllocations:
      return "allocs";
    case analyze::Order::kTemporary:
      return "temporary";
    case analyze::Order::kSlack:
      return "slack";
    case analyze::Order::kPeak:
      return "peak";
    default:
      return "bytes";
  }
}

}  // namespace

std::vector<size_t> Locations::of(const analyze::Row& row, std::vector<size_t>* frames) {
  std::vector<size_t> out;
  if (responsible_ == nullptr) out.reserve(row.frames.size() + 1);
  if (responsible_ == nullptr) {
    for (const Frame& frame : row.frames) out.push_back(of(frame));
  } else if (analyze::kept_by_runtimes(row.frames, table_.modules())) {
    return {cut(analyze::kKeptByRuntimes)};
  } else {
    for (const auto& line : responsible_->drawn(row.frames, table_.modules(), row.depth)) {
      if (frames != nullptr) frames->push_back(line.frames);
      out.push_back(line.missing() ? cut(analyze::cut_text(row.depth))
                                   : of(row.frames[line.frame]));
    }
  }
  if (row.cut || row.frames.empty()) out.push_back(cut(format::kCutLine));
  return out;
}

size_t Locations::of(const Frame& frame) {
  Location location;
  location.function = util::escaped(
      responsible_ == nullptr ? frame.function.text() : analyze::brief_name(frame.function), "");
  const std::string source = util::escaped(frame.source, "");
  const size_t colon = source.rfind(':');
  if (colon != std::string::npos) {
    location.file = source.substr(0, colon);
    location.line = util::read_unsigned(source.substr(colon + 1)).value_or(0);
  }
  location.module = frame.place == Place::kModule ? frame.module : Location::kNoModule;
  location.offset = frame.offset;
  if (location.function.empty()) {
    location.function =
        frame.place == Place::kModule
            ? fmt::format("{}+0x{:x}",
                          util::escaped(util::base_name(table_.modules()[frame.module].path), ""),
                          frame.offset)
            : fmt::format("0x{:x}", frame.offset);
  }
  return add(std::move(location));
}

size_t Locations::cut(const std::string& text) {
  Location location;
  location.function = text;
  location.module = Location::kNoModule;
  return add(std::move(location));
}

size_t Locations::add(Location location) {
  const std::string key = fmt::format("{}\n{}\n{}\n{}\n{}", location.function, location.file,
                                      location.line, location.module, location.offset);
  const auto [place, added] = known_.try_emplace(key, all_.size());
  if (added) all_.push_back(std::move(location));
  return place->second;
}

bool counts_blocks(analyze::Order order) {
  return order == analyze::Order::kBlocks || order == analyze::Order::kAllocations ||
         order == analyze::Order::kTemporary;
}

Stacks stacks_of(const analyze::Table& table, analyze::Order order, Side side,
                 const analyze::Responsible* responsible) {
  Stacks out;
  out.column = column_name(order);
  out.unit = counts_blocks(order) ? "blocks" : "bytes";
  Locations locations(table, out.locations, responsible);
  for (const analyze::Row& row : table.rows()) {
    if (!row.kind.empty()) continue;
    const int64_t value = analyze::quantity(row, order);
    const bool wanted = side == Side::kBelow ? value < 0 : value > 0;
    if (value != 0 && !wanted) ++out.left_out;
    if (!wanted && (side != Side::kAllocated || row.allocations == 0)) continue;
    const auto amount = static_cast<uint64_t>(value);
    Stack stack = {&row, {}, {}, !wanted ? 0 : value > 0 ? amount : 0 - amount};
    stack.locations = locations.of(row, &stack.frames);
    analyze::add_to(out.total, stack.value);
    out.stacks.push_back(std::move(stack));
  }
  return out;
}

std::string without(std::string text, const char* bad, char instead) {
  for (size_t at = 0; (at = text.find_first_of(bad, at)) != std::string::npos; ++at) {
    text[at] = instead;
  }
  return text;
}

std::vector<size_t> Sites::of(const std::vector<size_t>& stack) {
  std::vector<size_t> out;
  std::vector<size_t> lines;
  for (size_t i = 0; i < stack.size(); ++i) {
    lines.push_back(stack[i]);
    const Location& location = locations_[stack[i]];
    const bool inlined = location.offset == 0 && location.module == Location::kNoModule;
    if (inlined && i + 1 < stack.size()) continue;
    out.push_back(add(lines));
    lines.clear();
  }
  return out;
}

size_t Sites::add(const std::vector<size_t>& lines) {
  const auto [known, added] = known_.try_emplace(lines, all_.size());
  if (added) {
    const Location& outermost = locations_[lines.back()];
    all_.push_back({lines, outermost.module, outermost.offset});
  }
  return known->second;
}
namespace {

// The name as pprof compares it: up to the parameters.
std::string compared(const std::string& function) {
  const std::string name = util::escaped(function, "");
  for (size_t at = 0; (at = name.find('(', at)) != std::string::npos; ++at) {
    bool reserved = false;
    for (const std::string_view word : {"(anonymous namespace)", "operator()"}) {
      const size_t before = word.find('(');
      reserved |= at >= before && std::string_view(name).substr(at - before).starts_with(word);
    }
    if (!reserved) return name.substr(0, at);
  }
  return name;
}

// `name` without what stands in these brackets, also nested; unchanged if they do not match.
std::string without_brackets(const std::string& name, char open, char close) {
  std::string out;
  int depth = 0;
  for (const char c : name) {
    if (c == open) {
      ++depth;
    } else if (c == close) {
      if (--depth < 0) return name;
    } else if (depth == 0) {
      out += c;
    }
  }
  return depth == 0 ? out : name;
}

// Likewise as go tool pprof does, which shortens C++ names before it drops frames.
std::string shortened(const std::string& function) {
  const std::string name = util::escaped(function, "");
  if (name.find("::") == std::string::npos && name.find_first_of("<>[]") == std::string::npos) {
    return compared(function);
  }
  return without_brackets(without_brackets(name, '(', ')'), '<', '>');
}

}  // namespace

std::string dropped_frames(const analyze::Table& table, const analyze::Responsible& responsible) {
  std::set<std::string> inside;
  std::set<std::string> kept;
  for (const analyze::Row& row : table.rows()) {
    // Nobody is known to be responsible: not a reason to keep a frame elsewhere.
    if (responsible.missing(row.frames, table.modules(), row.depth)) continue;
    const size_t leader = responsible.of(row.frames, table.modules());
    for (size_t i = 0; i < row.frames.size(); ++i) {
      const std::string& function = row.frames[i].function;
      if (function.empty()) continue;
      for (const std::string& name : {compared(function), shortened(function)}) {
        (i < leader ? inside : kept).insert(name);
      }
    }
  }
  std::string out;
  for (const std::string& name : inside) {
    if (!kept.contains(name)) out += (out.empty() ? "" : "|") + re2::RE2::QuoteMeta(name);
  }
  return out;
}

}  // namespace mtrace::exporting
