#include "surface/cli/fleet_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "surface/cli/report_options.h"
#include "surface/fleet/remote.h"
#include "surface/sql/fleet_export.h"
#include "util/file.h"
#include "view/text/quantity.h"
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
  if (arguments.has("--to") && (arguments.has("--output") || arguments.has("--table"))) {
    throw UsageError("export: --to inserts both tables: leave out --output and --table");
  }
  sql::Sources sources =
      arguments.has("--schema") ? sql::Sources() : sql::Sources(arguments.operands());
  sql::Database database(sources, {search_path(arguments), !arguments.has("--no-resolve"),
                                   read_responsible("export", arguments)});
  if (arguments.has("--to")) {
    load_fleet(arguments, sources, database, streams);
    return kGood;
  }
  const std::string path = arguments.value("--output", "-");
  std::optional<util::Replacement> file;
  if (path != "-") file.emplace(path);
  const auto write = [&](const std::string& text) {
    if (file) {
      file->write(text);
    } else {
      print(streams, text);
    }
  };
  if (arguments.has("--schema")) {
    write(sql::clickhouse_schema(database.tables()));
  } else {
    sql::write_rows(database, arguments.choice("--table"), write);
  }
  if (file) file->finish();
  return kGood;
}

fleet::StoreLimits read_store_limits(const std::string& command, const Arguments& arguments) {
  constexpr uint64_t kLeastDisk = 1 << 20;
  constexpr uint64_t kMillisecond = 1'000'000;
  constexpr uint64_t kMostAge = uint64_t{100} * 365 * 24 * 3600 * 1000;  // milliseconds
  fleet::StoreLimits limits;
  if (arguments.has("--max-disk")) {
    const std::string text = arguments.value("--max-disk");
    const auto size = text::read_size(text);
    if (!size || *size < kLeastDisk) {
      throw UsageError(
          fmt::format("{}: --max-disk {} is not a size from 1M, like 50G", command, text));
    }
    limits.bytes = *size;
  }
  if (arguments.has("--max-age")) {
    const std::string text = arguments.value("--max-age");
    const auto age = text::read_duration(text, 1000);
    if (!age || *age == 0 || *age > kMostAge) {
      throw UsageError(fmt::format("{}: --max-age {} is not a time like 30d", command, text));
    }
    limits.age = *age * kMillisecond;
  }
  return limits;
}

}  // namespace mtrace::cli
