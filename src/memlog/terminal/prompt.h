// A line that is typed key by key.
#pragma once

#include <string>

namespace mtrace::terminal {

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

}  // namespace mtrace::terminal
