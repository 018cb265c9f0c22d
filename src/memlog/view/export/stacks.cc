#include "view/export/stacks.h"

#include <re2/re2.h>
#include <zlib.h>

#include <protozero/pbf_writer.hpp>

#include "format/memlog.h"
#include "util/file.h"
#include "util/json.h"
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

CallGraph call_graph(const Stacks& stacks, const analyze::Table& table) {
  CallGraph graph;
  std::map<std::tuple<std::string, std::string, std::string>, size_t> known;
  for (const Stack& stack : stacks.stacks) {
    std::vector<size_t> chain(stack.locations.size());
    std::string module;
    for (size_t i = chain.size(); i-- > 0;) {
      const Location& location = stacks.locations[stack.locations[i]];
      if (location.module != Location::kNoModule) {
        module = util::escaped(table.modules()[location.module].path, "");
      } else if (location.offset != 0) {
        module.clear();
      }
      const auto [place, added] =
          known.try_emplace({location.function, location.file, module}, graph.functions.size());
      if (added) graph.functions.push_back({location.function, location.file, module, 0, {}});
      chain[i] = place->second;
    }
    std::set<size_t> seen;
    std::set<CallGraph::Calls::key_type> called;
    std::set<std::pair<size_t, size_t>> linked;
    for (size_t i = 0; i < chain.size(); ++i) {
      GraphFunction& function = graph.functions[chain[i]];
      const uint64_t line = stacks.locations[stack.locations[i]].line;
      if (seen.insert(chain[i]).second) function.total += stack.value;
      if (i == 0) {
        function.own[line] += stack.value;
      } else if (called.emplace(chain[i], line, chain[i - 1]).second) {
        GraphCall& call = graph.calls[{chain[i], line, chain[i - 1]}];
        call.total += stack.value;
        call.allocations += std::max<uint64_t>(stack.row->allocations, 1);
        const std::pair edge(chain[i], chain[i - 1]);
        if (linked.insert(edge).second) graph.edges[edge] += stack.value;
      }
    }
  }
  return graph;
}
namespace {

std::string dot_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string dot(const Stacks& stacks, const CallGraph& graph, double percent) {
  const auto whole = static_cast<double>(stacks.total);
  const auto share = [&](uint64_t value) {
    return whole == 0 ? 0 : 100 * static_cast<double>(value) / whole;
  };
  std::string out = fmt::format(
      "digraph memlog {{\n  label=\"{} of {}: {} {}\";\n  node [shape=box, style=filled, "
      "fontname=\"Helvetica\"];\n",
      stacks.column, dot_escaped(stacks.program), stacks.total, stacks.unit);
  for (size_t i = 0; i < graph.functions.size(); ++i) {
    const GraphFunction& function = graph.functions[i];
    if (share(function.total) < percent) continue;
    uint64_t own = 0;
    for (const auto& [line, value] : function.own) own += value;
    out += fmt::format(
        "  n{} [label=\"{}\\n{} ({:.1f}%)\\nown {} ({:.1f}%)\", fillcolor=\"0.05 {:.3f} 1.0\"];\n",
        i, dot_escaped(function.name), function.total, share(function.total), own, share(own),
        share(function.total) / 150);
  }
  for (const auto& [edge, value] : graph.edges) {
    if (share(value) < percent || share(graph.functions[edge.first].total) < percent) continue;
    out += fmt::format("  n{} -> n{} [label=\"{}\", penwidth={:.1f}];\n", edge.first, edge.second,
                       value, 1 + share(value) / 25);
  }
  return out + "}\n";
}

std::string gprof2dot(const Stacks& stacks, const analyze::Table& table) {
  using json::Value;
  Value functions = Value::array();
  std::map<std::pair<std::string, std::string>, size_t> known;
  std::vector<size_t> function_of;  // by location
  for (const Location& location : stacks.locations) {
    std::string module;
    if (location.module != Location::kNoModule) {
      module = util::escaped(table.modules()[location.module].path, "");
    }
    const auto [place, added] = known.try_emplace({module, location.function}, known.size());
    if (added) functions.push_back({{"module", module}, {"name", location.function}});
    function_of.push_back(place->second);
  }
  Value events = Value::array();
  for (const Stack& stack : stacks.stacks) {
    Value chain = Value::array();
    for (const size_t location : stack.locations) chain.push_back(function_of[location]);
    Value cost = Value::array();
    cost.push_back(stack.value);
    events.push_back({{"callchain", std::move(chain)}, {"cost", std::move(cost)}});
  }
  Value out;
  out["version"] = 0;
  out["functions"] = std::move(functions);
  out["events"] = std::move(events);
  out["costs"] = Value::array({{{"description", stacks.column}, {"unit", stacks.unit}}});
  return json::text(out);
}

namespace {

std::string or_unknown(const std::string& text) { return text.empty() ? "???" : text; }

}  // namespace

std::string callgrind(const Stacks& stacks, const CallGraph& graph) {
  // Without the line "# callgrind format", which is optional: gprof2dot takes the version only from
  // the first line.
  std::string out = fmt::format(
      "version: 1\ncreator: memlog\ncmd: {}\npositions: line\nevents: {}\nsummary: {}\n",
      stacks.program, stacks.column, stacks.total);
  auto call = graph.calls.begin();
  for (size_t i = 0; i < graph.functions.size(); ++i) {
    const GraphFunction& function = graph.functions[i];
    out += fmt::format("\nob={}\nfl={}\nfn={}\n", or_unknown(function.module),
                       or_unknown(function.file), function.name);
    for (const auto& [line, value] : function.own) out += fmt::format("{} {}\n", line, value);
    for (; call != graph.calls.end() && std::get<0>(call->first) == i; ++call) {
      const GraphFunction& callee = graph.functions[std::get<2>(call->first)];
      out += fmt::format("cob={}\ncfi={}\ncfn={}\ncalls={} 0\n{} {}\n", or_unknown(callee.module),
                         or_unknown(callee.file), callee.name, call->second.allocations,
                         std::get<1>(call->first), call->second.total);
    }
  }
  return out;
}

namespace {

// Field numbers of profile.proto.
constexpr int kSampleType = 1, kSample = 2, kMapping = 3, kLocation = 4, kFunction = 5,
              kStringTable = 6, kDropFrames = 7, kTimeNanos = 9, kDefaultSampleType = 14;

class Strings {
 public:
  Strings() { of(""); }
  int64_t of(const std::string& text) {
    const auto [place, added] = known_.try_emplace(text, texts_.size());
    if (added) texts_.push_back(text);
    return static_cast<int64_t>(place->second);
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  absl::flat_hash_map<std::string, size_t> known_;
  std::vector<std::string> texts_;
};

struct Type {
  const char* name;
  const char* unit;
};

class PprofWriter {
 public:
  PprofWriter(const Stacks& stacks, const analyze::Table& table, const char* shown)
      : stacks_(stacks), table_(table), profile_(text_), shown_(shown), sites_(stacks.locations) {
    for (size_t i = 0; i < table.modules().size(); ++i) order_.push_back(i);
    // pprof takes the first mapping for the program.
    std::stable_partition(order_.begin(), order_.end(), [&](size_t module) {
      return util::escaped(table.modules()[module].path, "") == stacks.program;
    });
    numbers_.resize(order_.size());
    for (size_t i = 0; i < order_.size(); ++i) numbers_[order_[i]] = i + 1;
  }

