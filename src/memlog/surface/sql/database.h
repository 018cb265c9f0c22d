// The SQLite connection that sees the tables. Nothing can be changed through it.
#pragma once

#include "surface/sql/sources.h"
#include "surface/sql/tables.h"
#include "surface/sql/virtual_table.h"
#include "util/prelude.h"

namespace mtrace::sql {

// SQLite does not understand a statement, or refuses it.
class StatementError : public std::runtime_error {
 public:
  // `offset`: of the error in the text; nothing: unknown.
  StatementError(const std::string& what, std::optional<size_t> offset)
      : std::runtime_error(what), offset_(offset) {}
  std::optional<size_t> offset() const { return offset_; }

 private:
  std::optional<size_t> offset_;
};

using SqlValue = std::variant<std::monostate, int64_t, double, std::string>;

// The rows of an answer.
class Answer {
 public:
  virtual ~Answer() = default;
  virtual void begin(const std::vector<std::string>& columns) = 0;
  virtual void row(const std::vector<SqlValue>& values) = 0;
  virtual void end() = 0;
};

class Database {
 public:
  Database(Sources& sources, NameOptions names);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Runs the statements in `text`, one after the other. A statement that gives no columns calls
  // nothing of `answer`. Throws StatementError, Interrupted, and what reading the sources throws.
  void run(std::string_view text, Answer& answer);

  // Writes all tables to a SQLite file at `path`, with indexes; replaces the file completely or not
  // at all. Throws std::runtime_error, Interrupted, and what reading the sources throws.
  void save(const std::string& path);

  const Tables& tables() const { return tables_; }

  // Ends the running query. May be called by a signal handler.
  void interrupt();

 private:
  friend class Statement;

  void execute(const std::string& statement);
  [[noreturn]] void fail(std::optional<size_t> offset);

  std::atomic<bool> interrupted_ = false;
  std::exception_ptr failure_;
  StackBook stacks_;
  Data data_;
  Tables tables_;
  sqlite3* connection_ = nullptr;
};

// The database that memlog sql --save writes.

// A file that takes the place of another once it is whole.
class SavedFile {
 public:
  // Makes an empty file beside `path`, which may exist. Throws FileError.
  explicit SavedFile(const std::string& path);
  // Removes the file unless it was finished.
  ~SavedFile();
  SavedFile(const SavedFile&) = delete;
  SavedFile& operator=(const SavedFile&) = delete;

  const std::string& temporary() const { return temporary_; }
  // Gives it its name. Throws FileError.
  void finish();

 private:
  std::string path_;
  std::string temporary_;
};

// Returns the text for a string literal of SQL.
std::string sql_literal(const std::string& text);

// Returns the statements that copy a table to the database "saved": the table, its rows, and
// an index on each column that queries look up.
std::vector<std::string> saving_statements(const Table& table);

}  // namespace mtrace::sql

struct sqlite3;

namespace mtrace::sql {

// The functions that queries can call. doc/sql.md describes them.

struct FunctionText {
  const char* name;
  const char* call;  // "own_frame(stack)"
  const char* meaning;
};

// Returns the functions that add_functions() adds.
const std::vector<FunctionText>& functions();

// `stacks` and `failure` must outlive the connection. What reading stacks throws is kept in
// `failure`; the query then ends with an error.
void add_functions(sqlite3* connection, StackBook& stacks, std::exception_ptr& failure);

}  // namespace mtrace::sql
