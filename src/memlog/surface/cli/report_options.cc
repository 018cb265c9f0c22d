#include "surface/cli/report_options.h"

#include <sys/stat.h>
#include <unistd.h>

#include "model/symbols/elf_file.h"
#include "surface/cli/filter_options.h"
#include "surface/sql/fleet_export.h"
#include "util/error.h"
#include "util/file.h"
#include "util/screen.h"
#include "util/text.h"
#include "view/analyze/compare.h"
#include "view/analyze/filter.h"
#include "view/analyze/table.h"
#include "view/reports/catalog.h"
#include "view/reports/reports.h"
#include "view/text/header_text.h"
#include "view/text/report_text.h"
#include "view/text/style.h"

namespace mtrace::cli {

reports::ReadOptions read_options(const Arguments& arguments) {
  return {read_filter(arguments), search_path(arguments), !arguments.has("--no-resolve")};
}

reports::ReadOptions read_grouped_options(const Arguments& arguments) {
  reports::ReadOptions options = read_options(arguments);
  options.filter.group_by = read_group_by(arguments);
  // Asking for frames is asking for stacks. A program that reads JSON adds up for itself.
  if (arguments.has("--depth") || arguments.has("--frames") ||
      (arguments.has("--json") && !arguments.has("--group-by"))) {
    options.filter.group_by = analyze::GroupBy::kStack;
  }
  return options;
}

int each_report(reports::Reports& reports, const std::vector<std::string>& files,
                const Streams& streams, const std::function<void(reports::Report&)>& action) {
  int status = kGood;
  bool any = false;
  for (const std::string& file : files) {
    try {
      auto report = reports.read(file);
      if (!report) continue;
      any = true;
      action(*report);
      if (const auto& cut = report->cut_short()) {
        complain(streams,
                 fmt::format("{}:{}: {}: this is what could be read", file, cut->line, cut->why));
        status = std::max<int>(status, kFailed);
      }
    } catch (const util::FormatError& error) {
      fmt::print(streams.err, "{}\n", error.what());
      status = kUnusable;
    } catch (const std::exception& error) {
      complain(streams, error.what());
      status = std::max<int>(status, kFailed);
    }
  }
  if (!any && status == kGood) throw util::NotFound(reports::kNoneChosen);
  return status;
}

void refuse_standard_input(const char* command, const std::vector<std::string>& files) {
  if (std::find(files.begin(), files.end(), "-") == files.end()) return;
  throw UsageError(fmt::format(
      "{}: a series of reports cannot be read from standard input: name the files", command));
}

std::string inherited_text(const std::vector<analyze::ProcessSum>& sums) {
  uint64_t bytes = 0;
  size_t processes = 0;
  for (const analyze::ProcessSum& process : sums) {
    if (!process.inherited || process.inherited->blocks == 0) continue;
    const auto more = static_cast<uint64_t>(std::max<int64_t>(process.inherited->bytes, 0));
    if (__builtin_add_overflow(bytes, more, &bytes)) bytes = UINT64_MAX;
    ++processes;
  }
  if (processes == 0) return "";
  return fmt::format(
      "not counted: {} bytes that {} inherited at fork; the reports of the parents have them",
      util::grouped(bytes), processes == 1 ? "a process" : fmt::format("{} processes", processes));
}

int complain_incomplete(const std::vector<analyze::ProcessSum>& sums, const Streams& streams) {
  int status = kGood;
  for (const analyze::ProcessSum& process : sums) {
    for (const std::string& why : process.incomplete) {
      complain(streams, why);
      status = kFailed;
    }
  }
  return status;
}
namespace {

void check_directory(const char* option, const std::string& path) {
  struct stat state = {};
  if (::stat(path.c_str(), &state) != 0 || !S_ISDIR(state.st_mode)) {
    throw UsageError(fmt::format("{} {}: not a directory", option, path));
  }
  // libdwfl is told directories as one text with colons between them.
  if (path.find(':') != std::string::npos) {
    throw UsageError(fmt::format("{} {}: the path must not contain a colon", option, path));
  }
}

// Those that memlog pack put into the directory of a file, or in this one. Anyone can make such a
// directory in /tmp: it must be this user's, or root's.
void add_packed_symbols(const std::string& path, std::vector<std::string>& directories) {
  std::error_code ignored;
  std::filesystem::path place = path;
  if (!std::filesystem::is_directory(place, ignored)) place = place.parent_path();
  const std::string symbols = std::filesystem::absolute(place / kPackedSymbols, ignored);
  struct stat state = {};
  if (::stat((symbols + symbols::kBuildIds).c_str(), &state) != 0 || !S_ISDIR(state.st_mode) ||
      (state.st_uid != ::geteuid() && state.st_uid != 0) || symbols.find(':') != symbols.npos ||
      std::find(directories.begin(), directories.end(), symbols) != directories.end()) {
    return;
  }
  directories.push_back(symbols);
}

}  // namespace

symbols::SearchPath search_path(const Arguments& arguments) {
  symbols::SearchPath where;
  where.sysroot = arguments.value("--sysroot");
  while (where.sysroot.ends_with('/')) where.sysroot.pop_back();
  if (arguments.has("--sysroot")) check_directory("--sysroot", arguments.value("--sysroot"));
  where.symbols = arguments.values("--symbols");
  for (const std::string& directory : where.symbols) check_directory("--symbols", directory);
  std::vector<std::string> data = arguments.operands();
  data.insert(data.end(), {arguments.value("--from"), reports::report_directory()});
  for (const std::string& path : data) add_packed_symbols(path, where.symbols);
  return where;
}
namespace {

using analyze::Order;

struct Key {
  const char* name;
  Order order;
};

constexpr Key kKeys[] = {
    {"bytes", Order::kBytes},
    {"blocks", Order::kBlocks},
    {"live", Order::kLive},
    {"allocs", Order::kAllocations},
    {"temporary", Order::kTemporary},
    {"lifetime", Order::kLifetime},
    {"slack", Order::kSlack},
    {"peak", Order::kPeak},
    {"age", Order::kAge},
    {"size", Order::kSize},
    {"failed", Order::kFailed},
    {"stack", Order::kStack},
};

}  // namespace

Order read_order(const Arguments& arguments) {
  const std::string by = arguments.choice("--by");
  if (arguments.has("--peak")) {
    if (arguments.has("--by") && by != "peak") {
      throw UsageError(fmt::format(
          "{}: --peak means --by peak: it cannot be used with another --by", arguments.command()));
    }
    return Order::kPeak;
  }
  for (const Key& key : kKeys) {
    if (by == key.name) return key.order;
  }
  return Order::kBytes;
}

bool wants_bytes(const Arguments& arguments) {
  const char* always = std::getenv("MEMLOG_BYTES");
  return arguments.has("--bytes") || (always != nullptr && std::string(always) == "1");
}

text::Style read_style(const Arguments& arguments, const Streams& streams) {
  text::Style style;
  const std::string colour = arguments.choice("--color");
  const char* no_colour = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  const bool plain = (no_colour != nullptr && *no_colour != '\0') ||
                     (kind != nullptr && std::string(kind) == "dumb");
  style.colour = colour == "always" || (colour == "auto" && streams.terminal && !plain);
  style.units = !wants_bytes(arguments);
  style.columns = streams.columns;
  style.oneline = arguments.has("--oneline");
  style.full_names = arguments.has("--full-names");
  style.header = !arguments.has("--no-header");
  return style;
}
namespace {

bool is_file(const std::string& path) {
  struct stat state = {};
  return ::stat(path.c_str(), &state) == 0 && S_ISREG(state.st_mode);
}

// A pattern says what it is for, or has no slash; what is there is a file.
bool names_file(const std::string& text) {
  for (const char* prefix : {"function:", "source:", "module:", "any:"}) {
    if (text.starts_with(prefix)) return false;
  }
  return is_file(text) || text.find('/') != std::string::npos;
}

void add_patterns(const Arguments& arguments, const char* option,
                  analyze::FramePatterns& patterns) {
  for (const std::string& text : arguments.values(option)) {
    try {
      if (names_file(text)) {
        patterns.add(text, util::read_file(text));
      } else {
        patterns.add_pattern(text);
      }
    } catch (const util::FileError& error) {
      throw UsageError(fmt::format("{}: {}: {}", arguments.command(), option, error.what()));
    } catch (const analyze::PatternError& error) {
      throw UsageError(fmt::format("{}: {}: {}", arguments.command(), option, error.what()));
    }
  }
}

}  // namespace

analyze::ResponsiblePointer read_responsible(const Arguments& arguments) {
  analyze::LibraryCode code;
  add_patterns(arguments, "--own", code.own());
  add_patterns(arguments, "--library", code.library());
  return std::make_shared<const analyze::Responsible>(std::move(code));
}

analyze::GroupBy read_group_by(const Arguments& arguments) {
  const std::string by = arguments.choice("--group-by");
  if (by == "function") return analyze::GroupBy::kFunction;
  if (by == "file") return analyze::GroupBy::kFile;
  if (by == "line") return analyze::GroupBy::kLine;
  if (by == "module") return analyze::GroupBy::kModule;
  if (by == "type") return analyze::GroupBy::kType;
  return analyze::GroupBy::kStack;
}

void fold(text::Style& style, const reports::Reports& reports) {
  const analyze::Filter& filter = reports.filter();
  style.responsible = filter.all_frames ? nullptr : filter.responsible;
}

void leave_out_runtime(const Arguments& arguments, const text::Style& style,
                       reports::Reports& reports) {
  if (arguments.has("--no-builtin") || arguments.has("--json")) return;
  if (style.order != Order::kStack) reports.leave_out_runtime();
}

namespace {

ExportRows rows_of(const profile::Header& header) {
  ExportRows rows;
  rows.program = text::plain(header.program);
  rows.taken = header.taken;
  rows.uptime = std::strtod(header.uptime.c_str(), nullptr);
  return rows;
}

ExportRows compared(const Arguments& arguments, analyze::Order order, reports::Reports& reports) {
  if (order != analyze::Order::kBytes && order != analyze::Order::kBlocks) {
    throw UsageError("export: --base compares only bytes or blocks: use --by bytes or --by blocks");
  }
  analyze::FilteredOut left_out;
  const std::vector<std::string> files =
      reports::files_of(reports::Reports::files(arguments.operands(), false));
  const reports::ReportSet before =
      reports::live_set(reports::files_of(arguments.value("--base")), reports, left_out);
  const reports::ReportSet after = reports::live_set(files, reports, left_out);
  ExportRows rows = rows_of(after.processes.back().last);
  rows.base = before.processes.back().last.taken;
  rows.table = analyze::compare(before.table, after.table).table;
  analyze::drop_empty(rows.table.rows(), order);
  reports.filter().apply(rows.table.rows());
  analyze::sort(rows.table.rows(), order);
  return rows;
}

}  // namespace

ExportRows export_rows(const Arguments& arguments, analyze::Order order, reports::Reports& reports,
                       const Streams& streams) {
  if (arguments.has("--base")) return compared(arguments, order, reports);
  text::Style style;
  style.order = order;
  text::Context context;
  const std::vector<std::string> files = reports::Reports::files(arguments.operands(), false);
  std::vector<reports::Found> found = reports.find(files);
  const bool all = !reports.filter().chooses_reports();
  if (found.size() == 1) {
    const util::Progress progress(1);
    const bool file = found[0].memlog == nullptr;  // which can be read again
    reports::Report report = reports.read(found[0]);
    const profile::Header& header = report.head().header;
    ExportRows rows = rows_of(header);
    if (all && header.merged.value_or(header.seq) == 1) {
      if (file) {
        rows.series = files;
      } else {
        rows.first = report.head();
      }
    }
    rows.table = text::table_of(report, reports.filter(), style, text::Rows::kAll, 0, context);
    return rows;
  }
  if (order == analyze::Order::kLive) {
    throw UsageError(
        "export: --by live: not for several reports; their sum of bytes is what is live");
  }
  const std::vector<analyze::ProcessSum> sums =
      reports.sum(std::move(found), !all, context.filtered);
  ExportRows rows = rows_of(sums.back().last);
  if (all && sums.size() == 1) rows.series = files;
  rows.status = complain_incomplete(sums, streams);
  if (const std::string line = inherited_text(sums); !line.empty()) {
    complain(streams, "export: " + line);
  }
  rows.table = text::table_of(sums, reports.filter(), style, text::Rows::kAll, context);
  return rows;
}

SourceLookup::SourceLookup(const Arguments& arguments)
    : paths_(search_path(arguments)), files_(arguments.values("--source-path")) {}

void SourceLookup::learn(const analyze::Table& table) {
  std::vector<const profile::Frames*> stacks;
  for (const analyze::Row& row : table.rows()) stacks.push_back(&row.frames);
  paths_.learn(table.modules(), stacks);
}

const symbols::SourceFile& SourceLookup::find(const analyze::Table& table, const analyze::Row& row,
                                              size_t at) {
  const std::string name = symbols::split_source(row.frames[at].source).first;
  return files_.find(paths_.find(table.modules(), row.frames, at), name);
}

SourceLookup::Part SourceLookup::part(const analyze::Table& table, const analyze::Row& row,
                                      size_t at, uint64_t around) {
  Part part;
  part.line = symbols::split_source(row.frames[at].source).second;
  if (part.line == 0) return part;
  const std::string& path = find(table, row, at).path;
  if (path.empty()) return part;
  const std::vector<std::string>& lines = lines_of(path);
  if (part.line > lines.size()) return part;
  part.first = part.line > around ? part.line - around : 1;
  const uint64_t last = std::min<uint64_t>(part.line + around, lines.size());
  for (uint64_t line = part.first; line <= last; ++line) part.texts.push_back(lines[line - 1]);
  return part;
}

const std::vector<std::string>& SourceLookup::lines_of(const std::string& path) {
  const auto [known, added] = contents_.try_emplace(path);
  if (!added) return known->second;
  std::string content;
  try {
    content = util::read_file(path);
  } catch (const util::FileError&) {
    return known->second;  // as if it were not here
  }
  for (const std::string_view line : util::split(content, '\n')) known->second.emplace_back(line);
  if (content.ends_with('\n')) known->second.pop_back();
  return known->second;
}

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
