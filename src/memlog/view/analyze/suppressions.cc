#include "view/analyze/suppressions.h"

#include "util/text.h"
#include "view/analyze/frame_pattern.h"

namespace mtrace::analyze {
namespace {

using profile::Frame;
using profile::Module;

constexpr std::string_view kBetween = " < ";

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
      patterns_.emplace_back(util::trimmed(line.substr(0, end)));
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

bool StackPattern::matches(const profile::Frames& frames,
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
  each_pattern_line(name, text, [&](std::string_view line) { patterns.emplace_back(line); });
  return patterns;
}

const char kRuntimeKeeps[] =
    R"(# What C and C++ runtimes keep until the end: not the program's to free.

# libstdc++: memory for exceptions when there is none any more, 72,704 bytes, made at its start
frames:module:/libstdc\+\+\.so < module:/ld-linux

# The loader: objects, thread-local storage of threads that still run
frames:module:/ld-linux

# libc: buffers of stdin, stdout and files (a file that was never closed shows by fopen), the list
# of atexit, buffers of functions that return static data, thread-local storage
frames:function:^(_IO_w?file_doallocate$|__new_exitfn$|_?_dl_allocate_tls)
frames:function:^get((pw|gr|sp)(nam|uid|gid|ent)|(host|net|proto|serv)by(name2?|addr|number|port))$
frames:function:^(calloc|malloc)$ < function:^(__new_exitfn$|_?_dl_allocate_tls)

# libc: the time zone; message catalogues; locales that setlocale has loaded; name service modules
function:^(tzset(_internal)?|__tzfile_read|__tz_convert|_*nss_(action|module|database|passwd|group|shadow|hosts|services)_\w+|_nl_(load|find)_domain|__dcigettext|(bind)?textdomain|setlocale|_nl_find_locale|_nl_load_locale_from_archive)$
)";

std::vector<StackPattern> runtime_keeps() {
  return read_suppressions("the built-in list", kRuntimeKeeps);
}

bool kept_by_runtimes(const profile::Frames& frames, const std::vector<Module>& modules) {
  static const std::vector<StackPattern> keeps = runtime_keeps();
  return std::any_of(keeps.begin(), keeps.end(),
                     [&](const StackPattern& pattern) { return pattern.matches(frames, modules); });
}

}  // namespace mtrace::analyze