  std::string write(int64_t nanoseconds, const std::string& dropped) {
    sample_types();
    for (const Stack& stack : stacks_.stacks) sample(stack);
    for (const size_t module : order_) mapping(module);
    if (!dropped.empty()) profile_.add_int64(kDropFrames, strings_.of(dropped));
    for (const auto& [key, id] : functions_) function(key, id);
    if (nanoseconds != 0) profile_.add_int64(kTimeNanos, nanoseconds);
    profile_.add_int64(kDefaultSampleType, strings_.of(default_));
    for (const std::string& one : strings_.texts()) profile_.add_string(kStringTable, one);
    return std::move(text_);
  }

 private:
  using FunctionKey = std::pair<std::string, std::string>;  // name, file
  using Message = protozero::pbf_writer;

  void type(const std::string& name, const std::string& unit) {
    Message one(profile_, kSampleType);
    one.add_int64(1, strings_.of(name));
    one.add_int64(2, strings_.of(unit));
  }

  void sample_types() {
    asked_ = stacks_.column != "bytes";
    default_ = asked_ ? stacks_.column : shown_;
    if (asked_) type(stacks_.column, stacks_.unit == std::string("bytes") ? "bytes" : "count");
    type("alloc_objects", "count");
    type("alloc_space", "bytes");
    type("inuse_objects", "count");
    type("inuse_space", "bytes");
  }

