// The options of commands that read reports: where to find names, own code, order and look.
// Messages about damaged files, the exit status.
#pragma once

#include "model/profile/model.h"
#include "model/symbols/symbolizer.h"
#include "surface/cli/arguments.h"
#include "surface/cli/command.h"
#include "surface/fleet/remote.h"
#include "util/prelude.h"
#include "view/analyze/groups.h"
#include "view/analyze/responsible.h"
#include "view/analyze/row.h"
#include "view/analyze/table.h"
#include "view/reports/reports.h"
#include "view/text/style.h"

namespace mtrace::cli {

// Reads reports for a command: its options, messages about damaged files, the exit status.

// Reads the filter options (surface/cli/filter_options.h), --sysroot, --symbols and --no-resolve.
// Throws UsageError, and what reading a suppressions file throws.
reports::ReadOptions read_options(const Arguments& arguments);

// Like read_options(), for a command with --group-by.
reports::ReadOptions read_grouped_options(const Arguments& arguments);

// Runs `action` for each of `files` that the filter takes. Reports a damaged file and continues.
// Returns the exit status. Throws std::runtime_error when the filter takes none.
int each_report(reports::Reports& reports, const std::vector<std::string>& files,
                const Streams& streams, const std::function<void(reports::Report&)>& action);

// Throws UsageError when the standard input ("-") is among `files`: a series needs files.
void refuse_standard_input(const char* command, const std::vector<std::string>& files);

// Returns a line about what the processes inherited at their forks, which is not in the sums; ""
// when that is nothing.
std::string inherited_text(const std::vector<analyze::ProcessSum>& sums);
// Reports what is missing in the sums. Returns the exit status.
int complain_incomplete(const std::vector<analyze::ProcessSum>& sums, const Streams& streams);

// The options that tell where to find names, for commands that read memlogs.

inline constexpr Option kSysrootOption = {
    "--sysroot", "", "DIR",
    R"(Look for modules below this directory instead of /: the root of another machine or of a
    container.)"};
inline constexpr Option kSymbolsOption = {
    "--symbols", "", "DIR",
    R"(Also look for separate debug files in this directory, by build-id
    (DIR/.build-id/xx/yyyy.debug) or by the name in the module's debuglink. May be repeated.)"};

// Where memlog pack puts symbols, beside the data.
inline constexpr char kPackedSymbols[] = "symbols";

// From --sysroot and --symbols, and symbols that were unpacked beside the data. Throws UsageError
// for a directory that is none.
symbols::SearchPath search_path(const Arguments& arguments);

// The options that the views of reports share: the sort order and the look of the text.

inline constexpr Option kFullNamesOption = {
    "--full-names", "", "",
    "Show the standard library's default template arguments in C++ names, as the file has them."};
inline constexpr Option kNoHeaderOption = {"--no-header", "", "", "Print entries only."};
inline constexpr Option kNoResolveOption = {
    "--no-resolve", "", "", "Show only names that the files contain; do not look up others."};
inline constexpr Option kColorOption = {
    "--color", "", "WHEN",
    R"(When to use colours: auto (default; on a terminal, unless NO_COLOR is set or TERM is dumb),
    always or never.)",
    "auto|always|never"};
inline constexpr Option kBytesOption = {
    "--bytes", "", "",
    R"(Print exact bytes and milliseconds, not KiB, minutes and so on. MEMLOG_BYTES=1: always.)"};
inline constexpr Option kNoBuiltinOption = {"--no-builtin", "", "",
                                            R"(Also list what the C and C++ runtimes keep to the end
    (memlog check --print-builtin).)"};
inline constexpr Option kNoPagerOption = {
    "--no-pager", "", "",
    R"(Do not use a pager. Otherwise output longer than the terminal goes through MEMLOG_PAGER,
    PAGER or less.)"};
inline constexpr Option kJsonOption = {
    "--json",
    "",
    "",
    R"(Print one JSON object. Keys name the units of numbers; stack ids are the same in every
    report. Fields that are 0 or unknown are left out. doc/json.md has the schema.)",
    "",
    "--once",
    "--oneline|--no-header"};
inline constexpr Option kPeakOption = {"--peak", "", "", "Same as --by peak."};

// Reads --by and --peak. Throws UsageError.
analyze::Order read_order(const Arguments& arguments);

// Returns whether numbers are to be exact: --bytes, MEMLOG_BYTES.
bool wants_bytes(const Arguments& arguments);

// Returns the style from --color, --bytes, --oneline, --full-names and --no-header, as far as the
// command has them, and from `streams`.
text::Style read_style(const Arguments& arguments, const Streams& streams);

// The options that tell the program's own code from libraries', and what to add up.

inline constexpr Option kLibraryOption = {
    "--library", "", "FILE|REGEX",
    R"(Count these functions as a library's: they are folded and never lead a stack. A REGEX for the
    function's name; source:REGEX or module:REGEX for its source file or module; or a FILE with such
    patterns, one a line (memlog help library-code). May be repeated.)"};
