// memlog sql: its answers are those of the views, of grep and of sqlite3; it changes nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tool_test.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

// The reports of four processes: facts, kinds, samples, inlined frames.
const std::vector<std::string>& reports() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> paths;
    for (const char* name :
         {"app-4600-1.memlog", "app-4600-2.memlog", "app-4711-1.memlog", "app-4711-2.memlog",
          "app-4711-3.memlog", "app-4900-1.memlog", "app-5000-1.memlog", "app-5000-2.memlog",
          "app-5000-3.memlog", "app-5000-4.memlog", "app-5000-5.memlog", "app-5000-6.memlog",
          "app-5000-7.memlog", "app-5000-8.memlog", "app-5000-9.memlog"}) {
      paths.push_back(golden(name));
    }
    return paths;
  }();
  return all;
}

std::vector<std::string> words_of(std::vector<std::string> words,
                                  const std::vector<std::string>& files) {
  words.insert(words.end(), files.begin(), files.end());
  return words;
}

Outcome sql(const std::string& query, const std::vector<std::string>& files = reports()) {
  return memlog(words_of({"sql", "--no-resolve", "--format", "csv", query}, files));
}

// The answer to a query that succeeds, without the header line.
std::string rows(const std::string& query, const std::vector<std::string>& files = reports()) {
  const Outcome result = sql(query, files);
  EXPECT_EQ(result.status, 0) << query << '\n' << result.err;
  EXPECT_EQ(result.err, "") << query;
  return result.out.substr(std::min(result.out.find('\n'), result.out.size() - 1) + 1);
}

json answer(const std::string& query, const std::vector<std::string>& files = reports()) {
  const Outcome result =
      memlog(words_of({"sql", "--no-resolve", "--format", "json", query}, files));
  EXPECT_EQ(result.status, 0) << result.err;
  return json::parse(result.out);
}

json view(std::vector<std::string> words, const std::vector<std::string>& files) {
  words.insert(words.begin() + 1, {"--json", "--no-resolve"});
  const Outcome result = memlog(words_of(std::move(words), files));
  return json::parse(result.out);
}

using Numbers = std::map<std::string, int64_t>;

// What a view says of each stack; a key that is left out is 0.
Numbers numbers_of(const json& stacks, const char* key) {
  Numbers out;
  for (const json& stack : stacks) {
    if (stack.contains("stack") && stack.value("kind", "heap") == "heap") {
      out[stack["stack"]] += stack.value(key, int64_t{0});
    }
  }
  return out;
}

Numbers numbers_of(const json& rows) {
  Numbers out;
  for (const json& row : rows) out[row["stack"]] += row["number"].get<int64_t>();
  return out;
}

TEST(Sql, EntriesAreWhatShowPrints) {
  for (const std::string& file : reports()) {
    const json report = view({"show"}, {file})["reports"][0];
    for (const auto& [column, key] :
         std::map<std::string, const char*>{{"bytes", "bytes"},
                                            {"blocks", "blocks"},
                                            {"coalesce(live_bytes, 0)", "live_bytes"},
                                            {"allocated_blocks", "allocated_blocks"},
                                            {"allocated_bytes", "allocated_bytes"},
                                            {"freed_blocks", "freed_blocks"},
                                            {"freed_bytes", "freed_bytes"},
                                            {"temporary_blocks", "temporary_blocks"},
                                            {"short_lived_blocks", "short_lived_blocks"},
                                            {"coalesce(lifetime_min_ms, 0)", "lifetime_min_ms"},
                                            {"coalesce(lifetime_mean_ms, 0)", "lifetime_mean_ms"},
                                            {"coalesce(lifetime_max_ms, 0)", "lifetime_max_ms"},
                                            {"oldest_ms", "oldest_ms"},
                                            {"slack_bytes", "slack_bytes"},
                                            {"peak_bytes", "peak_bytes"},
                                            {"error_bytes", "error_bytes"}}) {
      Numbers shown = numbers_of(report["stacks"], key);
      Numbers found = numbers_of(answer(
          "select stack, " + column + " as number from entries where kind = 'heap'", {file}));
      // A view leaves out what has nothing to show.
      std::erase_if(shown, [](const auto& one) { return one.second == 0; });
      std::erase_if(found, [](const auto& one) { return one.second == 0; });
      EXPECT_EQ(found, shown) << file << ' ' << column;
    }
  }
}

