#include "surface/sql/shell.h"

#include <editline/readline.h>
#include <fmt/format.h>
#include <poll.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <cwchar>

#include "surface/sql/functions.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::sql {
namespace {

constexpr const char* kKeywords[] = {
    "select", "distinct", "from", "where", "group",     "by",      "having", "order",
    "limit",  "offset",   "join", "left",  "on",        "using",   "union",  "all",
    "except", "with",     "as",   "case",  "when",      "then",    "else",   "end",
    "is",     "not",      "null", "and",   "or",        "in",      "like",   "between",
    "exists", "asc",      "desc", "over",  "partition", "window",  "values", "regexp",
    "count(", "sum(",     "min(", "max(",  "avg(",      "printf(", "lag(",   "recursive"};

// libedit calls functions without data of ours.
std::vector<std::string> words;  // what Tab completes
bool dropped = false;            // Ctrl-C was pressed at the prompt

std::vector<std::string> words_of(const Database& database) {
  std::vector<std::string> out(std::begin(kKeywords), std::end(kKeywords));
  for (const auto& table : database.tables()) {
    out.emplace_back(table->name);
    for (const Column& column : table->columns) out.emplace_back(column.name);
  }
  for (const FunctionText& function : functions()) out.push_back(function.name + std::string("("));
  for (const PointCommand& command : point_commands()) out.emplace_back(command.name);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool begins_with(const std::string& word, const char* text) {
  for (size_t i = 0; text[i] != '\0'; ++i) {
    const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
    if (i >= word.size() || lower(word[i]) != lower(text[i])) return false;
  }
  return true;
}

// Returns the next word; libedit frees it.
char* next_word(const char* text, int state) {
  static size_t at = 0;
  if (state == 0) at = 0;
  while (at < words.size()) {
    const std::string& word = words[at++];
    if (begins_with(word, text)) return ::strdup(word.c_str());
  }
  return nullptr;
}

char** complete(const char* text, int, int) {
  rl_attempted_completion_over = 1;  // no names of files
  return rl_completion_matches(text, next_word);
}

// Blocks SIGINT, so that only wait_for_key() sees it.
class NoInterrupt {
 public:
  NoInterrupt() {
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    ::sigprocmask(SIG_BLOCK, &interrupt, &before_);
    while_waiting_ = before_;
    sigdelset(&while_waiting_, SIGINT);
  }
  ~NoInterrupt() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  NoInterrupt(const NoInterrupt&) = delete;
  NoInterrupt& operator=(const NoInterrupt&) = delete;
  const sigset_t& while_waiting() const { return while_waiting_; }

 private:
  sigset_t before_;
  sigset_t while_waiting_;
};

const NoInterrupt* no_interrupt = nullptr;  // while a line is read

// Waits until standard input can be read; false: Ctrl-C came first. One that came while libedit
// drew the line was blocked, and ends the wait at once.
bool wait_for_key() {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  return ::ppoll(&input, 1, nullptr, &no_interrupt->while_waiting()) >= 0 || errno != EINTR;
}

// Reads a character. Ctrl-C ends the line; what was typed is dropped.
int read_character(FILE*) {
  mbstate_t state = {};
  for (;;) {
    if (!wait_for_key()) {
      dropped = true;
      return '\n';
    }
    char byte = 0;
    if (::read(STDIN_FILENO, &byte, 1) <= 0) return -1;
    wchar_t character = 0;
    const size_t size = std::mbrtowc(&character, &byte, 1, &state);
    if (size == static_cast<size_t>(-2)) continue;  // a part of it
    return size == static_cast<size_t>(-1) ? '?' : static_cast<int>(character);
  }
}

// Reads a line; false: the end.
bool read_line(const char* prompt, std::string& line) {
  const NoInterrupt blocked;
  no_interrupt = &blocked;
  dropped = false;
  char* text = ::readline(prompt);
  if (text == nullptr) return false;
  line = text;
  std::free(text);
  return true;
}

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

bool is_complete(const std::string& text) {
  return sqlite3_complete(text.c_str()) != 0 || is_blank(text);
}

void set_up(const Database& database) {
  std::setlocale(LC_CTYPE, "");
  words = words_of(database);
  rl_readline_name = "memlog";
  rl_getc_function = read_character;  // before rl_initialize(), which takes it
  rl_initialize();
  using_history();
  rl_attempted_completion_function = complete;
  rl_completion_append_character = '\0';
  rl_completer_word_break_characters = const_cast<char*>(" \t\n\"'`@$><=;|&{(,+-*/");
}

}  // namespace

void run_shell(Session& session, const Complain& complain) {
  set_up(session.database());
  const Interrupts interrupts(session.database());
  std::string statement;
  std::string line;
  while (!session.ended() && read_line(statement.empty() ? "memlog> " : "   ...> ", line)) {
    if (dropped) {
      statement.clear();
      continue;
    }
    statement += (statement.empty() ? "" : "\n") + line;
    if (!statement.starts_with('.') && !is_complete(statement)) continue;
    if (!is_blank(statement)) add_history(statement.c_str());
    try {
      session.run(statement);
    } catch (const std::exception&) {
      complain(statement);
    }
    statement.clear();
  }
}

void run_script(Session& session, std::string& statement) {
  const std::string text = util::read_file("-");
  statement.clear();
  for (const std::string_view line : util::split(text, '\n')) {
    statement += (statement.empty() ? "" : "\n") + std::string(line);
    if (!statement.starts_with('.') && !is_complete(statement)) continue;
    session.run(statement);
    if (session.ended()) return;
    statement.clear();
  }
  session.run(statement);
}
namespace {

std::string table_text(const Table& table) {
  std::string out = fmt::format("{}: {}\n", table.name, table.meaning);
  for (const Column& column : table.columns) {
    out +=
        fmt::format("  {:<18}  {:<7}  {}\n", column.name, type_name(column.type), column.meaning);
  }
  return out;
}

}  // namespace

std::string tables_text(const Tables& tables) {
  std::string out;
  for (const auto& table : tables) out += fmt::format("{:<12} {}\n", table->name, table->meaning);
  return out;
}

std::string schema_text(const Tables& tables, const std::string& name) {
  std::string out;
  for (const auto& table : tables) {
    if (name.empty() || name == table->name) {
      out += (out.empty() ? "" : "\n") + table_text(*table);
    }
  }
  return out;
}

std::string functions_text() {
  std::string out;
  for (const FunctionText& function : functions()) {
    out += fmt::format("{}\n    {}\n", function.call, function.meaning);
  }
  return out;
}
namespace {

Database* interrupted = nullptr;

extern "C" void on_interrupt(int) { interrupted->interrupt(); }

}  // namespace

Interrupts::Interrupts(Database& database) {
  interrupted = &database;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, &before_);
}

Interrupts::~Interrupts() { ::sigaction(SIGINT, &before_, nullptr); }

}  // namespace mtrace::sql
