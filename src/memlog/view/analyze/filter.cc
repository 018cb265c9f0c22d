#include "view/analyze/filter.h"

#include "util/error.h"
#include "util/text.h"
#include "view/analyze/function_name.h"

namespace mtrace::analyze {
namespace {

bool any(const std::vector<StackPattern>& patterns, const profile::Frames& frames,
         const std::vector<profile::Module>& modules) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const StackPattern& pattern) { return pattern.matches(frames, modules); });
}

}  // namespace

void StacksLeftOut::add(uint64_t id, std::string_view kind, int64_t bytes) {
  if (id != 0) ids_.emplace(id, kind);
  without_id_ += id == 0;
  if (kind.empty()) add_saturating(bytes_, bytes);
}

void StacksLeftOut::add(const StacksLeftOut& more, int sign) {
  ids_.insert(more.ids_.begin(), more.ids_.end());
  without_id_ += more.without_id_;
  add_saturating(bytes_, std::max(more.bytes_, -INT64_MAX) * sign);
}

bool Filter::takes(int64_t number, const std::string& text) const {
  return (!seq || seq->holds(static_cast<uint64_t>(number))) &&
         (label == nullptr || re2::RE2::PartialMatch(text, *label));
}

Filter::Taken Filter::takes(const profile::Frames& frames,
                            const std::vector<profile::Module>& modules) const {
  if (!include.empty() && !any(include, frames, modules)) return Taken::kNo;
  if (any(exclude, frames, modules)) return Taken::kNo;
  return any(runtime, frames, modules) ? Taken::kRuntime : Taken::kYes;
}

FilteredOut Filter::apply(profile::Memlog& memlog) {
  FilteredOut out;
  if (include.empty() && exclude.empty() && runtime.empty() && calls.empty()) return out;
  std::erase_if(memlog.entries, [&](const profile::Entry& entry) {
    const uint64_t number = entry.frames.number();
    const auto known = known_.find(number);
    const bool called =
        calls.empty() || std::find(calls.begin(), calls.end(), entry.call.text()) != calls.end();
    if (!called) return out.by_filters.add(entry.stack, entry.kind, entry.bytes), true;
    const Taken taken =
        number != 0 && known != known_.end() ? known->second : takes(entry.frames, memlog.modules);
    if (number != 0) known_.try_emplace(number, taken);
    if (taken == Taken::kYes) return false;
    StacksLeftOut& part = taken == Taken::kNo ? out.by_filters : out.by_runtimes;
    part.add(entry.stack, entry.kind, entry.bytes);
    return true;
  });
  return out;
}

FilteredOut Filter::apply(std::vector<Row>& rows) const {
  FilteredOut out;
  std::erase_if(rows, [&](const Row& row) {
    const uint64_t size = row.bytes < 0 ? uint64_t{0} - static_cast<uint64_t>(row.bytes)
                                        : static_cast<uint64_t>(row.bytes);
    const bool wanted =
        size >= min_bytes && (!grew || row.bytes > 0) && (!shrank || row.bytes < 0) &&
        (!lifetime || (row.lifetimes.frees != 0 && lifetime->holds(row.lifetimes.mean())));
    if (!wanted) out.by_filters.add(row.stack, row.kind, row.bytes);
    return !wanted;
  });
  return out;
}

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

namespace {

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
