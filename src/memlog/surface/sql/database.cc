#include "surface/sql/database.h"

#include <sqlite3.h>
#include <unistd.h>

#include "surface/sql/tables.h"
#include "surface/sql/virtual_table.h"
#include "util/error.h"
#include "util/file.h"
#include "view/analyze/filter.h"

namespace mtrace::sql {
namespace {

// Pragmas that only tell; with an argument most others change something.
constexpr std::array kPragmas = {"table_info",     "table_xinfo", "table_list",
                                 "function_list",  "module_list", "compile_options",
                                 "collation_list", "pragma_list"};

// What a statement may do: read.
int authorize(void*, int action, const char* first, const char* second, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return std::string_view(second) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:
      for (const char* known : kPragmas) {
        if (std::string_view(first) == known) return SQLITE_OK;
      }
      return SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

constexpr char kOnlyReads[] =
    "queries only read: memlog sql --save FILE writes a database that sqlite3 can change";

SqlValue value_of(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
      return {};
    case SQLITE_INTEGER:
      return int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    default: {
      const auto* text = static_cast<const char*>(sqlite3_column_blob(statement, column));
      const auto size = static_cast<size_t>(sqlite3_column_bytes(statement, column));
      return text == nullptr ? std::string() : std::string(text, size);
    }
  }
}

}  // namespace

// A prepared statement.
class Statement {
 public:
  // Prepares the first statement in `text`, and stores what follows it.
  Statement(Database& database, std::string_view text, std::string_view& rest)
      : database_(database) {
    const char* tail = nullptr;
    const int result = sqlite3_prepare_v2(database.connection_, text.data(),
                                          static_cast<int>(text.size()), &statement_, &tail);
    if (result != SQLITE_OK) {
      const int offset = sqlite3_error_offset(database.connection_);
      database.fail(offset < 0 ? std::nullopt : std::optional(static_cast<size_t>(offset)));
    }
    rest = text.substr(static_cast<size_t>(tail - text.data()));
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // False: there is only a comment or nothing.
  bool there() const { return statement_ != nullptr; }
  bool only_reads() const { return sqlite3_stmt_readonly(statement_) != 0; }
  int columns() const { return sqlite3_column_count(statement_); }
  std::string name(int column) const {
    const char* name = sqlite3_column_name(statement_, column);
    if (name == nullptr) throw std::bad_alloc();
    return name;
  }
  // Returns whether there is a row.
  bool step() {
    const int result = sqlite3_step(statement_);
    if (result != SQLITE_ROW && result != SQLITE_DONE) database_.fail(std::nullopt);
    return result == SQLITE_ROW;
  }
  SqlValue value(int column) const { return value_of(statement_, column); }

 private:
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
};

Database::Database(Sources& sources, NameOptions names)
    : stacks_(sources, std::move(names)), data_{sources, stacks_, interrupted_} {
  tables_ = all_tables(data_);
  if (sqlite3_open(":memory:", &connection_) != SQLITE_OK) {
    const std::string why = sqlite3_errmsg(connection_);
    sqlite3_close(connection_);
    throw std::runtime_error("cannot start SQLite: " + why);
  }
  for (const auto& table : tables_) {
    add_table(connection_, *table, failure_);
    // SQLite asks whether a table may be declared, which it is when a statement first names it.
    execute(fmt::format("SELECT 1 FROM {} WHERE 0", table->name));
  }
  for (const char* pragma : kPragmas)
    execute(fmt::format("SELECT 1 FROM pragma_{} WHERE 0", pragma));
  add_functions(connection_, stacks_, failure_);
  sqlite3_set_authorizer(connection_, authorize, nullptr);
  // sqlite3_interrupt() alone has no effect between two statements.
  const auto stop = [](void* flag) -> int { return *static_cast<std::atomic<bool>*>(flag); };
  sqlite3_progress_handler(connection_, 10'000, stop, &interrupted_);
}

Database::~Database() { sqlite3_close(connection_); }

void Database::interrupt() {
  interrupted_ = true;
  sqlite3_interrupt(connection_);
}

void Database::fail(std::optional<size_t> offset) {
  const int code = sqlite3_errcode(connection_);
  if (code == SQLITE_INTERRUPT) throw Interrupted();
  if (code == SQLITE_NOMEM) throw std::bad_alloc();
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (code == SQLITE_AUTH) throw StatementError(kOnlyReads, offset);
  std::string why = sqlite3_errmsg(connection_);
  if (why.starts_with("no such table")) why += "; memlog sql .schema lists them";
  throw StatementError(why, offset);
}

void Database::run(std::string_view text, Answer& answer) {
  interrupted_ = false;
  failure_ = nullptr;
  const std::string_view all = text;
  while (!text.empty()) {
    std::string_view rest;
    const size_t before = all.size() - text.size();
    try {
      Statement statement(*this, text, rest);
      text = rest;
      if (!statement.there()) continue;
      // VACUUM INTO asks for no permission.
      if (!statement.only_reads()) throw StatementError(kOnlyReads, 0);
      if (statement.columns() == 0) continue;
      std::vector<std::string> names;
      for (int i = 0; i < statement.columns(); ++i) names.push_back(statement.name(i));
      answer.begin(names);
      std::vector<SqlValue> values(names.size());
      while (statement.step()) {
        for (size_t i = 0; i < values.size(); ++i) values[i] = statement.value(static_cast<int>(i));
        answer.row(values);
      }
      answer.end();
    } catch (const StatementError& error) {
      if (!error.offset()) throw;
      throw StatementError(error.what(), before + *error.offset());
    }
  }
}

void Database::execute(const std::string& text) {
  std::string_view rest;
  Statement statement(*this, text, rest);
  while (statement.step()) {
  }
}

void Database::save(const std::string& path) {
  interrupted_ = false;
  failure_ = nullptr;
  SavedFile file(path);
  sqlite3_set_authorizer(connection_, nullptr, nullptr);
  execute(fmt::format("ATTACH '{}' AS saved", sql_literal(file.temporary())));
  const auto detach = [&] {
    sqlite3_exec(connection_, "ROLLBACK", nullptr, nullptr, nullptr);
    sqlite3_exec(connection_, "DETACH saved", nullptr, nullptr, nullptr);
    sqlite3_set_authorizer(connection_, authorize, nullptr);
  };
  try {
    // Nothing reads the file before it is whole.
    execute("PRAGMA saved.journal_mode = OFF");
    execute("PRAGMA saved.synchronous = OFF");
    execute("BEGIN");
    for (const auto& table : tables_) {
      for (const std::string& statement : saving_statements(*table)) execute(statement);
    }
    execute("COMMIT");
  } catch (...) {
    detach();
    throw;
  }
  detach();
  file.finish();
}

SavedFile::SavedFile(const std::string& path) : path_(path) {
  const size_t slash = path.rfind('/');
  temporary_ = (slash == std::string::npos ? "" : path.substr(0, slash + 1)) +
               util::kTemporaryPrefix + "XXXXXX";
  const int file = ::mkstemp(temporary_.data());
  if (file < 0) throw util::FileError("cannot write " + path, errno);
  ::close(file);
}

SavedFile::~SavedFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void SavedFile::finish() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw util::FileError("cannot write " + path_, errno);
  }
  temporary_.clear();
}

std::string sql_literal(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return out;
}

std::vector<std::string> saving_statements(const Table& table) {
  std::string create = table.declaration();
  create.replace(0, create.find(table.name), "CREATE TABLE saved.");
  std::vector<std::string> out = {
      create, fmt::format("INSERT INTO saved.{0} SELECT * FROM main.{0}", table.name)};
  for (const Column& column : table.columns) {
    if (column.selects == 0) continue;
    out.push_back(fmt::format("CREATE INDEX saved.{0}_{1} ON {0} ({1})", table.name, column.name));
  }
  return out;
}

namespace {

struct FunctionData {
  StackBook* stacks;
  std::exception_ptr* failure;
};

// The arguments of a call.
class Arguments {
 public:
  Arguments(int count, sqlite3_value** values) : count_(count), values_(values) {}

