#include "surface/sql/session.h"

#include <editline/readline.h>
#include <poll.h>
#include <sqlite3.h>
#include <unistd.h>

#include <clocale>
#include <cwchar>

#include "surface/sql/database.h"
#include "util/file.h"
#include "util/text.h"
#include "view/json/views.h"
#include "view/text/style.h"

namespace mtrace::sql {
namespace {

std::string trimmed(std::string_view text) {
  const char* blanks = " \t\r\n";
  const size_t from = text.find_first_not_of(blanks);
  if (from == std::string_view::npos) return {};
  return std::string(text.substr(from, text.find_last_not_of(blanks) + 1 - from));
}

std::string help_text() {
  std::string out = "Statements of SQL end with a semicolon and may take several lines.\n";
  for (const PointCommand& one : point_commands()) {
    out += fmt::format("{:<16} {}\n", fmt::format("{} {}", one.name, one.value), one.help);
  }
  return out;
}

}  // namespace

const std::vector<PointCommand>& point_commands() {
  static const std::vector<PointCommand> all = {
      {".tables", "", "lists the tables"},
      {".schema", "[TABLE]", "lists the columns of a table, or of all"},
      {".functions", "", "lists the functions besides SQLite's"},
      {".format", "FORMAT", "prints answers as table, csv, json or markdown"},
      {".save", "FILE", "writes all tables to a SQLite file"},
      {".help", "", "lists these commands"},
      {".quit", "", "ends; so does Ctrl-D"},
  };
  return all;
}

Session::Session(Database& database, const std::string& format, size_t columns, Print print)
    : database_(database), columns_(columns), print_(std::move(print)) {
  set_format(format);
}

void Session::set_format(const std::string& format) {
  auto answer = answer_text(format, columns_, print_);
  if (answer == nullptr) {
    throw StatementError(
        fmt::format(".format {}: the format is table, csv, json or markdown", format), {});
  }
  answer_ = std::move(answer);
}

void Session::run(std::string_view text) {
  const std::string line = trimmed(text);
  if (!line.starts_with('.')) return database_.run(text, *answer_);
  const size_t blank = line.find_first_of(" \t");
  command(line.substr(0, blank), blank == std::string::npos ? "" : trimmed(line.substr(blank)));
}

void Session::command(const std::string& name, const std::string& argument) {
  if (name == ".tables") return print_(tables_text(database_.tables()));
  if (name == ".functions") return print_(functions_text());
  if (name == ".help") return print_(help_text());
  if (name == ".format") return set_format(argument);
  if (name == ".quit" || name == ".exit") {
    ended_ = true;
    return;
  }
  if (name == ".schema") {
    const std::string text = schema_text(database_.tables(), argument);
    if (!text.empty()) return print_(text);
    throw StatementError(fmt::format("no such table: {}; .tables lists them", argument), {});
  }
  if (name == ".save") {
    if (!argument.empty()) return database_.save(argument);
    throw StatementError(".save needs the name of a file", {});
  }
  throw StatementError(fmt::format("unknown command {}; .help lists them", name), {});
}

std::string error_text(std::string_view statement, const StatementError& error) {
  std::string out = fmt::format("{}\n", error.what());
  if (!error.offset() || *error.offset() > statement.size()) return out;
  const size_t at = *error.offset();
  const size_t before = at == 0 ? std::string_view::npos : statement.rfind('\n', at - 1);
  const size_t from = before == std::string_view::npos ? 0 : before + 1;
  const size_t end = statement.find('\n', from);
  // What is left of it may be long: the error is to be seen.
  constexpr size_t kBefore = 60;
  const size_t start = at - from > kBefore ? at - kBefore : from;
  const std::string left = text::plain(std::string(statement.substr(start, at - start)));
  const std::string right = text::plain(
      end != std::string_view::npos && end < at ? "" : std::string(statement.substr(at, end - at)));
  out += fmt::format("  {}{}\n", left,
                     util::beginning_of(right, 76 - std::min<size_t>(76, util::columns_of(left))));
  out += fmt::format("  {}^\n", std::string(util::columns_of(left), ' '));
  return out;
}

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

namespace {

// A value as text; null is empty.
std::string text_of(const SqlValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  // As SQLite writes it: 15 digits, and always with a point.
  if (const auto* real = std::get_if<double>(&value)) {
    std::string text = fmt::format("{:.15g}", *real);
    if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
    return text;
  }
  return {};
}

bool is_number(const SqlValue& value) { return value.index() == 1 || value.index() == 2; }

class TableText : public Answer {
 public:
  TableText(size_t columns, Print print) : columns_(columns), print_(std::move(print)) {}

  void begin(const std::vector<std::string>& columns) override {
    names_.clear();
    for (const std::string& name : columns) names_.push_back(text::plain(name));
    waiting_.clear();
    started_ = false;
  }
  void row(const std::vector<SqlValue>& values) override {
    Line line;
    for (const SqlValue& value : values) {
      line.push_back({text::plain(text_of(value)), is_number(value)});
    }
    if (started_) return print_line(line);
    waiting_.push_back(std::move(line));
    constexpr size_t kForWidths = 1000;
    if (waiting_.size() == kForWidths) start();
  }
  void end() override {
    if (!started_) start();
  }

