// Fills names into memlogs.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <string>

#include "profile/model.h"
#include "symbolize/module_symbols.h"
#include "symbolize/source_frame.h"

namespace mtrace::symbolize {

// Keeps what it found, so that many reports of one program cost little more than one.
class Symbolizer {
 public:
  explicit Symbolizer(SearchPath where);

  // Gives each frame the function, line and inlined frames that its module's files know. A frame
  // whose module is gone, cannot be read or is of another build stays as it is; the latter is
  // said in a note. What an earlier pass found out is replaced only by more. Sets `# resolved:`.
  void resolve(profile::Memlog& memlog);

  // Announces a memlog for resolve(): what it asks of a module is looked up when the module is
  // next opened, for whichever memlog. Opening costs far more than looking up.
  void expect(const profile::Memlog& memlog);

 private:
  struct KnownModule {
    Finding finding = Finding::kMissing;
    absl::flat_hash_map<uint64_t, SourceFrames> frames;  // by ELF address
    absl::flat_hash_set<uint64_t> expected;
  };

  KnownModule& look_up(const profile::Memlog& memlog, const profile::Module& module,
                       const std::vector<uint64_t>& offsets);

  SearchPath where_;
  absl::flat_hash_map<std::string, KnownModule> known_;  // by path and build-id
};

}  // namespace mtrace::symbolize
