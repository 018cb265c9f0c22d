#include "surface/serve/request.h"

#include "util/text.h"
#include "view/text/style.h"

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

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t begin = 1; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_variable(std::string_view part) { return part.starts_with('{'); }
std::string name_of(std::string_view variable) {
  return std::string(variable.substr(1, variable.size() - 2));
}

}  // namespace

std::optional<PathParts> match_path(std::string_view pattern, std::string_view path) {
  const auto patterns = parts_of(pattern);
  const auto given = parts_of(path);
  if (!path.starts_with('/') || patterns.size() != given.size()) return std::nullopt;
  PathParts parts;
  for (size_t i = 0; i < given.size(); ++i) {
    if (is_variable(patterns[i]) && !given[i].empty()) {
      parts[name_of(patterns[i])] = given[i];
    } else if (patterns[i] != given[i]) {
      return std::nullopt;
    }
  }
  return parts;
}

std::vector<std::string> names_of(std::string_view pattern) {
  std::vector<std::string> names;
  for (const std::string_view part : parts_of(pattern)) {
    if (is_variable(part)) names.push_back(name_of(part));
  }
  return names;
}

const cli::Option* option_of(const cli::Manual& manual, const std::string& parameter) {
  std::string name = "--" + parameter;
  std::replace(name.begin(), name.end(), '_', '-');
  const cli::Option* const found = cli::find_option(manual, name);
  return found == nullptr && parameter == "limit" ? cli::find_option(manual, "--number") : found;
}

Given view_options(const Query& query, const cli::Manual& manual,
                   const std::vector<std::string>& allowed) {
  Given given;
  for (const auto& [name, value] : query) {
    const cli::Option* const option =
        std::find(allowed.begin(), allowed.end(), name) == allowed.end() ? nullptr
                                                                         : option_of(manual, name);
    if (option == nullptr) {
      throw QueryError(fmt::format("no parameter {}: this path has {}", util::escaped(name, ""),
                                   fmt::join(allowed, ", ")));
    }
    check(name, value);
    if (*option->value != '\0') {
      given.emplace(option->name, value);
    } else if (is_on(name, value)) {
      given.emplace(option->name, "");
    }
  }
  return given;
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

ExpireRequest read_expire(const Query& query) {
  using std::chrono::milliseconds;
  constexpr milliseconds kLeastAfter{100};
  constexpr long kMostBlocks = 100'000;  // bounds what a watch remembers
  ExpireRequest request;
  request.length = std::chrono::seconds(number_of(query, "seconds", 30, 1, 60));
  request.most =
      static_cast<uint64_t>(number_of(query, "max_expired", kMostBlocks, 1, kMostBlocks));
  const auto given = query.find("after");
  if (given != query.end()) {
    const auto after = text::read_duration(given->second, 1000);
    if (!after) throw QueryError("after: not a time like 500ms or 10s");
    request.after = milliseconds(std::min(*after, uint64_t{INT32_MAX}));
  }
  if (request.after < kLeastAfter || request.after >= request.length) {
    throw QueryError(fmt::format("after: not from {} ms to less than the {} seconds of the watch",
                                 kLeastAfter.count(), request.length.count()));
  }
  return request;
}

}  // namespace mtrace::serve