  int count() const { return count_; }
  bool null(int at) const { return sqlite3_value_type(values_[at]) == SQLITE_NULL; }
  int64_t number(int at) const { return sqlite3_value_int64(values_[at]); }
  std::string_view text(int at) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values_[at]));
    if (text == nullptr) return {};
    return {text, static_cast<size_t>(sqlite3_value_bytes(values_[at]))};
  }
  // A time: nanoseconds, or a text near the time `near`.
  int64_t instant(int at, int64_t near) const {
    if (sqlite3_value_numeric_type(values_[at]) == SQLITE_INTEGER) return number(at);
    if (const auto time = read_instant(text(at), near)) return *time;
    throw std::runtime_error(
        fmt::format("{} is not a time: write nanoseconds since 1970, '2026-11-20T20:15:31.5Z' or "
                    "'20:15:31.5' (UTC)",
                    text(at)));
  }

 private:
  int count_;
  sqlite3_value** values_;
};

// No exception may pass through SQLite's frames.
template <typename Action>
void guarded_call(sqlite3_context* context, Action action) {
  const auto* known = static_cast<FunctionData*>(sqlite3_user_data(context));
  try {
    action(*known->stacks);
  } catch (const Interrupted&) {
    sqlite3_result_error_code(context, SQLITE_INTERRUPT);
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  } catch (const std::exception& error) {
    *known->failure = std::current_exception();
    sqlite3_result_error(context, error.what(), -1);
  }
}

// What a call keeps for the next row: a compiled pattern. The argument at `at` is the same in all
// rows, or SQLite drops it.
template <typename T, typename Make>
T& kept(sqlite3_context* context, int at, Make make) {
  if (auto* known = static_cast<T*>(sqlite3_get_auxdata(context, at))) return *known;
  auto* fresh = new T(make());
  sqlite3_set_auxdata(context, at, fresh, [](void* data) { delete static_cast<T*>(data); });
  // Null: there was no memory for it, and SQLite has freed it.
  if (sqlite3_get_auxdata(context, at) == nullptr) throw std::bad_alloc();
  return *fresh;
}

