// The entries of the reports, for the tables entries and fleet.
#pragma once

#include "surface/sql/tables.h"
#include "surface/sql/virtual_table.h"
#include "util/prelude.h"

namespace mtrace::sql {

struct EntryRow {
  size_t report = 0;  // from 1
  size_t process = 0;
  const profile::Entry* entry = nullptr;
  size_t number = 0;  // of the entry in its report, from 1
  std::string stack;  // empty: unknown
};

// Report by report, one in memory; of each only the entries with a stack that the query names.
class EntryStream : public Stream<EntryRow> {
 public:
  explicit EntryStream(const Data& data) : data_(data) {}

  void begin(const Constraints& constraints) override;
  const EntryRow* next() override;

  // The report of the row that next() has returned.
  const IndexedReport& report() const { return *report_; }

 private:
  size_t count() const { return stack_ ? found_.size() : report_->entries().size(); }
  bool next_report();

  const Data& data_;
  Constraints::Range reports_;
  Constraints::Range processes_;
  std::optional<std::string> stack_;
  size_t index_ = 0;           // of the next report
  ReportPointer report_;       // null: none is open
  std::vector<size_t> found_;  // its entries with the stack
  size_t at_ = 0;
  EntryRow row_;
};

}  // namespace mtrace::sql
