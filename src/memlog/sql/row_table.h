// A table described by its columns, and what makes its rows.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "sql/virtual_table.h"

namespace mtrace::sql {

// The rows of one loop of a query.
template <typename Row>
class Stream {
 public:
  virtual ~Stream() = default;
  // Goes before the first row. The rows may be more than the constraints select.
  virtual void begin(const Constraints& constraints) = 0;
  // Returns the next row, valid until the next call; null: there are no more.
  virtual const Row* next() = 0;
};

// Rows that are made all at once.
template <typename Row>
class ListStream : public Stream<Row> {
 public:
  using Make = std::function<std::vector<Row>(const Constraints&)>;

  explicit ListStream(const Make& make) : make_(make) {}
  void begin(const Constraints& constraints) override {
    rows_ = make_(constraints);
    at_ = 0;
  }
  const Row* next() override { return at_ < rows_.size() ? &rows_[at_++] : nullptr; }

 private:
  const Make& make_;
  std::vector<Row> rows_;
  size_t at_ = 0;
};

template <typename Row>
struct RowColumn {
  Column column;
  void (*put)(const Row& row, Cell cell);
};

template <typename Row>
class RowTable : public Table {
 public:
  using Open = std::function<std::unique_ptr<Stream<Row>>()>;
  using Columns = std::vector<RowColumn<Row>>;

  RowTable(const char* name, const char* meaning, double about, const Columns& columns, Open open)
      : Table(name, meaning, columns_of(columns), about), open_(std::move(open)) {
    for (const RowColumn<Row>& one : columns) puts_.push_back(one.put);
  }

  std::unique_ptr<Cursor> open() override { return std::make_unique<RowCursor>(open_(), puts_); }

 private:
  using Put = void (*)(const Row&, Cell);

  class RowCursor : public Cursor {
   public:
    RowCursor(std::unique_ptr<Stream<Row>> stream, const std::vector<Put>& puts)
        : stream_(std::move(stream)), puts_(puts) {}
    void begin(const Constraints& constraints) override {
      stream_->begin(constraints);
      next();
    }
    void next() override { row_ = stream_->next(); }
    bool at_end() const override { return row_ == nullptr; }
    void column(size_t index, Cell cell) const override { puts_[index](*row_, cell); }

   private:
    std::unique_ptr<Stream<Row>> stream_;
    const std::vector<Put>& puts_;
    const Row* row_ = nullptr;
  };

  static std::vector<Column> columns_of(const Columns& columns) {
    std::vector<Column> out;
    for (const RowColumn<Row>& one : columns) out.push_back(one.column);
    return out;
  }

  std::vector<Put> puts_;
  Open open_;
};

// Returns a table of rows that are made all at once.
template <typename Row>
std::unique_ptr<Table> list_table(const char* name, const char* meaning, double about,
                                  const typename RowTable<Row>::Columns& columns,
                                  typename ListStream<Row>::Make make) {
  const auto rows = std::make_shared<typename ListStream<Row>::Make>(std::move(make));
  return std::make_unique<RowTable<Row>>(
      name, meaning, about, columns, [rows] { return std::make_unique<ListStream<Row>>(*rows); });
}

}  // namespace mtrace::sql
