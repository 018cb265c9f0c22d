// The database that memlog sql --save writes.
#pragma once

#include <string>
#include <vector>

#include "sql/virtual_table.h"

namespace mtrace::sql {

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
