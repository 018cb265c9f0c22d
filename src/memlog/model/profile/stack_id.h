// The ids of stacks, for what reports do not tell.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "format/memlog.h"
#include "model/profile/model.h"

namespace mtrace::profile {

// The id of a stack, and those of its rests: its outermost kStep, 2 * kStep, ... frames.
class StackIds {
 public:
  using Rests = std::vector<uint64_t>;
  static constexpr size_t kStep = 8;

  // Outermost frame first.
  void add(uint64_t module_identity, uint64_t offset) {
    id_.add(module_identity, offset);
    if (++count_ % kStep == 0) rests_.push_back(id_.value());
  }
  uint64_t value() const { return id_.value(); }
  Rests take_rests() { return std::move(rests_); }

 private:
  format::StackId id_;
  size_t count_ = 0;
  Rests rests_;
};

inline uint64_t identity_of(const Module& module) {
  const std::string& text = module.build_id.empty() ? module.path : module.build_id;
  return format::module_identity(text.data(), text.size());
}

// Of frames, innermost first; identity(number) is that of a module.
template <typename Identity>
StackIds stack_ids(const Frames::List& frames, const Identity& identity) {
  StackIds ids;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (frame->place == Place::kInlined) continue;
    ids.add(frame->place == Place::kModule ? identity(frame->module) : 0, frame->offset);
  }
  return ids;
}

}  // namespace mtrace::profile
