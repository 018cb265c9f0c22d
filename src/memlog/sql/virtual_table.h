// Tables that SQLite reads while a query runs: the rows are made when it asks for them.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

struct sqlite3;
struct sqlite3_context;

namespace mtrace::sql {

// A query was interrupted.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

enum class Type : uint8_t { kInteger, kText };
inline constexpr auto kInteger = Type::kInteger;
inline constexpr auto kText = Type::kText;

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

// Gets the value of a column.
class Cell {
 public:
  explicit Cell(sqlite3_context* context) : context_(context) {}
  void number(int64_t value);
  // Numbers beyond 2^63 are kept as their 64 bits.
  void number(uint64_t value) { number(static_cast<int64_t>(value)); }
  void text(std::string_view value);
  // Null if it is 0, or empty.
  void known(uint64_t value);
  void known(std::string_view value);
  // Not called: null.

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
