// Draws full screens on a terminal and reads single keys. Uses termios and the escape sequences
// common to all terminals (ECMA-48). A screen library would add windows, colours and a terminal
// database, only to show a list of lines.
#pragma once

#include <signal.h>
#include <termios.h>

#include <string>
#include <utility>
#include <vector>

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

}  // namespace mtrace::util
