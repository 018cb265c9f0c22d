// Stacks with numbers, from one memlog or merged from many.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profile/model.h"

namespace mtrace::analyze {

struct Row {
  std::string kind;  // empty: heap
  int64_t bytes = 0;
  int64_t blocks = 0;
  // Bytes the stack holds now. Absent for merged rows: a report leaves out the stacks that did
  // not change, so the sum over those it lists says little.
  std::optional<uint64_t> live;
  profile::Activity activity;
  uint64_t stack = 0;
  std::vector<profile::Frame> frames;  // modules: Table::modules()
  bool cut = false;
};

class Table {
 public:
  // A table of a memlog's entries, each a row of its own.
  static Table of(const profile::Memlog& memlog);

  // Adds the entries of `memlog`. Rows of one kind merge when their stacks agree: in all frames,
  // or in the first `depth` frames that have an address (0: all), so that opposite signs cancel.
  // Frames agree when the offset and the module's build-id (or path) do. Returns false when a
  // sum does not fit 64 bits; the table is then of no use.
  [[nodiscard]] bool merge(const profile::Memlog& memlog, int depth);
  // Likewise for the rows of another table.
  [[nodiscard]] bool merge(const Table& other, int depth);

  const std::vector<Row>& rows() const { return rows_; }
  std::vector<Row>& rows() { return rows_; }
  const std::vector<profile::Module>& modules() const { return memlog_.modules; }
  // For profile::place(): a memlog without entries that holds the modules.
  const profile::Memlog& names() const { return memlog_; }

 private:
  using Key = std::vector<uint64_t>;  // module identity and offset of each frame

  uint64_t identity(const profile::Module& module);
  profile::ModuleIndex adopt(const profile::Module& module);
  bool merge(const std::vector<profile::Module>& modules, Row row, int depth);

  profile::Memlog memlog_;
  std::vector<Row> rows_;
  std::vector<Key> keys_;  // of merged rows, by index
  absl::flat_hash_map<uint64_t, std::vector<size_t>> by_stack_;
  absl::flat_hash_map<std::string, uint64_t> identities_;
  absl::flat_hash_map<std::string, profile::ModuleIndex> by_name_;
};

// Rows whose bytes and blocks are both 0 are dropped; with `keep_active` not those that allocated.
void drop_empty(std::vector<Row>& rows, bool keep_active);

enum class Order { kBytes, kBlocks, kLive, kAllocations, kStack };
// Largest first, by stack id within equals; kStack: by stack id alone.
void sort(std::vector<Row>& rows, Order order);

// The sum of the heap rows' positive changes. Saturates.
int64_t gross_growth(const std::vector<Row>& rows);

}  // namespace mtrace::analyze
