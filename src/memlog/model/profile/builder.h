// Makes a memlog of something other than a report: of a ledger, of an event log.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/profile/model.h"
#include "model/profile/stack_id.h"

namespace mtrace::profile {

class Builder {
 public:
  using Rests = StackIds::Rests;

  // `name`: of the source, for messages.
  explicit Builder(std::string name) { memlog_.name = std::move(name); }

  // Adds a meta line, in the order of the file.
  template <typename... Args>
  void meta(const char* key, fmt::format_string<Args...> value, Args&&... args) {
    add_meta({key, fmt::format(value, std::forward<Args>(args)...)});
  }
  // Returns the number of a module in the frames of entries. Of two of one path and generation the
  // first counts.
  ModuleIndex module(const Module& module);
  // Adds the meta lines about modules.
  void describe_modules();

  // Tells the rests of a stack that may be shared: of each before the first entry is added.
  void expect(const Rests& rests);
  // Adds the next entry; its `fields` follow from its other members and from `further`: fields
  // without a member, each with a tab before it. What its stack shares with others, beyond a guess
  // and kUntailedFrames, becomes a tail. `rests`: of its stack; empty: it has no tail.
  void add(Entry entry, Frames::List frames, const Rests& rests, const std::string& further = "");

  // Checks all as a reader does. Throws FormatError.
  Memlog finish();

 private:
  struct Rest {
    uint64_t
        next;  // id of the rest that begins further in, in the first stack that has it; 0: none
    bool shared = false;
    Frames::Rest frames = nullptr;
  };
  void add_meta(Field line);
  size_t shared_rest(const Rests& rests, size_t most) const;
  Frames::Rest take_rest(Frames::List& frames, const Rests& rests, size_t most);

  Memlog memlog_;
  bool after_ = false;  // the entries are over
  ModuleTable modules_;
  absl::flat_hash_map<uint64_t, Rest> rests_;
};

}  // namespace mtrace::profile
