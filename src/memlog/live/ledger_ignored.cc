#include "live/ledger_ignored.h"

namespace mtrace::live {

std::vector<IgnoredObject> read_ignored(const LedgerFile& file) {
  std::vector<IgnoredObject> found;
  uint64_t table = 0;
  if (file.header().ignored == 0 || !file.read(file.header().ignored, table) || table == 0) {
    return found;
  }
  std::vector<format::LedgerIgnored> entries(format::kLedgerIgnored);
  if (!file.read(table, entries.data(), entries.size() * sizeof entries[0])) return found;
  for (const format::LedgerIgnored& entry : entries) {
    if (entry.address != 0) found.push_back({entry.address, entry.time});
  }
  return found;
}

}  // namespace mtrace::live
