// The terminal as a screen that is drawn anew, and its keys one by one. By termios and the escape
// sequences that every terminal of the last decades knows (ECMA-48): a library of screens would
// bring windows, colours and a database of terminals for a list of lines.
#pragma once

#include <termios.h>

#include <string>
#include <vector>

namespace mtrace::terminal {

class Terminal {
 public:
  // Takes the terminal over, both ways. valid(): it is one.
  Terminal();
  // As it was.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  bool valid() const { return valid_; }

  // Columns and lines now.
  struct Size {
    size_t width;
    size_t height;
  };
  Size size() const;

  // Shows these lines, each cut at the width. `chosen`: number of the one to stand out.
  void draw(const std::vector<std::string>& lines, size_t chosen) const;

  // The next key, waiting at most so long. Arrows are kUp and kDown; 0: none, or the size has
  // changed; kEnd: the user, a signal or the terminal's end wants an end.
  int key(int milliseconds) const;
  static constexpr int kUp = 256;
  static constexpr int kDown = 257;
  static constexpr int kEnd = -1;

 private:
  bool valid_ = false;
  termios before_ = {};
};

// The first `width` columns of a line of UTF-8; each character counts as one.
std::string cut_to_width(const std::string& line, size_t width);

}  // namespace mtrace::terminal
