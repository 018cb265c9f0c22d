// The table allocations.
#include "sql/row_table.h"
#include "sql/tables.h"

namespace mtrace::sql {
namespace {

constexpr auto kInteger = Type::kInteger;
constexpr auto kText = Type::kText;

struct AllocationRow {
  size_t process = 0;  // from 1
  uint64_t id = 0;
  const LiveBlock* block = nullptr;
};

RowTable<AllocationRow>::Columns allocation_columns() {
  using Row = AllocationRow;
  return {
      {{"process", kInteger, "the process", 0.1},
       [](const Row& row, Cell cell) { cell.number(row.process); }},
      {{"id", kInteger, "number of the block in its process, from 1"},
       [](const Row& row, Cell cell) { cell.number(row.id); }},
      {{"address", kInteger, "of the block"},
       [](const Row& row, Cell cell) { cell.number(row.block->address); }},
      {{"size", kInteger, "requested bytes"},
       [](const Row& row, Cell cell) { cell.number(row.block->size); }},
      {{"stack", kText, "id of the stack that allocated it", 0.001},
       [](const Row& row, Cell cell) { cell.text(stack_text(row.block->stack)); }},
      {{"allocated_at", kInteger, "ns since 1970; from a ledger exact to a millisecond"},
       [](const Row& row, Cell cell) { cell.number(row.block->born); }},
  };
}

class AllocationStream : public Stream<AllocationRow> {
 public:
  explicit AllocationStream(const Data& data) : data_(data) {}

  void begin(const Constraints& constraints) override {
    processes_ = constraints.range("process");
    stack_ = constraints.text("stack");
    source_ = 0;
    at_ = 0;
  }

  const AllocationRow* next() override {
    for (; source_ < data_.sources.reports().size(); ++source_, at_ = 0) {
      data_.check();
      const ReportSource& source = data_.sources.reports()[source_];
      row_.process = source.process + 1;
      if (source.ledger == nullptr || !processes_.holds(static_cast<int64_t>(row_.process))) {
        continue;
      }
      if (next_of(source.ledger->blocks)) return &row_;
    }
    return nullptr;
  }

 private:
  bool next_of(const std::vector<LiveBlock>& blocks) {
    while (at_ < blocks.size()) {
      row_.block = &blocks[at_];
      row_.id = ++at_;
      if (!stack_ || *stack_ == stack_text(row_.block->stack)) return true;
    }
    return false;
  }

  const Data& data_;
  Constraints::Range processes_;
  std::optional<std::string> stack_;
  size_t source_ = 0;
  size_t at_ = 0;
  AllocationRow row_;
};

}  // namespace

void add_allocation_table(Tables& tables, const Data& data) {
  tables.push_back(std::make_unique<RowTable<AllocationRow>>(
      "allocations", "a block", 1'000'000, allocation_columns(),
      [&data] { return std::make_unique<AllocationStream>(data); }));
}

}  // namespace mtrace::sql