void stack_text_call(sqlite3_context* context, int count, sqlite3_value** values) {
  guarded_call(context, [&](StackBook& stacks) {
    const auto stack = stacks.find(Arguments(count, values).text(0));
    if (stack) Cell(context).put(stacks.text(*stack));
  });
}

void own_frame(sqlite3_context* context, int count, sqlite3_value** values) {
  guarded_call(context, [&](StackBook& stacks) {
    const auto stack = stacks.find(Arguments(count, values).text(0));
    const auto own = stack ? stacks.own(*stack) : std::nullopt;
    if (own) Cell(context).put(stacks.function(*stack, *own));
  });
}

void matches(sqlite3_context* context, int count, sqlite3_value** values) {
  guarded_call(context, [&](StackBook& stacks) {
    const Arguments arguments(count, values);
    if (arguments.null(0) || arguments.null(1)) return;
    const auto& pattern = kept<analyze::FramePattern>(
        context, 1, [&] { return analyze::FramePattern(arguments.text(1)); });
    const auto stack = stacks.find(arguments.text(0));
    if (!stack) return;
    const profile::Frames& frames = stacks.stack(*stack).frames;
    bool found = false;
    for (size_t i = 0; !found && i < frames.size(); ++i) {
      found = pattern.matches(frames, i, stacks.modules());
    }
    Cell(context).put(int64_t{found});
  });
}

void regexp(sqlite3_context* context, int count, sqlite3_value** values) {
  guarded_call(context, [&](StackBook&) {
    const Arguments arguments(count, values);
    if (arguments.null(0) || arguments.null(1)) return;
    const auto& pattern = kept<std::unique_ptr<re2::RE2>>(
        context, 0, [&] { return analyze::compile(arguments.text(0)); });
    Cell(context).put(int64_t{re2::RE2::PartialMatch(arguments.text(1), *pattern)});
  });
}

void alive_at(sqlite3_context* context, int count, sqlite3_value** values) {
  guarded_call(context, [&](StackBook&) {
    const Arguments arguments(count, values);
    if (arguments.null(0) || arguments.null(2)) return;
    const int64_t born = arguments.number(0);
    const int64_t when = arguments.instant(2, born);
    const bool alive = born <= when && (arguments.null(1) || when < arguments.number(1));
    Cell(context).put(int64_t{alive});
  });
}

void time_of(sqlite3_context* context, int count, sqlite3_value** values) {
  guarded_call(context, [&](StackBook&) {
    const Arguments arguments(count, values);
    if (!arguments.null(0)) Cell(context).put(time_text(arguments.number(0)));
  });
}

void instant(sqlite3_context* context, int count, sqlite3_value** values) {
  guarded_call(context, [&](StackBook&) {
    const Arguments arguments(count, values);
    if (!arguments.null(0)) Cell(context).put(arguments.instant(0, 0));
  });
}

struct Function {
  FunctionText text;
  int arguments;
  void (*call)(sqlite3_context*, int, sqlite3_value**);
};

const Function kFunctions[] = {
    {{"stack_text", "stack_text(stack)",
      "the functions of a stack, innermost first: 'f < g < main'"},
     1,
     stack_text_call},
    {{"own_frame", "own_frame(stack)",
      "the function of own code that is responsible; null: the stack was cut before it"},
     1,
     own_frame},
    {{"matches", "matches(stack, regex)",
      "1 if a frame matches: its function, source line or module, as --include"},
     2,
     matches},
    {{"alive_at", "alive_at(allocated_at, freed_at, time)",
      "1 if the block lived then; time as a number, or as a text: '20:15:31.5' (UTC)"},
     3,
     alive_at},
    {{"time_text", "time_text(ns)", "a time as text: '2026-11-20T20:15:31.123456Z'"}, 1, time_of},
    {{"instant", "instant(text)", "the nanoseconds since 1970 of such a text"}, 1, instant},
    {{"regexp", "text REGEXP regex", "1 if a part of the text matches (RE2)"}, 2, regexp},
};

}  // namespace

const std::vector<FunctionText>& functions() {
  static const std::vector<FunctionText> all = [] {
    std::vector<FunctionText> texts;
    for (const Function& one : kFunctions) texts.push_back(one.text);
    return texts;
  }();
  return all;
}

void add_functions(sqlite3* connection, StackBook& stacks, std::exception_ptr& failure) {
  const auto destroy = [](void* known) { delete static_cast<FunctionData*>(known); };
  for (const Function& one : kFunctions) {
    const int result = sqlite3_create_function_v2(
        connection, one.text.name, one.arguments, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
        new FunctionData{&stacks, &failure}, one.call, nullptr, nullptr, destroy);
    if (result != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(connection));
  }
}

}  // namespace mtrace::sql
