// Errors in a memlog and in its file, and of what is not there.
#pragma once

#include "util/prelude.h"

namespace mtrace::util {

// The memlog is malformed. The text is "FILE:LINE: what is wrong".
class FormatError : public std::runtime_error {
 public:
  FormatError(const std::string& file, size_t line, const std::string& what)
      : std::runtime_error(file + ":" + std::to_string(line) + ": " + what), line_(line) {}
  size_t line() const { return line_; }

 private:
  size_t line_;
};

// A file cannot be opened, read or written. The text names the file and the reason.
class FileError : public std::runtime_error {
 public:
  FileError(const std::string& what, int error_number);
  int error_number() const { return error_number_; }

 private:
  int error_number_;
};

// What was asked for is not there: a process, a report, a place in a log.
class NotFound : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace mtrace::util
