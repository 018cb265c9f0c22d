#include "view/analyze/joined.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace mtrace::analyze {
namespace {

using profile::Frame;
using profile::Place;

// Where a call returns to, and where its caller does.
struct Calls {
  uint64_t inner_module, inner, outer_module, outer;

  bool operator==(const Calls&) const = default;
  template <typename Hash>
  friend Hash AbslHashValue(Hash state, const Calls& calls) {
    return Hash::combine(std::move(state), calls.inner_module, calls.inner, calls.outer_module,
                         calls.outer);
  }
};

Calls calls_of(const Frame& inner, const Frame& outer) {
  return {inner.module, inner.offset, outer.module, outer.offset};
}

bool has_address(const Frame& frame) { return frame.place == Place::kModule; }

// Of a cut stack.
std::optional<Calls> outermost(const Row& row) {
  const Frame* outer = nullptr;
  for (size_t i = row.frames.size(); i-- > 0;) {
    const Frame& frame = row.frames[i];
    if (frame.place == Place::kInlined) continue;
    if (!has_address(frame)) return std::nullopt;
    if (outer != nullptr) return calls_of(frame, *outer);
    outer = &frame;
  }
  return std::nullopt;
}

// What comes behind: the frames of `row` from `first` on.
struct Callers {
  const Row* row = nullptr;
  size_t first = 0;
  bool differ = false;  // between stacks

  bool same(const Row& other, size_t at) const {
    return std::equal(row->frames.begin() + static_cast<ptrdiff_t>(first), row->frames.end(),
                      other.frames.begin() + static_cast<ptrdiff_t>(at), other.frames.end());
  }
};

using Known = absl::flat_hash_map<Calls, Callers>;

void learn(Known& known, const Row& row) {
  const Frame* inner = nullptr;
  for (size_t i = 0; i < row.frames.size(); ++i) {
    const Frame& frame = row.frames[i];
    if (frame.place == Place::kInlined) continue;
    const Frame* const before = std::exchange(inner, &frame);
    if (before == nullptr || !has_address(*before) || !has_address(frame)) continue;
    const auto found = known.find(calls_of(*before, frame));
    if (found == known.end()) continue;
    Callers& callers = found->second;
    if (callers.row == nullptr) {
      callers = {&row, i + 1};
    } else if (!callers.same(row, i + 1)) {
      callers.differ = true;
    }
  }
}

bool is_cut(const Row& row) { return row.cut && row.depth != 0; }

}  // namespace

void join_cut(Table& table) {
  Known known;
  for (const Row& row : table.rows()) {
    if (!is_cut(row)) continue;
    if (const auto calls = outermost(row)) known.try_emplace(*calls);
  }
  if (known.empty()) return;
  for (const Row& row : table.rows()) {
    if (!row.cut) learn(known, row);
  }
  for (Row& row : table.rows()) {
    if (!is_cut(row)) continue;
    const auto calls = outermost(row);
    if (!calls) continue;
    const Callers& callers = known.at(*calls);
    if (callers.row == nullptr || callers.differ || callers.first == callers.row->frames.size()) {
      continue;
    }
    row.joined = row.frames.size();
    profile::Frames::List& frames = row.frames.edit();
    frames.insert(frames.end(), callers.row->frames.begin() + static_cast<ptrdiff_t>(callers.first),
                  callers.row->frames.end());
    row.cut = false;
    row.depth = 0;
  }
}

}  // namespace mtrace::analyze