// What is live after a report is the sum of the changes up to it; leaks lists what has changed.
TEST(Sql, ChangesAddUpAsInShowDiffAndLeaks) {
  const auto series = [](int pid, int last) {
    std::vector<std::string> files;
    for (int i = 1; i <= last; ++i)
      files.push_back(golden(fmt::format("app-{}-{}.memlog", pid, i)));
    return files;
  };
  const auto expect_same = [](const json& stacks, const std::vector<std::string>& files,
                              const std::string& condition) {
    Numbers shown = numbers_of(stacks, "bytes");
    Numbers found = numbers_of(
        answer("select stack, sum(bytes) as number from entries join reports using (report) "
               "where kind = 'heap' and " +
                   condition + " group by stack",
               files));
    std::erase_if(shown, [](const auto& one) { return one.second == 0; });
    std::erase_if(found, [](const auto& one) { return one.second == 0; });
    EXPECT_FALSE(shown.empty());
    EXPECT_EQ(found, shown) << condition;
  };
  const auto whole = series(4711, 3);
  expect_same(view({"show", "--sum"}, whole)["stacks"], whole, "true");
  const auto two = series(4711, 2);
  expect_same(view({"diff"}, two)["stacks"], two, "seq > 1");
  const auto nine = series(5000, 9);
  expect_same(view({"leaks", "--all", "--group-by", "stack"}, nine)["processes"][0]["stacks"], nine,
              "seq > 1");
}

TEST(Sql, ReportsAreTheirHeaders) {
  for (const std::string& file : reports()) {
    const json report = view({"show"}, {file})["reports"][0];
    const json row = answer("select * from reports join processes using (process)", {file})[0];
    EXPECT_EQ(row["pid"], report["pid"]);
    EXPECT_EQ(row["program"], report["program"]);
    EXPECT_EQ(row["file"], file);
    // The text of the file itself.
    const std::string text = read_file(file);
    EXPECT_HAS(text, fmt::format("\n# seq: {}\n", row["seq"].get<int64_t>()));
    EXPECT_HAS(text,
               fmt::format("\n# delta: {:+} bytes {:+} blocks\n", row["delta_bytes"].get<int64_t>(),
                           row["delta_blocks"].get<int64_t>()));
    EXPECT_HAS(text, fmt::format("\n# live: {} bytes {} blocks\n", row["live_bytes"].get<int64_t>(),
                                 row["live_blocks"].get<int64_t>()));
    EXPECT_HAS(text, "\n# taken: " + rows("select time_text(taken_at) from reports", {file}));
  }
}

// What a cursor leaves out is what SQLite would have left out.
TEST(Sql, ConstraintsSelectTheSameRows) {
  const std::string stack = "c39ef499fb80b593";
  for (const char* table : {"entries", "frames", "stacks"}) {
    EXPECT_EQ(rows(fmt::format("select * from {} where stack = '{}'", table, stack)),
              rows(fmt::format("select * from {} where stack || '' = '{}'", table, stack)))
        << table;
    EXPECT_EQ(rows(fmt::format("select count(*) from {} where stack = upper('{}') collate nocase",
                               table, stack)),
              rows(fmt::format("select count(*) from {} where stack = '{}'", table, stack)))
        << table;
  }
  for (const char* table : {"entries", "reports"}) {
    for (const char* condition :
         {"= 2", "> 2", ">= 2", "< 2", "<= 2", "between 2 and 4", "in (1, 3)", "= 2.0", "< 2.5",
          "is null", "is 2", "> 9223372036854775807", "<> 2"}) {
      EXPECT_EQ(rows(fmt::format("select * from {} where report {}", table, condition)),
                rows(fmt::format("select * from {} where +report {}", table, condition)))
          << table << ' ' << condition;
    }
  }
  EXPECT_EQ(rows("select count(*) from reports where report = 2"), "1\n");
  EXPECT_EQ(rows("select count(*) from reports where report = '2'"), "1\n");
  EXPECT_EQ(rows("select count(*) from entries a join entries b on a.stack = b.stack "
                 "where a.report = 3 and b.report = 4"),
            rows("select count(*) from entries a, entries b where a.stack || '' = b.stack || '' "
                 "and +a.report = 3 and +b.report = 4"));
}

// The blocks are one account of what a process holds, the counters of its stacks another.
constexpr char kLiveByStack[] =
    "select stack, live_bytes from entries where kind = 'heap' and live_bytes <> 0 order by stack";
constexpr char kBlocksAgainstReport[] =
    "select sum(size) = (select sum(live_bytes) from reports), "
    "count(*) = (select sum(live_blocks) from reports), count(*) > 100, "
    "count(*) = count(distinct address), min(allocated_at) >= min(started_at) - 2000000 "
    "from allocations join processes using (process)";

