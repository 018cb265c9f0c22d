// The tables stacks and frames.
#include <charconv>

#include "model/symbols/source_files.h"
#include "surface/sql/tables.h"
#include "surface/sql/virtual_table.h"
#include "util/text.h"

namespace mtrace::sql {
namespace {

struct StackRow {
  StackBook* book = nullptr;
  size_t stack = 0;  // position in the book
  size_t frame = 0;

  const analyze::Row& row() const { return book->stack(stack); }
  const profile::Frame& at() const { return row().frames[frame]; }
};

// The stack that the query names, or all of them.
class StackStream : public Stream<StackRow> {
 public:
  explicit StackStream(const Data& data) : data_(data) { row_.book = &data.stacks; }

  void begin(const Constraints& constraints) override {
    first_ = true;
    row_.frame = 0;
    const auto id = constraints.text("stack");
    const auto one = id ? data_.stacks.find(std::string_view(*id)) : std::nullopt;
    row_.stack = one.value_or(0);
    end_ = one ? *one + 1 : id ? 0 : data_.stacks.stacks().size();
  }

  const StackRow* next() override {
    data_.check();
    if (!first_) ++row_.stack;
    first_ = false;
    return row_.stack < end_ ? &row_ : nullptr;
  }

 protected:
  const Data& data_;
  StackRow row_;
  size_t end_ = 0;
  bool first_ = true;
};

// Each frame of these stacks.
class FrameStream : public StackStream {
 public:
  using StackStream::StackStream;

  const StackRow* next() override {
    if (!first_ && ++row_.frame < row_.row().frames.size()) return &row_;
    row_.frame = 0;
    do {
      if (StackStream::next() == nullptr) return nullptr;
    } while (row_.row().frames.empty());
    return &row_;
  }
};

void put_function(const StackRow& row, Cell cell) { cell.known(row.at().function.text()); }

void put_file(const StackRow& row, Cell cell) {
  cell.known(symbols::split_source(row.at().source).first);
}

void put_line(const StackRow& row, Cell cell) {
  cell.known(symbols::split_source(row.at().source).second);
}

// An inlined frame is in the module of the frame that it is inlined into.
void put_module(const StackRow& row, Cell cell) {
  const profile::Frames& frames = row.row().frames;
  size_t at = row.frame;
  while (at + 1 < frames.size() && frames[at].place == profile::Place::kInlined) ++at;
  if (frames[at].place != profile::Place::kModule) return;
  cell.known(row.book->modules()[frames[at].module].path);
}

// Calls `put` with the responsible frame, if the stack has one.
void put_own(const StackRow& row, Cell cell, void (*put)(const StackRow&, Cell)) {
  const auto own = row.book->own(row.stack);
  if (own) put({row.book, row.stack, *own}, cell);
}

RowTable<StackRow>::Columns stack_columns() {
  using Row = StackRow;
  return {
      {{"stack", kText, "id: 16 hex digits, the same in every report, run and machine", 0.00001},
       [](const Row& row, Cell cell) { cell.text(stack_text(row.row().stack)); }},
      {{"depth", kInteger, "number of frames, inlined ones too"},
       [](const Row& row, Cell cell) { cell.number(uint64_t{row.row().frames.size()}); }},
      {{"cut", kInteger, "1: the stack goes on beyond the depth"},
       [](const Row& row, Cell cell) { cell.number(int64_t{row.row().cut}); }},
      {{"own_level", kInteger, "level of the frame that is responsible; null: cut before it"},
       [](const Row& row, Cell cell) {
         const auto own = row.book->own(row.stack);
         if (own) cell.number(uint64_t{*own});
       }},
      {{"own_function", kText, "its function; null: unknown"},
       [](const Row& row, Cell cell) { put_own(row, cell, put_function); }},
      {{"own_file", kText, "its source file; null: unknown"},
       [](const Row& row, Cell cell) { put_own(row, cell, put_file); }},
      {{"own_line", kInteger, "its source line; null: unknown"},
       [](const Row& row, Cell cell) { put_own(row, cell, put_line); }},
      {{"own_module", kText, "path of its module; null: none"},
       [](const Row& row, Cell cell) { put_own(row, cell, put_module); }},
      {{"text", kText, "the functions, innermost first, parted by <"},
       [](const Row& row, Cell cell) { cell.text(row.book->text(row.stack)); }},
  };
}

RowTable<StackRow>::Columns frame_columns() {
  using Row = StackRow;
  return {
      {{"stack", kText, "id of the stack", 0.00001},
       [](const Row& row, Cell cell) { cell.text(stack_text(row.row().stack)); }},
      {{"level", kInteger, "0: the innermost frame, which called malloc"},
       [](const Row& row, Cell cell) { cell.number(uint64_t{row.frame}); }},
      {{"function", kText, "as in the source; null: unknown"}, put_function},
      {{"file", kText, "source file; null: unknown"}, put_file},
      {{"line", kInteger, "in the source file; null: unknown"}, put_line},
      {{"module", kText, "path of the program or library; null: none"}, put_module},
      {{"offset", kInteger, "ELF address in the module, or address without one; null: inlined"},
       [](const Row& row, Cell cell) {
         if (row.at().place != profile::Place::kInlined) cell.number(row.at().offset);
       }},
      {{"inlined", kInteger, "1: inlined into the next frame that is not"},
       [](const Row& row, Cell cell) {
         cell.number(int64_t{row.at().place == profile::Place::kInlined});
       }},
      {{"own", kInteger, "1: the program's own code, not a library's"},
       [](const Row& row, Cell cell) {
         cell.number(int64_t{
             row.book->responsible().own(row.row().frames, row.frame, row.book->modules())});
       }},
  };
}

}  // namespace

void add_stack_tables(Tables& tables, const Data& data) {
  tables.push_back(std::make_unique<RowTable<StackRow>>(
      "stacks", "a call stack", 100'000, stack_columns(),
      [&data] { return std::make_unique<StackStream>(data); }));
  tables.push_back(std::make_unique<RowTable<StackRow>>(
      "frames", "a frame of a stack, inlined ones too", 1'000'000, frame_columns(),
      [&data] { return std::make_unique<FrameStream>(data); }));
}

}  // namespace mtrace::sql
