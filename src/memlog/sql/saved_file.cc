#include "sql/saved_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "profile/error.h"
#include "profile/file.h"

namespace mtrace::sql {

SavedFile::SavedFile(const std::string& path) : path_(path) {
  const size_t slash = path.rfind('/');
  temporary_ = (slash == std::string::npos ? "" : path.substr(0, slash + 1)) +
               profile::kTemporaryPrefix + "XXXXXX";
  const int file = ::mkstemp(temporary_.data());
  if (file < 0) throw profile::FileError("cannot write " + path, errno);
  ::close(file);
}

SavedFile::~SavedFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void SavedFile::finish() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw profile::FileError("cannot write " + path_, errno);
  }
  temporary_.clear();
}

std::string sql_literal(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return out;
}

std::vector<std::string> saving_statements(const Table& table) {
  std::string create = table.declaration();
  create.replace(0, create.find(table.name), "CREATE TABLE saved.");
  std::vector<std::string> out = {
      create, fmt::format("INSERT INTO saved.{0} SELECT * FROM main.{0}", table.name)};
  for (const Column& column : table.columns) {
    if (column.selects == 0) continue;
    out.push_back(fmt::format("CREATE INDEX saved.{0}_{1} ON {0} ({1})", table.name, column.name));
  }
  return out;
}

}  // namespace mtrace::sql
