#include "surface/cli/fleet_export.h"

#include "surface/cli/report_options.h"
#include "surface/sql/fleet_export.h"
#include "util/file.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

// The rows are whole reports.
void check_options(const Manual& manual, const Arguments& arguments) {
  constexpr std::string_view kTaken[] = {
      "--format",     "--output",  "--to",      "--schema",  "--table", "--password-file",
      "--no-resolve", "--symbols", "--sysroot", "--library", "--own"};
  for (const Option& option : manual.options) {
    if (arguments.has(option.name) &&
        std::find(std::begin(kTaken), std::end(kTaken), option.name) == std::end(kTaken)) {
      throw UsageError(
          fmt::format("export: {} cannot be used with clickhouse: a query selects", option.name));
    }
  }
}

void load_fleet(const Arguments& arguments, sql::Sources& sources, sql::Database& database,
                const Streams& streams) {
  constexpr unsigned kTries = 6;
  const std::string url = arguments.value("--to");
  std::string password;
  if (arguments.has("--password-file")) {
    password = util::read_file(arguments.value("--password-file"));
    password.resize(std::min(password.find_first_of("\r\n"), password.size()));
  }
  fleet::ClickHouse server(fleet::read_clickhouse_url(url), password);
  unsigned tries = 0;
  const sql::Loaded done = sql::load(sources, database, server, [&](const std::string& why) {
    if (++tries == kTries) throw std::runtime_error(why);
    complain(streams, fmt::format("{}: trying again in {} s", why, 1 << (tries - 1)));
    std::this_thread::sleep_for(std::chrono::seconds(1 << (tries - 1)));
  });
  print(streams,
        fmt::format("{} inserted, {}; {} there already\n", text::count_text(done.reports, "report"),
                    text::count_text(done.rows, "row"), done.held));
  if (done.left_out != 0) {
    complain(streams, fmt::format("export: left out {}, merged from some that are there: export "
                                  "reports before they are merged",
                                  text::count_text(done.left_out, "report")));
  }
}

}  // namespace

int export_fleet(const Manual& manual, const Arguments& arguments, const Streams& streams) {
  check_options(manual, arguments);
  sql::Sources sources =
      arguments.has("--schema") ? sql::Sources() : sql::Sources(arguments.operands());
  sql::Database database(sources, {search_path(arguments), !arguments.has("--no-resolve"),
                                   read_responsible(arguments)});
  if (arguments.has("--to")) {
    load_fleet(arguments, sources, database, streams);
    return kGood;
  }
  Output output(arguments, streams);
  if (arguments.has("--schema")) {
    output.write(sql::clickhouse_schema(database.tables()));
  } else {
    sql::write_rows(database, arguments.choice("--table"),
                    [&](const std::string& text) { output.write(text); });
  }
  output.finish();
  return kGood;
}

fleet::Remote remote_at(const std::string& url, const Arguments& arguments) {
  fleet::HttpServerAddress server = fleet::read_url(url);
  server.ca_file = arguments.value("--ca-file");
  return {server,
          arguments.has("--token-file") ? fleet::read_token(arguments.value("--token-file")) : ""};
}

fleet::StoreLimits read_store_limits(const Arguments& arguments) {
  constexpr uint64_t kMillisecond = 1'000'000;
  constexpr uint64_t kMostAge = uint64_t{100} * 365 * 24 * 3600 * 1000;  // milliseconds
  fleet::StoreLimits limits;
  limits.bytes = arguments.bytes("--max-disk", 1 << 20, "from 1M, like 50G").value_or(0);
  limits.age =
      arguments.milliseconds("--max-age", 1, kMostAge, "like 30d").value_or(0) * kMillisecond;
  return limits;
}

}  // namespace mtrace::cli
