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

Text function_of(const StackRow& row) { return known(row.at().function.text()); }

Text file_of(const StackRow& row) { return known(symbols::split_source(row.at().source).first); }

Int line_of(const StackRow& row) { return known(symbols::split_source(row.at().source).second); }

// An inlined frame is in the module of the frame that it is inlined into.
Text module_of(const StackRow& row) {
  const profile::Frames& frames = row.row().frames;
  size_t at = row.frame;
  while (at + 1 < frames.size() && frames[at].place == profile::Place::kInlined) ++at;
  if (frames[at].place != profile::Place::kModule) return {};
  return known(row.book->modules()[frames[at].module].path);
}

// What is so of the responsible frame, if the stack has one.
template <typename Value>
Value own(const StackRow& row, Value (*value)(const StackRow&)) {
  const auto frame = row.book->own(row.stack);
  return frame ? value({row.book, row.stack, *frame}) : Value();
}

RowTable<StackRow>::Columns stack_columns() {
  return {
      {"stack", "id: 16 hex digits, the same in every report, run and machine",
       [](auto& row) { return stack_text(row.row().stack); }, 0.00001},
      {"depth", "number of frames, inlined ones too",
       [](auto& row) { return row.row().frames.size(); }},
      {"cut", "1: the stack goes on beyond the depth", [](auto& row) { return row.row().cut; }},
      {"own_level", "level of the frame that is responsible; null: cut before it",
       [](auto& row) { return row.book->own(row.stack); }},
      {"own_function", "its function; null: unknown",
       [](auto& row) { return own(row, function_of); }},
      {"own_file", "its source file; null: unknown", [](auto& row) { return own(row, file_of); }},
      {"own_line", "its source line; null: unknown", [](auto& row) { return own(row, line_of); }},
      {"own_module", "path of its module; null: none",
       [](auto& row) { return own(row, module_of); }},
      {"text", "the functions, innermost first, parted by <",
       [](auto& row) { return row.book->text(row.stack); }},
  };
}

RowTable<StackRow>::Columns frame_columns() {
  return {
      {"stack", "id of the stack", [](auto& row) { return stack_text(row.row().stack); }, 0.00001},
      {"level", "0: the innermost frame, which called malloc", [](auto& row) { return row.frame; }},
      {"function", "as in the source; null: unknown", [](auto& row) { return function_of(row); }},
      {"file", "source file; null: unknown", [](auto& row) { return file_of(row); }},
      {"line", "in the source file; null: unknown", [](auto& row) { return line_of(row); }},
      {"module", "path of the program or library; null: none",
       [](auto& row) { return module_of(row); }},
      {"offset", "ELF address in the module, or address without one; null: inlined",
       [](auto& row) {
         return row.at().place != profile::Place::kInlined ? Int(row.at().offset) : Int();
       }},
      {"inlined", "1: inlined into the next frame that is not",
       [](auto& row) { return row.at().place == profile::Place::kInlined; }},
      {"own", "1: the program's own code, not a library's",
       [](auto& row) {
         return row.book->responsible().own(row.row().frames, row.frame, row.book->modules());
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
