#include "surface/serve/view_query.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/text.h"

namespace mtrace::serve {
namespace {

constexpr size_t kLongest = 1000;  // bytes of a value

void check(const std::string& name, const std::string& value) {
  const bool control =
      std::any_of(value.begin(), value.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; });
  if (control) throw QueryError(fmt::format("{}: a control character", name));
  if (value.size() > kLongest) {
    throw QueryError(fmt::format("{}: longer than {} bytes", name, kLongest));
  }
}

bool is_on(const std::string& name, const std::string& value) {
  if (value.empty() || value == "1" || value == "true") return true;
  if (value == "0" || value == "false") return false;
  throw QueryError(fmt::format("{}: {} is neither 1 nor 0", name, util::escaped(value, "")));
}

}  // namespace

const std::vector<Parameter>& view_parameters() {
  static const std::vector<Parameter> parameters = {
      {"include", "--include", false, "Only stacks with a frame that matches (RE2); repeatable."},
      {"exclude", "--exclude", false, "No stacks with a frame that matches (RE2); repeatable."},
      {"min_bytes", "--min-bytes", false, "Only entries of at least this size, like 1.5K."},
      {"grew", "--grew", true, "Only entries that grew."},
      {"shrank", "--shrank", true, "Only entries that shrank."},
      {"lifetime", "--lifetime", false, "Only stacks whose blocks lived so long, like 20s..1m."},
      {"frames", "--frames", false, "all, or a range of frames like 2..3."},
      {"depth", "--depth", false, "Merge stacks that agree in so many frames."},
      {"by", "--by", false, "What to sort by: bytes, blocks, allocs, peak and so on."},
      {"group_by", "--group-by", false, "stack, function, file, line or module."},
      {"limit", "--number", false, "The most entries; 0: all."},
      {"threshold", "--threshold", false, "Fold branches below this percentage."},
      {"invert", "--invert", true, "From main inward."},
      {"full", "--full", true, "All frames, none folded."},
      {"level", "--level", false, "Significance, like 0.05."},
      {"all", "--all", true, "Use report 1 and the report at exit, too."},
      // Of events, and of the blocks that they belong to.
      {"size", "--size", false, "Only events with a requested size like 64K.. or 100..200."},
      {"address", "--address", false, "Only events with an address like 0x55d0..0x55df."},
      {"thread", "--thread", false, "Only events of this thread, or of a range of threads."},
      {"time", "--time", false, "Only events of a time (UTC) like 12:04:31..12:04:32.5."},
      {"born", "--born", false, "Only blocks allocated at such a time."},
      {"freed", "--freed", false, "Only blocks freed at such a time."},
      {"alive_at", "--alive-at", false, "Only blocks that lived at this time."},
      {"alive_until", "--alive-until", false, "Only blocks freed at this time or later, or never."},
      {"leaked", "--leaked", true, "Only blocks that are never freed."},
      {"between", "--between", false, "Only blocks allocated between two markers: A..B."},
      {"stack_depth", "--stack-depth", false, "Only blocks whose stack has so many frames: 5..10."},
      {"chain_length", "--chain-length", false, "Only blocks of chains of so many reallocs: 3.."},
      {"chain_age", "--chain-age", false, "Only blocks of chains that live so long: 5s.."},
      {"group_first", "--group-first", false, "Only blocks of stacks that began at such a time."},
      {"group_last", "--group-last", false, "Only blocks of stacks that ended at such a time."},
      {"group_interval", "--group-interval", false,
       "Only blocks of stacks with so much time from the first to the last: 10s.. ."},
      {"group_leaked", "--group-leaked", false,
       "Only blocks of stacks of which so many percent are never freed: 1..99."},
  };
  return parameters;
}

std::vector<std::string> view_options(const Query& query, const std::vector<std::string>& allowed) {
  std::vector<std::string> words;
  for (const auto& one : query) {
    const std::string& name = one.first;
    const std::string& value = one.second;
    const auto known =
        std::find_if(view_parameters().begin(), view_parameters().end(),
                     [&](const Parameter& parameter) { return parameter.name == name; });
    if (known == view_parameters().end() ||
        std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
      throw QueryError(fmt::format("no parameter {}: this path has {}", util::escaped(name, ""),
                                   fmt::join(allowed, ", ")));
    }
    check(name, value);
    if (!known->is_switch) {
      words.push_back(fmt::format("{}={}", known->option, value));
    } else if (is_on(name, value)) {
      words.emplace_back(known->option);
    }
  }
  return words;
}

long number_of(const Query& query, const std::string& name, long otherwise, long least, long most) {
  const auto found = query.find(name);
  if (found == query.end()) return otherwise;
  const auto number = util::read_unsigned(found->second, static_cast<uint64_t>(most));
  if (!number || static_cast<long>(*number) < least) {
    throw QueryError(fmt::format("{}: not a number from {} to {}", name, least, most));
  }
  return static_cast<long>(*number);
}

}  // namespace mtrace::serve
