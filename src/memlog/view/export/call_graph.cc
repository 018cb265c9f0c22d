#include "view/export/call_graph.h"

#include <zlib.h>

#include <protozero/pbf_writer.hpp>

#include "util/json.h"
#include "util/text.h"
#include "view/export/stacks.h"

namespace mtrace::exporting {

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
  return text(out);
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