  void sample(const Stack& stack) {
    std::vector<uint64_t> ids;
    for (const size_t site : sites_.of(stack.locations)) {
      if (site == written_) location(sites_.all()[written_++], site + 1);
      ids.push_back(site + 1);
    }
    Message one(profile_, kSample);
    one.add_packed_uint64(1, ids.begin(), ids.end());
    std::vector<int64_t> values;
    if (asked_) values.push_back(static_cast<int64_t>(stack.value));
    values.push_back(static_cast<int64_t>(stack.row->allocations));
    values.push_back(static_cast<int64_t>(stack.row->allocated_bytes));
    values.push_back(std::max<int64_t>(stack.row->blocks, 0));
    values.push_back(std::max<int64_t>(stack.row->bytes, 0));
    one.add_packed_int64(2, values.begin(), values.end());
  }

  void location(const Site& site, uint64_t number) {
    std::vector<std::pair<uint64_t, uint64_t>> calls;
    for (const size_t index : site.lines) {
      const Location& location = stacks_.locations[index];
      const FunctionKey key = {location.function, location.file};
      calls.emplace_back(functions_.try_emplace(key, functions_.size() + 1).first->second,
                         location.line);
    }
    Message one(profile_, kLocation);
    one.add_uint64(1, number);
    if (site.module != Location::kNoModule) {
      one.add_uint64(2, numbers_[site.module]);
      one.add_uint64(3, table_.modules()[site.module].base + site.offset);
    } else {
      one.add_uint64(3, site.offset);
    }
    for (const auto& [id, line] : calls) {
      Message call(one, 4);
      call.add_uint64(1, id);
      call.add_int64(2, static_cast<int64_t>(line));
    }
  }

  void mapping(size_t index) {
    const profile::Module& module = table_.modules()[index];
    Message one(profile_, kMapping);
    one.add_uint64(1, numbers_[index]);
    one.add_uint64(2, module.base);
    one.add_int64(5, strings_.of(util::escaped(module.path, "")));
    one.add_int64(6, strings_.of(util::hex_bytes(module.build_id)));
    // Names are here already.
    for (const int known : {7, 8, 9, 10}) one.add_bool(known, true);
  }

  void function(const FunctionKey& key, uint64_t id) {
    Message one(profile_, kFunction);
    one.add_uint64(1, id);
    one.add_int64(2, strings_.of(key.first));
    one.add_int64(3, strings_.of(key.first));
    one.add_int64(4, strings_.of(key.second));
  }

  const Stacks& stacks_;
  const analyze::Table& table_;
  std::vector<size_t> order_;      // of the modules, in which they are written
  std::vector<uint64_t> numbers_;  // by module: of its mapping
  std::string text_;
  Message profile_;
  Strings strings_;
  const char* shown_;
  bool asked_ = false;
  std::string default_;
  std::map<FunctionKey, uint64_t> functions_;
  Sites sites_;
  size_t written_ = 0;  // of them
};

}  // namespace

std::string pprof(const Stacks& stacks, const analyze::Table& table, int64_t nanoseconds,
                  const analyze::Responsible* responsible, const char* shown) {
  const std::string dropped = responsible == nullptr ? "" : dropped_frames(table, *responsible);
  return gzip(PprofWriter(stacks, table, shown).write(nanoseconds, dropped));
}

std::string gzip(const std::string& text) {
  constexpr int kGzip = 16;  // added to the window's bits: a header of gzip's
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + kGzip, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw std::runtime_error("cannot compress");
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool good = text.size() <= UINT32_MAX && deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (!good) throw std::runtime_error("cannot compress");
  return out;
}

}  // namespace mtrace::exporting
