// The frames of a stack. Equal stacks share one list: the reports of a process mostly repeat the
// same stacks.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "profile/name.h"

namespace mtrace::profile {

// Index into Memlog::modules.
using ModuleIndex = uint32_t;

enum class Place : uint8_t {
  kModule,   // `offset` is an ELF address in `module`
  kAddress,  // `offset` is an address outside every module
  kInlined,  // inlined into the next frame that has an address
};

struct Frame {
  Place place = Place::kAddress;
  ModuleIndex module = 0;  // kModule only
  uint64_t offset = 0;     // 0 for kInlined
  Name function;           // empty: unknown
  Name source;             // FILE:LINE, empty: unknown
  bool guessed = false;    // it and those behind it may be wrong; never for kInlined

  bool operator==(const Frame&) const = default;
};

// A list of frames, innermost first. Copies share the list until one of them changes it.
class Frames {
 public:
  using List = std::vector<Frame>;

  Frames() = default;
  // `number`: unique to this list if it is expected again; else 0.
  Frames(List list, uint64_t number = 0)  // NOLINT(google-explicit-constructor)
      : list_(std::make_shared<List>(std::move(list))), number_(number) {}

  operator const List&() const { return list(); }  // NOLINT(google-explicit-constructor)
  const List& list() const {
    static const List none;
    return list_ == nullptr ? none : *list_;
  }
  List::const_iterator begin() const { return list().begin(); }
  List::const_iterator end() const { return list().end(); }
  size_t size() const { return list().size(); }
  bool empty() const { return list().empty(); }
  const Frame& operator[](size_t index) const { return list()[index]; }
  uint64_t number() const { return number_; }

  // Returns the list for changes; from then on it is neither shared nor numbered.
  List& edit() {
    if (list_.use_count() != 1) list_ = std::make_shared<List>(list());
    number_ = 0;
    return *list_;
  }

  bool operator==(const Frames& other) const { return list() == other.list(); }

 private:
  std::shared_ptr<List> list_;
  uint64_t number_ = 0;
};

}  // namespace mtrace::profile
