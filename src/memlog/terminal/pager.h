// The standard output of a view: what is longer than the terminal goes through a pager.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>

#include "terminal/size.h"

namespace mtrace::terminal {

inline constexpr char kNoPager[] = "--no-pager";

// Passes on to `out` what stream() is given, and from the line on that does not fit the screen to
// `command`, all of it. Who closes the pager has seen enough: the rest goes nowhere.
class Pager {
 public:
  // `out` is a terminal with `screen`.
  Pager(FILE* out, const Screen& screen, std::string command);
  // Returns when the user has closed the pager.
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
  int pipe_ = -1;        // to the pager
  pid_t process_ = 0;    // the pager
  bool closed_ = false;  // by the user
};

}  // namespace mtrace::terminal