 private:
  struct Part {
    std::string text;
    bool right;
  };
  using Line = std::vector<Part>;

  void start() {
    started_ = true;
    widths_.assign(names_.size(), 0);
    std::vector<bool> right(names_.size());
    for (const Line& line : waiting_) {
      for (size_t i = 0; i < line.size(); ++i) {
        widths_[i] = std::max(widths_[i], util::columns_of(line[i].text));
        if (line[i].right) right[i] = true;
      }
    }
    Line header;
    Line rule;
    for (size_t i = 0; i < names_.size(); ++i) {
      widths_[i] = std::max(widths_[i], util::columns_of(names_[i]));
      header.push_back({names_[i], right[i]});
      rule.push_back({std::string(widths_[i], '-'), false});
    }
    print_line(header);
    print_line(rule);
    for (const Line& line : waiting_) print_line(line);
    waiting_.clear();
  }

  void print_line(const Line& line) {
    std::string out;
    for (size_t i = 0; i < line.size(); ++i) {
      const size_t wide = util::columns_of(line[i].text);
      const std::string space(widths_[i] > wide ? widths_[i] - wide : 0, ' ');
      if (i != 0) out += "  ";
      out += line[i].right ? space + line[i].text : line[i].text + space;
    }
    out.resize(out.find_last_not_of(' ') + 1);
    if (columns_ != 0) out = util::beginning_of(out, columns_);
    print_(out + '\n');
  }

  size_t columns_;
  Print print_;
  std::vector<std::string> names_;
  std::vector<size_t> widths_;
  std::vector<Line> waiting_;  // until the widths are known
  bool started_ = false;
};

class CsvText : public Answer {
 public:
  explicit CsvText(Print print) : print_(std::move(print)) {}
  void begin(const std::vector<std::string>& columns) override {
    row({columns.begin(), columns.end()});
  }
  void row(const std::vector<SqlValue>& values) override {
    std::string out;
    for (const SqlValue& value : values) {
      if (&value != values.data()) out += ',';
      out += field(text_of(value));
    }
    print_(out + '\n');
  }
  void end() override {}

 private:
  static std::string field(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
    return out + '"';
  }

  Print print_;
};

class JsonText : public Answer {
 public:
  explicit JsonText(Print print) : print_(std::move(print)) {}
  void begin(const std::vector<std::string>& columns) override {
    columns_ = columns;
    first_ = true;
    print_("[");
  }
  void row(const std::vector<SqlValue>& values) override {
    json::Value object = json::Value::object();
    for (size_t i = 0; i < values.size(); ++i) {
      std::visit([&](const auto& value) { put(object[columns_[i]], value); }, values[i]);
    }
    std::string line = json::line(object);
    if (line.ends_with('\n')) line.pop_back();
    print_((first_ ? "\n" : ",\n") + line);
    first_ = false;
  }
  void end() override { print_(first_ ? "]\n" : "\n]\n"); }

 private:
  static void put(json::Value& out, const std::monostate&) { out = nullptr; }
  template <typename T>
  static void put(json::Value& out, const T& value) {
    out = value;
  }

  Print print_;
  std::vector<std::string> columns_;
  bool first_ = true;
};

class MarkdownText : public Answer {
 public:
  explicit MarkdownText(Print print) : print_(std::move(print)) {}
  // Whether a column is of numbers is known from its first row.
  void begin(const std::vector<std::string>& columns) override {
    columns_ = columns;
    started_ = false;
  }
  void row(const std::vector<SqlValue>& values) override {
    if (!started_) start(values);
    std::string out = "|";
    for (const SqlValue& value : values) out += ' ' + cell(text_of(value)) + " |";
    print_(out + '\n');
  }
  void end() override {
    if (!started_) start({});
  }

 private:
  void start(const std::vector<SqlValue>& first) {
    started_ = true;
    std::string names = "|";
    std::string rule = "|";
    for (size_t i = 0; i < columns_.size(); ++i) {
      names += ' ' + cell(columns_[i]) + " |";
      rule += i < first.size() && is_number(first[i]) ? " ---: |" : " --- |";
    }
    print_(names + '\n' + rule + '\n');
  }
  static std::string cell(const std::string& text) {
    std::string out;
    for (const char c : text::plain(text)) {
      if (c == '|' || c == '<') out += '\\';
      out += c;
    }
    return out;
  }

  Print print_;
  std::vector<std::string> columns_;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<Answer> answer_text(const std::string& format, size_t columns, Print print) {
  if (format == "table") return std::make_unique<TableText>(columns, std::move(print));
  if (format == "csv") return std::make_unique<CsvText>(std::move(print));
  if (format == "json") return std::make_unique<JsonText>(std::move(print));
  if (format == "markdown") return std::make_unique<MarkdownText>(std::move(print));
  return nullptr;
}

}  // namespace mtrace::sql
