#include "util/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "util/columns.h"

namespace mtrace::util {
namespace {

volatile std::sig_atomic_t g_ended = 0;

void on_end(int) { g_ended = 1; }
void on_resize(int) {}  // poll() returns

// Returns the action of before.
struct sigaction handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = handler;  // no SA_RESTART: waiting ends
  ::sigaction(signal, &action, &before);
  return before;
}

void put(const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;
    done += static_cast<size_t>(wrote);
  }
}

// The rest of a sequence that begins with Escape has come with it, or it was the key alone.
int after_escape() {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  char rest[2] = {};
  if (::poll(&input, 1, 0) <= 0 || ::read(STDIN_FILENO, rest, sizeof rest) != 2) return 27;
  if (rest[0] != '[' && rest[0] != 'O') return 27;
  return rest[1] == 'A' ? Terminal::kUp : rest[1] == 'B' ? Terminal::kDown : 27;
}

}  // namespace

Terminal::Terminal() {
  if (::isatty(STDOUT_FILENO) != 1 || ::tcgetattr(STDIN_FILENO, &before_) != 0) return;
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG | IEXTEN);
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  if (::tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) != 0) return;
  valid_ = true;
  handlers_.emplace_back(SIGWINCH, handle(SIGWINCH, on_resize));
  for (const int signal : {SIGTERM, SIGHUP, SIGINT, SIGQUIT}) {
    handlers_.emplace_back(signal, handle(signal, on_end));
  }
  put("\033[?1049h\033[?25l");  // a screen of its own, without cursor
}

Terminal::~Terminal() {
  if (!valid_) return;
  put("\033[?25h\033[?1049l");
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  for (const auto& [signal, action] : handlers_) ::sigaction(signal, &action, nullptr);
}

Terminal::Size Terminal::size() const {
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {80, 24};
  }
  return {size.ws_col, size.ws_row};
}

void Terminal::draw(const std::vector<std::string>& lines, size_t chosen) const {
  const Size room = size();
  std::string out = "\033[H";
  for (size_t i = 0; i < lines.size() && i < room.height; ++i) {
    if (i > 0) out += "\r\n";
    if (i == chosen) out += "\033[7m";
    out += beginning_of(lines[i], room.width);
    out += i == chosen ? "\033[0m\033[K" : "\033[K";
  }
  put(out + "\033[J");
}

int Terminal::key(int milliseconds) const {
  if (g_ended != 0) return kEnd;
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  const int ready = ::poll(&input, 1, milliseconds);
  if (g_ended != 0) return kEnd;
  if (ready <= 0) return 0;
  char byte = 0;
  if (::read(STDIN_FILENO, &byte, 1) != 1) return kEnd;
  constexpr char kControlC = 3;
  if (byte == kControlC) return kEnd;
  return byte == 27 ? after_escape() : static_cast<unsigned char>(byte);
}

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

}  // namespace mtrace::util
