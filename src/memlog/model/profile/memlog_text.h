// The text of a memlog while it is written from something else than reports.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "format/memlog.h"
#include "model/profile/stack_id.h"

namespace mtrace::profile {

class MemlogText {
 protected:
  using Rests = StackIds::Rests;

  // Of each stack whose entry may end with a tail, before the first entry is written.
  void expect(const Rests& rests);

  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }
  // A field of an entry; 0 is left out.
  void field(const char* key, uint64_t value) {
    if (value != 0) fmt::format_to(std::back_inserter(out_), "\t{}={}", key, value);
  }
  // Calls write_frame(i) for the `count` frames of an entry, innermost first. What it shares with
  // another stack, beyond the first `least` and kUntailedFrames, is written once, as a tail.
  template <typename WriteFrame>
  void frames(size_t count, size_t least, const Rests& rests, WriteFrame&& write_frame) {
    const size_t own = std::max<size_t>(least, format::kUntailedFrames);
    size_t rest = shared_rest(rests, count > own ? (count - own) / StackIds::kStep : 0);
    size_t at = 0;
    const auto write_up_to_rest = [&] {
      while (at < count - rest * StackIds::kStep) write_frame(at++);
    };
    write_up_to_rest();
    if (!end_with(rests, rest)) return;
    out_.swap(tails_);
    do {
      line("# {}: {:016x}", format::kKeyTail, rests[rest - 1]);
      rest = shared_rest(rests, rest - 1);
      write_up_to_rest();
    } while (end_with(rests, rest));
    out_.swap(tails_);
  }
  // Behind the entries.
  void write_tails() { out_ += std::exchange(tails_, {}); }

  std::string out_;

 private:
  struct Rest {
    uint64_t next;  // one further in, of a stack that has it; 0: none
    bool shared = false;
    bool listed = false;
  };
  // Returns the number of the longest rest that others have, too, of the first `most`; 0: none.
  size_t shared_rest(const Rests& rests, size_t most) const;
  // Writes that a stack goes on with a rest; 0: it does not. Returns whether that is to be listed.
  bool end_with(const Rests& rests, size_t rest);

  absl::flat_hash_map<uint64_t, Rest> rests_;
  std::string tails_;
};

}  // namespace mtrace::profile
