#include "view/analyze/filter.h"

#include <algorithm>

namespace mtrace::analyze {
namespace {

bool any(const std::vector<StackPattern>& patterns, const profile::Frames& frames,
         const std::vector<profile::Module>& modules) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const StackPattern& pattern) { return pattern.matches(frames, modules); });
}

}  // namespace

void LeftOut::add(const std::string& kind, int64_t change) { add({1, kind.empty() ? change : 0}); }

void LeftOut::add(const LeftOut& more) {
  stacks += more.stacks;
  if (__builtin_add_overflow(bytes, more.bytes, &bytes)) {
    bytes = more.bytes > 0 ? INT64_MAX : INT64_MIN;
  }
}

bool Filter::takes(int64_t number, const std::string& text) const {
  return (!seq || seq->holds(static_cast<uint64_t>(number))) &&
         (label == nullptr || re2::RE2::PartialMatch(text, *label));
}

bool Filter::wants(const profile::Frames& frames,
                   const std::vector<profile::Module>& modules) const {
  return (include.empty() || any(include, frames, modules)) && !any(exclude, frames, modules);
}

LeftOut Filter::apply(profile::Memlog& memlog) {
  LeftOut out;
  if (include.empty() && exclude.empty() && calls.empty()) return out;
  std::erase_if(memlog.entries, [&](const profile::Entry& entry) {
    const uint64_t number = entry.frames.number();
    const auto known = wanted_.find(number);
    const bool called =
        calls.empty() || std::find(calls.begin(), calls.end(), entry.call.text()) != calls.end();
    if (!called) return out.add(entry.kind, entry.bytes), true;
    const bool wanted =
        number != 0 && known != wanted_.end() ? known->second : wants(entry.frames, memlog.modules);
    if (number != 0) wanted_.try_emplace(number, wanted);
    if (!wanted) out.add(entry.kind, entry.bytes);
    return !wanted;
  });
  return out;
}

LeftOut Filter::apply(std::vector<Row>& rows) const {
  LeftOut out;
  std::erase_if(rows, [&](const Row& row) {
    const uint64_t size = row.bytes < 0 ? uint64_t{0} - static_cast<uint64_t>(row.bytes)
                                        : static_cast<uint64_t>(row.bytes);
    const bool wanted =
        size >= min_bytes && (!grew || row.bytes > 0) && (!shrank || row.bytes < 0) &&
        (!lifetime || (row.lifetimes.frees != 0 && lifetime->holds(row.lifetimes.mean())));
    if (!wanted) out.add(row.kind, row.bytes);
    return !wanted;
  });
  return out;
}

}  // namespace mtrace::analyze
