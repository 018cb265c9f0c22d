#include "terminal/prompt.h"

namespace mtrace::terminal {

Prompt::State Prompt::press(int key) {
  constexpr int kEscape = 27;
  constexpr int kBackspace = 8;
  constexpr int kDelete = 127;  // what most terminals send for Backspace
  constexpr int kControlU = 21;
  switch (key) {
    case '\r':
    case '\n':
      return State::kAccepted;
    case kEscape:
      return State::kCancelled;
    case kControlU:
      text_.clear();
      break;
    case kBackspace:
    case kDelete:
      // With the bytes that continue a character.
      while (!text_.empty() && (static_cast<unsigned char>(text_.back()) & 0xc0) == 0x80) {
        text_.pop_back();
      }
      if (!text_.empty()) text_.pop_back();
      break;
    default:
      if (key >= ' ' && key <= 0xff) text_ += static_cast<char>(key);
      break;
  }
  return State::kTyping;
}

}  // namespace mtrace::terminal
