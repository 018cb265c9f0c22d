// memlog sql: questions to reports and processes, in SQL.
#include <unistd.h>

#include "surface/cli/command.h"
#include "surface/cli/report_options.h"
#include "surface/sql/answers.h"
#include "surface/sql/database.h"
#include "util/error.h"
#include "util/file.h"

namespace mtrace::cli {
namespace {

constexpr char kSqlHelp[] = R"(
Answers questions in SQL. SQLite runs the query; its tables are read from the reports, event logs,
directories with these, ledgers and running processes (pid or name) that are named, while it runs.
Nothing is imported first, and nothing can be changed. Without FILE, the directory is that of
MTRACE_OUTPUT, or else the current one. memlog sql .schema lists the tables and their columns, with
units; memlog sql .functions the functions that save a join: own_frame(stack), stack_text(stack),
matches(stack, regex) and others.

Without a query, memlog reads queries from the standard input. Ctrl-C ends a query. For a prompt with
history, save the tables and start SQLite's own: memlog sql --save app.db; sqlite3 app.db.

The first operand is the query if it has a blank or parenthesis, or begins with a point, and there
is no such file. A running process is read when memlog starts: all queries see the same state.

A damaged report or event log ends the query: sums without it would be wrong. Large sorts go through a temporary
file in SQLITE_TMPDIR, TMPDIR or /var/tmp.
)";

bool is_query(const std::string& operand) {
  const bool statement =
      operand.starts_with('.')
          ? operand.find('/') == std::string::npos && operand != "." && operand != ".."
          : operand.find_first_of(" \t\n(;") != std::string::npos;
  return statement && ::access(operand.c_str(), F_OK) != 0;
}

// Prints what is being caught, and returns the exit status.
int explain(const std::string& statement, const Streams& streams) {
  std::fflush(streams.out);  // what was answered before comes first
  try {
    throw;
  } catch (const sql::StatementError& error) {
    fmt::print(streams.err, "memlog: sql: {}", sql::error_text(statement, error));
    return kUnusable;
  } catch (const sql::Interrupted&) {
    complain(streams, "interrupted");
    return kFailed;
  } catch (const util::FormatError& error) {
    fmt::print(streams.err, "{}\n", error.what());
    return kUnusable;
  } catch (const std::exception& error) {
    complain(streams, error.what());
    return kFailed;
  }
}

int run_sql(const Arguments& arguments, const Streams& streams) {
  std::vector<std::string> operands = arguments.operands();
  std::string query;
  if (!operands.empty() && is_query(operands.front())) {
    query = operands.front();
    operands.erase(operands.begin());
  }
  const bool from_input = query.empty() && !arguments.has("--save");
  if (from_input && ::isatty(STDIN_FILENO) != 0) {
    throw UsageError(
        "sql: give a query; for a prompt: memlog sql --save app.db, then sqlite3 app.db");
  }
  const std::string format = arguments.choice("--format");
  sql::NameOptions names = {search_path(arguments), !arguments.has("--no-resolve"),
                            read_responsible(arguments)};
  // A command about the tables needs none of them.
  sql::Sources sources =
      query.starts_with('.') && operands.empty() ? sql::Sources() : sql::Sources(operands);
  sql::Database database(sources, std::move(names));
  const auto answer = sql::answer_text(format, streams.columns,
                                       [&](const std::string& text) { print(streams, text); });
  try {
    const sql::Interrupts interrupts(database);
    if (arguments.has("--save")) database.save(arguments.value("--save"));
    if (query.starts_with('.')) {
      print(streams, sql::about_tables(query, database.tables()));
    } else {
      if (from_input) query = util::read_file("-");
      database.run(query, *answer);
    }
    for (const std::string& remark : sources.remarks()) complain(streams, remark);
    // A null looks like an answer.
    const std::vector<sql::LogSource>& logs = sources.logs();
    if (query.find("address") != query.npos &&
        std::any_of(logs.begin(), logs.end(), [](const auto& log) { return log.header.compact; })) {
      complain(streams,
               "sql: event logs have no addresses of blocks but with memlog run "
               "--events=full: those are null");
    }
    return kGood;
  } catch (const std::exception&) {
    return explain(query, streams);
  }
}

}  // namespace

const Command& sql_command() {
  static const Command command = {
      {"sql",
       "answer questions about reports and processes in SQL",
       "[OPTION]... [QUERY] [FILE|DIRECTORY|PID|NAME]...",
       kSqlHelp,
       {{"--format", "-f", "FORMAT",
         R"(How to print answers: table (default), csv, json (an array of objects) or markdown.)",
         sql::kFormats},
        {"--save", "", "FILE",
         R"(Write all tables to FILE, an ordinary SQLite database with indexes, for sqlite3 and other
         tools; completely or not at all. With a query, also answer it.)"},
        kNoResolveOption,
        kSysrootOption,
        kSymbolsOption,
        kLibraryOption,
        kOwnOption},
       R"(0: answered; 1: a file cannot be read or written, there is no report, or the query was
       interrupted; 2: SQLite rejects the query, a file is not a valid memlog, or the command line
       is wrong.)",
       R"(  memlog sql "select own_frame(stack), sum(bytes) from entries group by 1 order by 2 desc"
  memlog sql "select file, live_bytes from reports" app-4711-*.memlog
  memlog sql --format csv "select * from allocations where size > 1e6" 4711
  memlog sql "select call, count(*) from allocations group by 1" app-4711.events
  memlog sql --save app.db reports/
  memlog sql .schema
)"},
      run_sql};
  return command;
}

}  // namespace mtrace::cli
