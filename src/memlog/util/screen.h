// Draws full screens on a terminal and reads single keys. Uses termios and the escape sequences
// common to all terminals (ECMA-48). A screen library would add windows, colours and a terminal
// database, only to show a list of lines.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <termios.h>

#include "util/prelude.h"
#include "util/text.h"

namespace mtrace::util {

class Terminal {
 public:
  // Takes over the terminal for input and output. valid() tells whether there is one.
  Terminal();
  // Restores the terminal.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  bool valid() const { return valid_; }

  // Current columns and lines.
  struct Size {
    size_t width;
    size_t height;
  };
  Size size() const;

  // Shows these lines, each cut at the width. `chosen`: index of the line to highlight.
  void draw(const std::vector<std::string>& lines, size_t chosen) const;

  // Waits at most so many milliseconds for a key. Returns kUp and kDown for arrows; 0: no key, or
  // the size has changed; kEnd: the user, a signal or the end of the terminal asks to quit.
  int key(int milliseconds) const;
  static constexpr int kUp = 256;
  static constexpr int kDown = 257;
  static constexpr int kEnd = -1;

 private:
  bool valid_ = false;
  termios before_ = {};
  std::vector<std::pair<int, struct sigaction>> handlers_;  // of before, by signal
};

// A line that is typed key by key.
class Prompt {
 public:
  enum class State { kTyping, kAccepted, kCancelled };

  // Takes a key as Terminal::key() returns it. Enter accepts, Escape cancels, Backspace removes the
  // last character, Ctrl-U all.
  State press(int key);
  const std::string& text() const { return text_; }

 private:
  std::string text_;  // UTF-8, as far as it was typed
};

// Shows the progress of a command that takes more than a second: a line on the terminal, removed at
// the end.
class Progress {
 public:
  // `all`: number of steps, a report each. Shows nothing unless the standard error is a terminal.
  explicit Progress(size_t all);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step() { ++done_; }

 private:
  void run();

  size_t all_;
  std::atomic<size_t> done_ = 0;
  std::mutex mutex_;
  std::condition_variable end_;
  bool ended_ = false;
  std::thread thread_;
};

// Sends the output of a view through a pager when it is longer than the terminal.

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
