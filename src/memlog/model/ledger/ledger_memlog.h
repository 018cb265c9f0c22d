// Makes a raw memlog of a ledger's state: the report that the library would have written at that
// moment, plus the stacks that did not change but hold memory.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "model/ledger/ledger_state.h"
#include "model/profile/model.h"

namespace mtrace::ledger {

struct LedgerOccasion {
  const char* trigger;  // "recovered" or "snapshot"
  uint64_t taken;       // nanoseconds since 1970
  std::string label;    // empty: none
  std::vector<std::string> notes;
  uint64_t rss = 0;  // bytes, if the process lives; so are the next two
  uint64_t rss_max = 0;
  uint64_t virtual_size = 0;
};

struct LastSign {
  uint64_t when;     // nanoseconds since 1970
  bool of_contents;  // the file is a later copy, whose dates say nothing
};
// The birth of the youngest live block, the peak, or the last write to the file if the file system
// records that.
LastSign last_sign_of_life(const LedgerFile& file, const LedgerState& state);

// Returns the memlog. Its `seq` is the number that the next report would have. Throws
// util::FormatError when a damaged ledger gives no valid one.
profile::Memlog ledger_memlog(const LedgerFile& file, const LedgerState& state,
                              const LedgerOccasion& occasion);

// The frames of a ledger's stacks as memlogs have them.
class LedgerFrames {
 public:
  using AddModule = std::function<profile::ModuleIndex(const profile::Module&)>;
  // `add`: returns the number of a module in frames; called once for each that frames name.
  LedgerFrames(const LedgerState& state, AddModule add)
      : state_(state), modules_(state), add_(std::move(add)) {}

  profile::Frames::List of(const LedgerStackState& stack);
  uint64_t id_of(const LedgerStackState& stack) { return modules_.stack_ids(stack).value(); }

 private:
  profile::Frame python(uint64_t frame);

  const LedgerState& state_;
  LedgerModules modules_;
  AddModule add_;
  absl::flat_hash_map<size_t, profile::ModuleIndex> numbers_;  // by number in `state`
  absl::flat_hash_map<std::string, profile::ModuleIndex> python_files_;
};

}  // namespace mtrace::ledger
