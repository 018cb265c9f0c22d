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
  runtime_stacks += more.runtime_stacks;
  add_saturating(bytes, more.bytes);
  add_saturating(runtime_bytes, more.runtime_bytes);
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

LeftOut Filter::apply(profile::Memlog& memlog) {
  LeftOut out;
  if (include.empty() && exclude.empty() && runtime.empty() && calls.empty()) return out;
  std::erase_if(memlog.entries, [&](const profile::Entry& entry) {
    const uint64_t number = entry.frames.number();
    const auto known = known_.find(number);
    const bool called =
        calls.empty() || std::find(calls.begin(), calls.end(), entry.call.text()) != calls.end();
    if (!called) return out.add(entry.kind, entry.bytes), true;
    const Taken taken =
        number != 0 && known != known_.end() ? known->second : takes(entry.frames, memlog.modules);
    if (number != 0) known_.try_emplace(number, taken);
    if (taken == Taken::kNo) out.add(entry.kind, entry.bytes);
    if (taken == Taken::kRuntime) out.add({0, 0, 1, entry.kind.empty() ? entry.bytes : 0});
    return taken != Taken::kYes;
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
