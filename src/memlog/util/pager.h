// Sends the output of a view through a pager when it is longer than the terminal.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>

#include "util/columns.h"

namespace mtrace::util {

inline constexpr char kNoPager[] = "--no-pager";

// Passes the text written to stream() on to `out`. As soon as it does not fit the screen, passes
// all of it to `command` instead. After the user closes the pager, drops the rest.
class Pager {
 public:
  // `out` must be a terminal; `screen` is its size.
  Pager(FILE* out, const Screen& screen, std::string command);
  // Waits until the user has closed the pager.
  ~Pager();
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

  FILE* stream() const { return stream_; }

 private:
  static ssize_t take(void* self, const char* text, size_t size);
  bool fits() const;
  void start();
  void pass_on();

  FILE* out_;
  Screen screen_;
  std::string command_;
  FILE* stream_;
  std::string text_;     // not passed on yet
  int pipe_ = -1;        // to the pager; -1: none
  pid_t process_ = 0;    // of the pager
  bool closed_ = false;  // by the user
};

}  // namespace mtrace::util
