#include "view/analyze/frame_pattern.h"

#include "util/error.h"
#include "util/text.h"
#include "view/analyze/function_name.h"

namespace mtrace::analyze {
namespace {

using profile::Frame;
using profile::Module;

// LeakSanitizer's pattern as a regular expression.
std::string expression_of(std::string_view pattern) {
  std::string out;
  if (pattern.starts_with('^')) {
    out += '^';
    pattern.remove_prefix(1);
  }
  const bool to_end = pattern.ends_with('$');
  if (to_end) pattern.remove_suffix(1);
  while (!pattern.empty()) {
    const size_t star = pattern.find('*');
    out += re2::RE2::QuoteMeta({pattern.data(), std::min(star, pattern.size())});
    if (star == std::string_view::npos) break;
    out += ".*";
    pattern.remove_prefix(star + 1);
  }
  if (to_end) out += '$';
  return out;
}

}  // namespace

std::unique_ptr<re2::RE2> compile(std::string_view expression) {
  if (expression.empty()) throw PatternError("an empty regular expression");
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_encoding(re2::RE2::Options::EncodingLatin1);  // names may be any bytes
  auto compiled =
      std::make_unique<re2::RE2>(re2::StringPiece(expression.data(), expression.size()), options);
  if (!compiled->ok()) {
    throw PatternError("\"" + std::string(expression) +
                       "\" is not a regular expression: " + compiled->error());
  }
  return compiled;
}

FramePattern::FramePattern(Where where, std::string_view expression)
    : where_(where), expression_(compile(expression)) {}

FramePattern::FramePattern(std::string_view text) : where_(Where::kAny) {
  struct Prefix {
    std::string_view text;
    Where where;
  };
  for (const Prefix& prefix :
       {Prefix{"function:", Where::kFunction}, Prefix{"source:", Where::kSource},
        Prefix{"module:", Where::kModule}}) {
    if (!text.starts_with(prefix.text) || text.substr(prefix.text.size()).starts_with(':'))
      continue;
    where_ = prefix.where;
    text.remove_prefix(prefix.text.size());
    break;
  }
  expression_ = compile(text);
}

FramePattern FramePattern::leak(std::string_view text) {
  return {Where::kAny, expression_of(text)};
}

template <typename Match>
bool FramePattern::remember(Known& known, const std::string& text, Match match) {
  const auto [place, added] = known.try_emplace(text, false);
  if (added) place->second = match();
  return place->second;
}

bool FramePattern::matches(const profile::Frames& frames, size_t at,
                           const std::vector<Module>& modules) const {
  const Frame& frame = frames[at];
  const auto found = [this](const std::string& text) {
    return re2::RE2::PartialMatch(text, *expression_);
  };
  const auto wanted = [this](Where where) { return where_ == Where::kAny || where_ == where; };
  const std::string& function = frame.function;
  if (wanted(Where::kFunction) && !function.empty() && remember(functions_, function, [&] {
        return found(function) || found(short_name(function));
      })) {
    return true;
  }
  const std::string& source = frame.source;
  if (wanted(Where::kSource) && !source.empty() && remember(sources_, source, [&] {
        return found(source) || found(source.substr(0, source.rfind(':')));
      })) {
    return true;
  }
  if (!wanted(Where::kModule)) return false;
  while (at + 1 < frames.size() && frames[at].place == profile::Place::kInlined) ++at;
  if (frames[at].place != profile::Place::kModule) return false;
  const std::string& path = modules[frames[at].module].path;
  return remember(modules_, path, [&] { return found(path); });
}

void each_pattern_line(const std::string& name, std::string_view text,
                       const std::function<void(std::string_view line)>& take) {
  size_t number = 0;
  for (std::string_view line : util::split(text, '\n')) {
    ++number;
    line = util::trimmed(line);
    if (line.empty() || line.starts_with('#')) continue;
    try {
      take(line);
    } catch (const PatternError& error) {
      throw util::FormatError(name, number, error.what());
    }
  }
}

}  // namespace mtrace::analyze