TEST(Sql, BlocksOfAKilledProcessAddUp) {
  TemporaryDirectory directory;
  const std::string ledger = directory / "killed.ledger";
  shell(fmt::format(
      "MTRACE_LEDGER={} LD_PRELOAD={}/libmtrace.so /usr/bin/python3 -c 'import os, signal; "
      "os.kill(os.getpid(), signal.SIGKILL)'; test $? = 137",
      ledger, shell_quoted(build_dir())));
  EXPECT_EQ(rows(kBlocksAgainstReport, {ledger}), "1,1,1,1,1\n");
  const std::string blocks = rows(
      "select stack, sum(size) from allocations group by stack having sum(size) <> 0 "
      "order by stack",
      {ledger});
  EXPECT_EQ(blocks, rows(kLiveByStack, {ledger}));
  EXPECT_EQ(memlog({"recover", "-o", directory / "killed.memlog", ledger}).status, 0);
  EXPECT_EQ(blocks, rows(kLiveByStack, {directory / "killed.memlog"}));
}

TEST(Sql, BlocksOfARunningProcessAddUp) {
  TemporaryDirectory directory;
  const std::string out =
      shell(fmt::format("cd {0} && mkfifo in && {{ MTRACE_LEDGER={0}/ LD_PRELOAD={1}/libmtrace.so "
                        "/usr/bin/python3 -c 'print(\"ready\", flush=True); input()' <in >out 2>&1 "
                        "& pid=$!; exec 3>in; "
                        "until grep -q ready out; do :; done; {1}/memlog sql -f csv \"{2}\" $pid; "
                        "echo >&3; wait $pid; }}",
                        directory.path(), build_dir(), kBlocksAgainstReport));
  EXPECT_TRUE(out.ends_with("\n1,1,1,1,1\n")) << out;
}

TEST(Sql, SavesADatabaseForSqlite) {
  TemporaryDirectory directory;
  const std::string file = directory / "it's.db";
  write_file(file, "something else");
  const Outcome saved = memlog(words_of({"sql", "--no-resolve", "--save", file}, reports()));
  EXPECT_EQ(saved.status, 0) << saved.err;
  EXPECT_EQ(saved.out + saved.err, "");
  const auto sqlite = [&](const std::string& query) {
    return shell(fmt::format("sqlite3 -csv \"{}\" \"{}\"", file, query));
  };
  EXPECT_EQ(sqlite("pragma integrity_check"), "ok\n");
  for (const char* table : {"processes", "reports", "entries", "stacks", "frames", "modules",
                            "allocations", "markers", "memory"}) {
    const std::string query = fmt::format("select * from {} order by 1, 2, 3, 4, 5", table);
    std::string expected = rows(query);
    std::string found = sqlite(query);
    std::erase(found, '\r');
    std::erase(found, '"');
    std::erase(expected, '"');
    EXPECT_EQ(found, expected) << table;
  }
  EXPECT_HAS(sqlite("select name from sqlite_schema where type = 'index'"), "entries_stack");
  EXPECT_HAS(sqlite("explain query plan select * from entries where stack = 'x'"),
             "USING INDEX entries_stack");
  // With a query: both. Nothing else is left in the directory.
  EXPECT_EQ(
      memlog({"sql", "-f", "csv", "--save", file, "select 1", golden("app-4711-1.memlog")}).out,
      "1\n1\n");
  EXPECT_EQ(shell("ls -A " + directory.path()), "it's.db\n");
}

// doc/sql.md has what .schema prints, and what .functions prints.
TEST(Sql, TheManualListsTheTables) {
  const std::string path = source_dir() + "/doc/sql.md";
  const std::string manual = read_file(path);
  const std::string begin = "<!-- memlog sql .schema -->\n```\n";
  const std::string end = "```\n<!-- end -->";
  const size_t from = manual.find(begin);
  const size_t to = manual.find(end, from);
  ASSERT_NE(to, std::string::npos);
  const std::string listed =
      memlog({"sql", ".schema"}).out + "\n" + memlog({"sql", ".functions"}).out;
  const std::string wanted = manual.substr(0, from) + begin + listed + manual.substr(to);
  if (std::getenv("MEMLOG_UPDATE_GOLDEN") != nullptr) write_file(path, wanted);
  EXPECT_EQ(read_file(path), wanted);
  for (const std::string& line : {listed}) {
    for (size_t at = 0; at < line.size();) {
      const size_t next = line.find('\n', at);
      EXPECT_LE(next - at, 100u) << line.substr(at, next - at);
      at = next + 1;
    }
  }
}

}  // namespace
}  // namespace mtrace::test
