#include "util/screen.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/text.h"

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

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kQuiet{1000};
constexpr milliseconds kStep{200};
constexpr char kErase[] = "\r\033[K";

// Past stdio, whose lock the other thread may hold.
void write_error(const char* text, size_t size) { (void)!::write(STDERR_FILENO, text, size); }

}  // namespace

Progress::Progress(size_t all) : all_(all) {
  if (::isatty(STDERR_FILENO) != 1) return;
  // Signals are for the command.
  sigset_t every;
  sigset_t before;
  ::sigfillset(&every);
  ::pthread_sigmask(SIG_SETMASK, &every, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_one();
  thread_.join();
}

void Progress::run() {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  bool shown = false;
  for (auto wait = kQuiet; !end_.wait_for(lock, wait, [this] { return ended_; }); wait = kStep) {
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    char text[96];
    const int size = std::snprintf(text, sizeof text, "\r%zu of %zu report%s, %.0f s\033[K",
                                   done_.load(), all_, all_ == 1 ? "" : "s", time.count());
    write_error(text, static_cast<size_t>(size));
    shown = true;
  }
  if (shown) write_error(kErase, sizeof kErase - 1);
}

Pager::Pager(FILE* out, const Screen& screen, std::string command)
    : out_(out), screen_(screen), command_(std::move(command)) {
  cookie_io_functions_t functions = {};
  functions.write = take;
  stream_ = ::fopencookie(this, "w", functions);
  if (stream_ == nullptr) throw std::runtime_error("cannot make a stream");
}

Pager::~Pager() {
  std::fclose(stream_);
  if (process_ == 0) {
    std::fwrite(text_.data(), 1, text_.size(), out_);
    return;
  }
  ::close(pipe_);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

ssize_t Pager::take(void* self, const char* text, size_t size) {
  auto& pager = *static_cast<Pager*>(self);
  pager.text_.append(text, size);
  if (pager.process_ == 0 && !pager.fits()) pager.start();
  if (pager.process_ != 0) pager.pass_on();
  return static_cast<ssize_t>(size);
}

// A line is left for the shell's prompt.
bool Pager::fits() const {
  size_t rows = 1;
  for (size_t at = 0; at < text_.size() && rows <= screen_.rows;) {
    const size_t end = std::min(text_.find('\n', at), text_.size());
    const size_t columns = columns_of(std::string_view(text_).substr(at, end - at));
    rows += std::max<size_t>(1, (columns + screen_.columns - 1) / screen_.columns);
    at = end + 1;
  }
  return rows <= screen_.rows;
}

void Pager::start() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  // As git has it: leave at once what fits, show colours, leave the screen as it is.
  ::setenv("LESS", "FRX", 0);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  const char* arguments[] = {"sh", "-c", command_.c_str(), nullptr};
  const int error = ::posix_spawn(&process_, "/bin/sh", &actions, nullptr,
                                  const_cast<char**>(arguments), ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[0]);
  pipe_ = ends[1];
  if (error != 0) throw std::runtime_error("cannot run /bin/sh");
  // Ctrl-C is for the pager, which goes on, and one that is closed early ends nothing here.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
}

void Pager::pass_on() {
  std::string_view left = text_;
  while (!left.empty() && !closed_) {
    const ssize_t written = ::write(pipe_, left.data(), left.size());
    if (written > 0) left.remove_prefix(static_cast<size_t>(written));
    closed_ = written < 0 && errno != EINTR;
  }
  text_.clear();
}

}  // namespace mtrace::util
