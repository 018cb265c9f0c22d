#include "surface/sql/answers.h"

#include "surface/sql/database.h"
#include "util/text.h"
#include "view/json/views.h"
#include "view/text/style.h"

namespace mtrace::sql {

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

std::string table_text(const Table& table) {
  std::string out = fmt::format("{}: {}\n", table.name, table.meaning);
  for (const Column& column : table.columns) {
    out +=
        fmt::format("  {:<18}  {:<7}  {}\n", column.name, type_name(column.type), column.meaning);
  }
  return out;
}

}  // namespace

std::string about_tables(const std::string& command, const Tables& tables) {
  std::string out;
  if (command == ".functions") {
    for (const FunctionText& function : functions()) {
      out += fmt::format("{}\n    {}\n", function.call, function.meaning);
    }
    return out;
  }
  const std::vector<std::string_view> words = util::split(command, ' ');
  if (words[0] != ".schema") {
    throw StatementError(
        fmt::format("unknown command {}; there are .schema [TABLE] and .functions", words[0]), {});
  }
  for (const auto& table : tables) {
    if (words.size() == 1 || words[1] == table->name) {
      out += (out.empty() ? "" : "\n") + table_text(*table);
    }
  }
  if (!out.empty()) return out;
  throw StatementError(fmt::format("no such table: {}; memlog sql .schema lists them", words[1]),
                       {});
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
  return std::make_unique<MarkdownText>(std::move(print));
}

}  // namespace mtrace::sql
