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

TEST(Sql, SumsAreThoseOfShow) {
  const std::vector<std::string> files = {golden("app-4711-1.memlog"), golden("app-4711-2.memlog"),
                                          golden("app-4711-3.memlog")};
  Numbers shown = numbers_of(view({"show", "--sum"}, files)["stacks"], "bytes");
  Numbers found = numbers_of(answer(
      "select stack, sum(bytes) as number from entries where kind = 'heap' group by stack", files));
  std::erase_if(shown, [](const auto& one) { return one.second == 0; });
  std::erase_if(found, [](const auto& one) { return one.second == 0; });
  EXPECT_FALSE(shown.empty());
  EXPECT_EQ(found, shown);
}

TEST(Sql, DifferencesAreThoseOfDiff) {
  const std::vector<std::string> files = {golden("app-4711-1.memlog"), golden("app-4711-2.memlog")};
  Numbers shown = numbers_of(view({"diff"}, files)["stacks"], "bytes");
  // What is live after a report is the sum of the changes up to it.
  Numbers found = numbers_of(
      answer("select stack, sum(bytes) as number from entries join reports using (report) "
             "where kind = 'heap' and seq > 1 group by stack",
             files));
  std::erase_if(shown, [](const auto& one) { return one.second == 0; });
  std::erase_if(found, [](const auto& one) { return one.second == 0; });
  EXPECT_FALSE(shown.empty());
  EXPECT_EQ(found, shown);
}

