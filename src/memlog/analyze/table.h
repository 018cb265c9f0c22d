// Stacks with numbers, from one memlog or merged from many.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/frame_range.h"
#include "analyze/row.h"
#include "profile/model.h"

namespace mtrace::analyze {

class Table {
 public:
  // A table of a memlog's entries, each a row of its own. Takes them: a large memlog is mostly
  // entries.
  static Table of(profile::Memlog& memlog);

  // Adds the entries of `memlog`. Rows of one kind merge when their stacks agree in the frames of
  // `range`, so that opposite signs cancel; the other frames go. Frames agree when the offset and
  // the module's build-id (or path) do. Returns false when a sum does not fit 64 bits; the table
  // is then of no use.
  [[nodiscard]] bool merge(const profile::Memlog& memlog, FrameRange range);
  // Likewise for the rows of another table.
  [[nodiscard]] bool merge(const Table& other, FrameRange range);
  // Adds a later report of the same process: what its entries say of a stack's age, slack and share
  // in the peak takes the place of what was known, and live is not known any more.
  [[nodiscard]] bool append(const profile::Memlog& memlog);
  // The index of the row that has the stack of `row`, cut to `range`. If there was none, `row`
  // becomes it, at the end, and is empty.
  size_t place(const std::vector<profile::Module>& modules, Row& row, FrameRange range);
  // Adds the rows of another table of the same report, as they are.
  void take(Table& part);
  // Adds a row whose frames name the modules of `owner`, as one of its own.
  void add_row(const Table& owner, Row row);
  // The process's peak has moved: the shares in the one before count no more.
  void forget_peak();

  const std::vector<Row>& rows() const { return rows_; }
  std::vector<Row>& rows() { return rows_; }
  // Those that rows have, the heap ("") first and always there.
  std::vector<std::string> kinds() const;
  const std::vector<profile::Module>& modules() const { return memlog_.modules; }
  // For profile::place(): a memlog without entries that holds the modules.
  const profile::Memlog& names() const { return memlog_; }

 private:
  using Key = std::vector<uint64_t>;  // module identity and offset of each frame

  uint64_t identity(const profile::Module& module);
  profile::ModuleIndex adopt(const profile::Module& module);
  void adopt(const std::vector<profile::Module>& modules, profile::Frames& frames);
  size_t find_or_add(const std::vector<profile::Module>& modules, Row& row, FrameRange range);
  bool merge(const std::vector<profile::Module>& modules, Row row, FrameRange range);

  profile::Memlog memlog_;
  std::vector<Row> rows_;
  std::vector<Key> keys_;  // of merged rows, by index
  absl::flat_hash_map<uint64_t, std::vector<size_t>> by_stack_;
  absl::flat_hash_map<uint64_t, size_t> by_number_;  // of whole stacks' frames
  size_t reports_ = 0;                               // appended
  std::vector<size_t> last_report_;                  // that had the row, by index
  absl::flat_hash_map<std::string, uint64_t> identities_;
  absl::flat_hash_map<std::string, profile::ModuleIndex> by_name_;
};

}  // namespace mtrace::analyze
