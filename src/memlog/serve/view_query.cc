#include "serve/view_query.h"

#include <fmt/format.h>

#include <algorithm>

#include "profile/text.h"

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
  throw QueryError(fmt::format("{}: {} is neither 1 nor 0", name, profile::escaped(value, "")));
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
      throw QueryError(fmt::format("no parameter {}: this path has {}", profile::escaped(name, ""),
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
  const auto number = profile::read_unsigned(found->second, static_cast<uint64_t>(most));
  if (!number || static_cast<long>(*number) < least) {
    throw QueryError(fmt::format("{}: not a number from {} to {}", name, least, most));
  }
  return static_cast<long>(*number);
}

}  // namespace mtrace::serve
