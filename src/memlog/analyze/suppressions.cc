#include "analyze/suppressions.h"

#include "profile/error.h"
#include "profile/text.h"

namespace mtrace::analyze {
namespace {

using profile::Frame;
using profile::Module;

constexpr std::string_view kBetween = " < ";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

}  // namespace

StackPattern::StackPattern(std::string_view line) {
  const auto rest_after = [&](std::string_view prefix) {
    if (!line.starts_with(prefix)) return false;
    line.remove_prefix(prefix.size());
    return true;
  };
  if (rest_after("leak:")) {
    if (line.empty()) throw PatternError("leak: has no pattern");
    patterns_.push_back(FramePattern::leak(line));
  } else if (rest_after("frames:")) {
    in_order_ = true;
    for (size_t end = 0; end != std::string_view::npos; line.remove_prefix(end + kBetween.size())) {
      end = line.find(kBetween);
      patterns_.emplace_back(trimmed(line.substr(0, end)));
      if (end == std::string_view::npos) break;
    }
  } else if (rest_after("any:") || line.starts_with("function:") || line.starts_with("source:") ||
             line.starts_with("module:")) {
    patterns_.emplace_back(line);
  } else {
    throw PatternError(
        "not a suppression: it must begin with leak:, function:, source:, module:, any: or "
        "frames:");
  }
}

bool StackPattern::matches(const std::vector<Frame>& frames,
                           const std::vector<Module>& modules) const {
  if (in_order_ && frames.size() < patterns_.size()) return false;
  const size_t count = in_order_ ? patterns_.size() : frames.size();
  for (size_t i = 0; i < count; ++i) {
    const bool found = patterns_[in_order_ ? i : 0].matches(frames, i, modules);
    if (found != in_order_) return found;
  }
  return in_order_;
}

std::vector<StackPattern> read_suppressions(const std::string& name, std::string_view text) {
  std::vector<StackPattern> patterns;
  size_t number = 0;
  for (std::string_view line : profile::split(text, '\n')) {
    ++number;
    line = trimmed(line);
    if (line.empty() || line.starts_with('#')) continue;
    try {
      patterns.emplace_back(line);
    } catch (const PatternError& error) {
      throw profile::FormatError(name, number, error.what());
    }
  }
  return patterns;
}

}  // namespace mtrace::analyze