inline constexpr Option kOwnOption = {
    "--own", "", "FILE|REGEX",
    R"(Count these functions as the program's own, whatever --library and the built-in list say.
    May be repeated.)"};
inline constexpr char kGroupByHelp[] =
    R"(Add up the stacks that one place is responsible for: the function, the source file, the source
    line or the module of the first frame of own code. type: by what the blocks are, where functions
    of the standard library tell (std::vector<int>, node of std::list<T>). stack: do not add up.)";
inline constexpr Option kGroupByOption = {"--group-by", "", "WHAT", kGroupByHelp,
                                          "stack|function|file|line|module|type"};
// For a view that is by function unless told otherwise.
inline constexpr Option kGroupedByOption = {"--group-by", "", "WHAT", kGroupByHelp,
                                            "function|stack|file|line|module|type"};

// Reads --library and --own. Throws UsageError, and FormatError for a line of a file.
analyze::ResponsiblePointer read_responsible(const Arguments& arguments);

// Reads --group-by. Throws UsageError.
analyze::GroupBy read_group_by(const Arguments& arguments);

// Folds the stacks of a view unless --frames chooses frames.
void fold(text::Style& style, const reports::Reports& reports);

// Leaves out what runtimes keep, unless the output is for programs or for comparing, or
// --no-builtin is given.
void leave_out_runtime(const Arguments& arguments, const text::Style& style,
                       reports::Reports& reports);

// What memlog export writes: the rows of a report, of a sum or of a comparison.

struct ExportRows {
  analyze::Table table;
  // Of the last report.
  std::string program;
  std::string taken;
  double uptime = 0;  // seconds
  std::string base;   // when the last report of --base was taken
  // The files of one process's reports, or its first one when that is all and came by the standard
  // input: for formats that know time. Neither, when only some reports were asked for.
  std::vector<std::string> series;
  std::optional<profile::Memlog> first;
  int status = kGood;
};

// Reads the reports that the operands name: one report's rows as they are, the sum of several, or
// with --base the difference from that. Reports what is missing in a sum. Throws as reading does,
// and UsageError for what cannot be asked of a sum or a comparison.
ExportRows export_rows(const Arguments& arguments, analyze::Order order, reports::Reports& reports,
                       const Streams& streams);

// The source files of frames, for commands that print their lines.

inline constexpr Option kSourcePathOption = {
    "--source-path", "", "DIR", "Look for source files below DIR first. May be repeated.", "",
    "--source"};

class SourceLookup {
 public:
  // A part of a file. No texts: the file is not here, or has no such line.
  struct Part {
    uint64_t first = 0;  // number of the first line of `texts`
    uint64_t line = 0;   // number of the frame's line
    std::vector<std::string> texts;
  };

  // Reads --sysroot, --symbols and --source-path.
  explicit SourceLookup(const Arguments& arguments);

  // Reads which files the frames of `table` were compiled from. Call it before find().
  void learn(const analyze::Table& table);
  // Returns the file of frame `at` of a row of `table`, which must stay as it was.
  const symbols::SourceFile& find(const analyze::Table& table, const analyze::Row& row, size_t at);
  // Returns the frame's line and up to `around` lines before and after it, bytes as in the file.
  Part part(const analyze::Table& table, const analyze::Row& row, size_t at, uint64_t around);

 private:
  const std::vector<std::string>& lines_of(const std::string& path);

  symbols::SourcePaths paths_;
  symbols::SourceFiles files_;
  std::map<std::string, std::vector<std::string>> contents_;  // by path
};

// memlog export -f clickhouse.

// Writes the rows of the reports that the operands name, or inserts them in a server (--to).
// `manual`: of the command. Returns the exit status. Throws what reading the reports throws,
// fleet::ServerError, UsageError.
int export_fleet(const Manual& manual, const Arguments& arguments, const Streams& streams);

// The options of commands that receive reports of many machines.

inline constexpr Option kMaxDiskOption = {
    "--max-disk",
    "",
    "SIZE",
    R"(Remove the oldest reports and event logs when all together take more than SIZE: 50G.)",
    "",
    "--receive"};
inline constexpr Option kMaxAgeOption = {
    "--max-age", "",         "TIME", R"(Remove reports that were taken longer ago than TIME: 30d.)",
    "",          "--receive"};

// From --max-disk and --max-age. Throws UsageError.
fleet::StoreLimits read_store_limits(const Arguments& arguments);

// The options of commands that ask a memlog serve.
inline constexpr Option kServerTokenOption = {
    "--token-file", "", "FILE",
    R"(Send the token in the first line of FILE, which only its owner may read.)"};
inline constexpr Option kCaFileOption = {
    "--ca-file", "", "FILE",
    R"(Of an https server, accept a certificate that is signed by one in FILE (PEM). Default: by one
    that this machine trusts.)"};

// Returns the server at a URL, with these options. Throws std::runtime_error for another text and
// for a token that cannot be used.
fleet::Remote remote_at(const std::string& url, const Arguments& arguments);

}  // namespace mtrace::cli