TEST(Sql, GrowthIsThatOfLeaks) {
  std::vector<std::string> files;
  for (int i = 1; i <= 9; ++i) files.push_back(golden(fmt::format("app-5000-{}.memlog", i)));
  const json leaks = view({"leaks", "--all", "--group-by", "stack"}, files);
  Numbers shown = numbers_of(leaks["processes"][0]["stacks"], "bytes");
  const Numbers found = numbers_of(
      answer("select stack, sum(bytes) as number from entries join reports using (report) "
             "where kind = 'heap' and seq > 1 group by stack",
             files));
  ASSERT_FALSE(shown.empty());
  for (const auto& [stack, bytes] : shown) EXPECT_EQ(found.at(stack), bytes) << stack;
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

TEST(Sql, FramesAreThoseOfTheFile) {
  const std::vector<std::string> file = {golden("app-4600-1.memlog")};
  EXPECT_EQ(rows("select level, function, file, line, module, offset, inlined from frames "
                 "where stack = 'c39ef499fb80b593' order by level",
                 file),
            "0,g_realloc,gmem.c,164,/usr/lib/libglib-2.0.so.0,390113,0\n"
            "1,g_slist_copy,gslist.c,88,/usr/lib/libgobject-2.0.so.0,,1\n"
            "2,g_closure_add,gclosure.c,512,/usr/lib/libgobject-2.0.so.0,4660,0\n"
            "3,load,load.c,7,/usr/bin/app,4608,0\n");
  EXPECT_EQ(rows("select depth, cut, own_function, own_file, own_line, own_module, text "
                 "from stacks where stack = 'c39ef499fb80b593'",
                 file),
            "4,0,load,load.c,7,/usr/bin/app,g_realloc < g_slist_copy < g_closure_add < load\n");
  EXPECT_EQ(rows("select count(*) from frames where stack = 'c39ef499fb80b59'", file), "0\n");
  EXPECT_EQ(rows("select count(*) from frames where stack = 'unknown'", file), "0\n");
}

TEST(Sql, FunctionsSpareJoins) {
  const std::vector<std::string> file = {golden("app-4600-1.memlog")};
  EXPECT_EQ(rows("select own_frame(stack), stack_text(stack) from entries "
                 "where bytes = 126720",
                 file),
            "load,g_realloc < g_slist_copy < g_closure_add < load\n");
  EXPECT_EQ(rows("select sum(bytes) from entries where matches(stack, 'function:^cache_put') "
                 "and kind = 'heap'",
                 file),
            "5000\n");
  EXPECT_EQ(rows("select sum(bytes) from entries where matches(stack, 'server.cc:90')", file),
            "1053576\n");
  EXPECT_EQ(rows("select matches('0000000000000001', 'x'), own_frame('x'), stack_text(null)", file),
            ",,\n");
  EXPECT_EQ(rows("select count(*) from frames where function regexp '^g_'", file), "3\n");
  const std::string born = "instant('2026-11-20T20:15:31.5Z')";
  EXPECT_EQ(rows(fmt::format("select alive_at({0}, null, {0}), alive_at({0}, {0} + 1, {0} + 1), "
                             "alive_at({0}, {0} + 1000000, '20:15:31.5'), "
                             "alive_at({0}, null, '20:15:31'), time_text({0}), "
                             "instant('2026-11-20 20:15:31.500000001') - {0}",
                             born)),
            "1,0,1,0,2026-11-20T20:15:31.500000Z,1\n");
  const Outcome bad = sql("select matches(stack, '(') from entries");
  EXPECT_EQ(bad.status, 1);
  EXPECT_HAS(bad.err, "(");
  const Outcome when = sql("select alive_at(1, 2, 'noon')");
  EXPECT_EQ(when.status, 1);
  EXPECT_TRUE(when.err.starts_with("memlog: noon is not a time: ")) << when.err;
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

TEST(Sql, MarkersAreReportsAndNotes) {
  TemporaryDirectory directory;
  const std::string file = directory / "app-4711-1.memlog";
  write_file(file, small_memlog({"f\t(/app+0x10)"},
                                "# note: 2026-11-20T20:15:16.000001Z day 1: 300 requests\n"
                                "# note: not a note of the program\n"));
  EXPECT_EQ(rows("select process, time_text(at), kind, text, report from markers", {file}),
            "1,2026-11-20T20:15:16.000001Z,note,day 1: 300 requests,1\n"
            "1,2026-11-20T20:15:31.123456Z,report,,1\n");
}

TEST(Sql, MemoryIsTheTimeline) {
  TemporaryDirectory directory;
  write_file(directory / "app-4711-1.memlog", small_memlog({"f\t(/app+0x10)"}));
  write_file(directory / "app-4711.timeline",
             "# timeline 1\n# program: /usr/bin/app\n# pid: 4711\n"
             "# started: 2026-11-20T20:15:00.000000Z\n# interval: 10 ms\n"
             "# columns: milliseconds live blocks resident allocations\n"
             "10\t100\t2\t4096\t5\n20\t64\t1\t8192\t0\n# end\n");
  EXPECT_EQ(rows("select time_text(at), live_bytes, live_blocks, resident_bytes, allocations "
                 "from memory",
                 {directory / "app-4711-1.memlog"}),
            "2026-11-20T20:15:00.010000Z,100,2,4096,5\n"
            "2026-11-20T20:15:00.020000Z,64,1,8192,0\n");
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

TEST(Sql, ChangesNothing) {
  TemporaryDirectory directory;
  for (const std::string& statement :
       {std::string("create table t (a)"), std::string("create temp table t (a)"),
        std::string("create view v as select 1"), std::string("insert into entries values (1)"),
        std::string("delete from entries"), std::string("update reports set seq = 1"),
        std::string("drop table entries"), std::string("begin;"), std::string("vacuum;"),
        "attach '" + (directory / "a.db") + "' as a", "vacuum into '" + (directory / "a.db") + "'",
        std::string("pragma temp_store_directory = '/tmp'"), std::string("pragma journal_mode"),
        std::string("select load_extension('x')"),
        std::string("select 1; attach ':memory:' as b")}) {
    const Outcome result = sql(statement);
    EXPECT_EQ(result.status, 2) << statement;
    EXPECT_TRUE(result.err.starts_with("memlog: sql: ")) << result.err;
  }
  EXPECT_EQ(shell("ls -A " + directory.path()), "");
  EXPECT_EQ(rows("select count(*) from pragma_table_info('entries') where name = 'bytes'"), "1\n");
}

TEST(Sql, ErrorsPointAtTheirPlace) {
  EXPECT_EQ(sql("select byts from entries").err,
            "memlog: sql: no such column: byts\n"
            "  select byts from entries\n"
            "         ^\n");
  EXPECT_EQ(sql("select 1;\nselect bytes\nfrom entrys").err,
            "memlog: sql: no such table: entrys; .tables lists them\n");
  EXPECT_EQ(sql("select 1;\nselect *,\nbyts from entries").err,
            "memlog: sql: no such column: byts\n"
            "  byts from entries\n"
            "  ^\n");
  EXPECT_EQ(sql("select * from entries where where").err,
            "memlog: sql: near \"where\": syntax error\n"
            "  select * from entries where where\n"
            "                              ^\n");
  EXPECT_EQ(sql(".schema entrys").err, "memlog: sql: no such table: entrys; .tables lists them\n");
  EXPECT_EQ(sql(".table").err, "memlog: sql: unknown command .table; .help lists them\n");
  EXPECT_EQ(sql("select byts from entries").status, 2);
}

TEST(Sql, DamagedAndMissingFilesEndTheQuery) {
  const Outcome damaged =
      sql("select count(*) from entries", {golden("app-4600-1.memlog"), golden("damaged.memlog")});
  EXPECT_EQ(damaged.status, 2);
  EXPECT_EQ(damaged.out, "count(*)\n");
  EXPECT_TRUE(damaged.err.starts_with(golden("damaged.memlog") + ":")) << damaged.err;
  EXPECT_EQ(sql("select 1", {"gone.memlog"}).status, 1);
  TemporaryDirectory broken;
  write_file(broken / "a.memlog.zst", "\x28\xb5\x2f\xfd and no more");
  EXPECT_EQ(sql("select 1", {broken / "a.memlog.zst"}).status, 2);
  EXPECT_EQ(sql("select 1", {"there-is-no-such-process"}).status, 1);
  TemporaryDirectory empty;
  EXPECT_EQ(sql("select 1", {empty.path()}).status, 1);
  TemporaryDirectory copies;
  write_file(copies / "a.memlog", read_file(golden("app-4711-1.memlog")));
  write_file(copies / "b.memlog", read_file(golden("app-4711-1.memlog")));
  const Outcome twice = sql("select 1", {copies.path()});
  EXPECT_EQ(twice.status, 1);
  EXPECT_EQ(twice.err, fmt::format("memlog: {0}/a.memlog and {0}/b.memlog are the same report\n",
                                   copies.path()));
}

TEST(Sql, PrintsFourFormats) {
  const std::string query =
      "select 1 as n, 'a|b, \"c\"' as t, null as x, 2.0 as r union all "
      "select -22, char(10) || 'é<', 'y', 0.5";
  const auto print = [&](const char* format) {
    return memlog({"sql", "--format", format, query, golden("app-4711-1.memlog")}).out;
  };
  EXPECT_EQ(print("table"),
            "  n  t         x    r\n"
            "---  --------  -  ---\n"
            "  1  a|b, \"c\"     2.0\n"
            "-22  \\x0aé<    y  0.5\n");
  EXPECT_EQ(print("csv"), "n,t,x,r\n1,\"a|b, \"\"c\"\"\",,2.0\n-22,\"\né<\",y,0.5\n");
  EXPECT_EQ(json::parse(print("json")),
            json::parse(R"([{"n": 1, "t": "a|b, \"c\"", "x": null, "r": 2.0},
                            {"n": -22, "t": "\né<", "x": "y", "r": 0.5}])"));
  EXPECT_EQ(print("markdown"),
            "| n | t | x | r |\n| ---: | --- | --- | ---: |\n"
            "| 1 | a\\|b, \"c\" |  | 2.0 |\n| -22 | \\x0a\xc3\xa9\\< | y | 0.5 |\n");
  EXPECT_EQ(json::parse(
                memlog({"sql", "-f", "json", "select 1 where 0", golden("app-4711-1.memlog")}).out),
            json::array());
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

TEST(Sql, SavesCompletelyOrNotAtAll) {
  TemporaryDirectory directory;
  write_file(directory / "a.db", "before");
  EXPECT_EQ(memlog({"sql", "--save", directory / "a.db", golden("app-4600-1.memlog"),
                    golden("damaged.memlog")})
                .status,
            2);
  EXPECT_EQ(read_file(directory / "a.db"), "before");
  EXPECT_EQ(shell("ls -A " + directory.path()), "a.db\n");
  const Outcome nowhere =
      memlog({"sql", "--save", directory / "gone/a.db", golden("app-4711-1.memlog")});
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_TRUE(nowhere.err.starts_with("memlog: cannot write ")) << nowhere.err;
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
