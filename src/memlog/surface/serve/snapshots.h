// What a process holds at this moment, as a memlog and as the file of one.
#pragma once

#include <string>

#include "model/ledger/ledger_state.h"
#include "model/profile/model.h"
#include "surface/serve/heaps.h"
#include "util/file.h"

namespace mtrace::serve {

// The file of a memlog. The destructor removes it.
class SnapshotFile {
 public:
  // Throws FileError.
  SnapshotFile(const util::TemporaryDirectory& directory, profile::Memlog& memlog);
  ~SnapshotFile();
  SnapshotFile(const SnapshotFile&) = delete;
  SnapshotFile& operator=(const SnapshotFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Returns everything since the process's start as a report numbered 1, with names: its change is
// what is live. Throws as process::memlog_of() does.
profile::Memlog since_start(const Heap& heap);
// Returns what changed since an earlier state of the same process.
profile::Memlog since(const ledger::LedgerState& before, const Heap& heap);

}  // namespace mtrace::serve
