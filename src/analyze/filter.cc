#include "analyze/filter.h"

#include <algorithm>

namespace mtrace::analyze {
namespace {

bool any(const std::vector<StackPattern>& patterns, const profile::Entry& entry,
         const std::vector<profile::Module>& modules) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const StackPattern& pattern) {
    return pattern.matches(entry.frames, modules);
  });
}

}  // namespace

void LeftOut::add(const std::string& kind, int64_t change) { add({1, kind.empty() ? change : 0}); }

void LeftOut::add(const LeftOut& more) {
  stacks += more.stacks;
  if (__builtin_add_overflow(bytes, more.bytes, &bytes)) {
    bytes = more.bytes > 0 ? INT64_MAX : INT64_MIN;
  }
}

bool Filter::takes(const profile::Header& header) const {
  return (!seq || seq->holds(static_cast<uint64_t>(header.seq))) &&
         (label == nullptr || re2::RE2::PartialMatch(header.label, *label));
}

LeftOut Filter::apply(profile::Memlog& memlog) const {
  LeftOut out;
  if (include.empty() && exclude.empty()) return out;
  std::erase_if(memlog.entries, [&](const profile::Entry& entry) {
    const bool wanted = (include.empty() || any(include, entry, memlog.modules)) &&
                        !any(exclude, entry, memlog.modules);
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
