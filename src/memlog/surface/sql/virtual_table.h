// Tables that SQLite reads while a query runs: the rows are made when it asks for them.
#pragma once

#include "util/prelude.h"

struct sqlite3;
struct sqlite3_context;

namespace mtrace::sql {

// A query was interrupted.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

enum class Type : uint8_t { kInteger, kReal, kText };
inline constexpr auto kInteger = Type::kInteger;
inline constexpr auto kReal = Type::kReal;
inline constexpr auto kText = Type::kText;

// As SQL and .schema have it.
inline const char* type_name(Type type) {
  return type == kInteger ? "integer" : type == kReal ? "real" : "text";
}

struct Column {
  const char* name;
  Type type;
  const char* meaning;  // with its unit
  // Part of the rows that one value of the column selects, if a cursor reads fewer rows for it; 0:
  // it reads them all.
  double selects = 0;
};

// What a query asks of a column. A cursor may ignore it: SQLite tests each row again.
struct Constraint {
  enum class Is : uint8_t { kEqual, kLess, kAtMost, kGreater, kAtLeast, kNull };
  std::string_view column;
  Is is;
  std::variant<std::monostate, int64_t, std::string> value;  // of the column's type; none for kNull
};

class Constraints {
 public:
  void add(Constraint one) { all_.push_back(std::move(one)); }

  // The numbers that the column may have.
  struct Range {
    int64_t least = INT64_MIN;
    int64_t most = INT64_MAX;
    bool holds(int64_t number) const { return number >= least && number <= most; }
  };
  Range range(std::string_view column) const;
  // Returns the text that the column must have, if there is one.
  std::optional<std::string> text(std::string_view column) const;
  // Returns whether the column must be null.
  bool null(std::string_view column) const;

 private:
  std::vector<Constraint> all_;
};

// Null where there is nothing.
using Int = std::optional<int64_t>;
using Text = std::optional<std::string>;

// Null if it is 0, or empty.
inline Int known(uint64_t value) { return value == 0 ? Int() : Int(value); }
inline Text known(std::string_view value) { return value.empty() ? Text() : Text(value); }
// Of what an event of a log has as address: that, or else the number of a block.
Int address_of(uint64_t value);
Int block_of(uint64_t value);

// Gets the value of a column; null until then. Numbers beyond 2^63 are kept as their 64 bits.
class Cell {
 public:
  explicit Cell(sqlite3_context* context) : context_(context) {}
  void put(int64_t value);
  void put(double value);
  void put(std::string_view value);

 private:
  sqlite3_context* context_;
};

// The rows of a table in one loop of a query. All functions but at_end() may throw.
class Cursor {
 public:
  virtual ~Cursor() = default;
  // Goes to the first row. Called for each turn of an outer loop.
  virtual void begin(const Constraints& constraints) = 0;
  virtual void next() = 0;
  virtual bool at_end() const = 0;
  virtual void column(size_t index, Cell cell) const = 0;
};

struct Table {
  const char* name;
  const char* meaning;  // of a row
  std::vector<Column> columns;
  double rows;  // about how many: the order in which SQLite joins tables follows from it
  double pass =
      0;  // what a turn of an outer loop costs at least, in rows: an event log is read again

  Table(const char* table, const char* row, std::vector<Column> all, double about)
      : name(table), meaning(row), columns(std::move(all)), rows(about) {}
  virtual ~Table() = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  virtual std::unique_ptr<Cursor> open() = 0;

  // Returns the CREATE TABLE statement of the table.
  std::string declaration() const;
};

// Makes the table known to SQLite. `table` and `failure` must outlive the connection. What a cursor
// throws is kept in `failure`; the query then ends with an error.
void add_table(sqlite3* connection, Table& table, std::exception_ptr& failure);

}  // namespace mtrace::sql
namespace mtrace::sql {

// A table described by its columns, and what makes its rows.

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

// Puts what a column's function returns: a number, a text, or one of them that may be missing.
template <typename Value>
void put_value(Cell cell, const Value& value) {
  if constexpr (std::is_integral_v<Value>) {
    cell.put(static_cast<int64_t>(value));
  } else if constexpr (requires { value.has_value(); }) {
    if (value) put_value(cell, *value);
  } else {
    cell.put(value);
  }
}

template <typename Value>
constexpr Type type_of() {
  if constexpr (requires(Value value) { value.has_value(); }) {
    return type_of<typename Value::value_type>();
  } else {
    return std::is_integral_v<Value> ? kInteger : std::is_same_v<Value, double> ? kReal : kText;
  }
}

// A column and the function of its values, which has no state.
template <typename Row>
struct RowColumn {
  template <typename Function>
  RowColumn(const char* name, const char* meaning, Function /*value*/, double selects = 0)
      : column{name, type_of<std::decay_t<std::invoke_result_t<Function, const Row&>>>(), meaning,
               selects},
        put([](const Row& row, Cell cell) { put_value(cell, Function{}(row)); }) {}

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
