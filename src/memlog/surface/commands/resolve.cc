// memlog resolve: fills in functions, source lines and inlined functions.

#include "format/memlog.h"
#include "model/profile/reader.h"
#include "model/profile/writer.h"
#include "model/symbols/symbolizer.h"
#include "surface/cli/command.h"
#include "surface/cli/report_options.h"
#include "util/compression.h"
#include "util/error.h"
#include "util/screen.h"
#include "view/reports/catalog.h"

namespace mtrace::cli {
namespace {

constexpr char kResolveHelp[] = R"(
Names the frames of reports: function, source file and line, and the functions that the compiler
inlined there. Demangles C++ and Rust names. Replaces a report completely or not at all. A report
that is resolved already can be resolved again, to gain names that have become available.

memlog opens the file of each module and compares its build-id with the one in the report. If the
file has changed since, its frames keep (module+offset) and a note says so. Debug information may be
in the file itself or in a separate file: in the directories given by --symbols, beside the module,
in its .debug directory, or below /usr/lib/debug; found by build-id, by debuglink, or in
.gnu_debugdata. memlog asks debuginfod servers only if DEBUGINFOD_URLS names some, and gives up when
one is silent for DEBUGINFOD_TIMEOUT seconds (default 10).

Code that a runtime compiled is named from /tmp/perf-PID.map or the process's jit-PID.dump, if the
report was taken on this machine since it booted.
)";

constexpr size_t kBatch = 8 << 20;  // bytes of reports that are held at once

// Resolves files a batch at a time, so that a module which many of them name is opened once.
class Resolving {
 public:
  Resolving(const Arguments& arguments, const Streams& streams)
      : arguments_(arguments), streams_(streams), resolver_(search_path(arguments)) {}

  // `left`: it may be a report that a process left to its ancestors; any other stays as it is.
  void add(const std::string& file, bool left) {
    attempt(left, [&] {
      Report report = {file, util::read_text(file), {}, left};
      const std::string& path = report.before.path;
      report.memlog = profile::read(path == "-" ? "<stdin>" : path, report.before.text);
      if (left && (report.memlog.header.resolved != profile::Resolved::kNo ||
                   report.memlog.header.trigger != "exit")) {
        return;
      }
      resolver_.expect(report.memlog);
      bytes_ += report.before.text.size();
      batch_.push_back(std::move(report));
    });
    if (bytes_ >= kBatch) flush();
  }

  void flush() {
    for (Report& report : batch_) {
      attempt(report.left, [&] { resolve(report); });
    }
    batch_.clear();
    bytes_ = 0;
  }

  int status() const { return status_; }

 private:
  struct Report {
    std::string file;
    util::Text before;
    profile::Memlog memlog;
    bool left;
  };

  void resolve(Report& report) {
    resolver_.resolve(report.memlog);
    const std::string after = profile::write(report.memlog);
    const util::Text& before = report.before;
    const bool compress = arguments_.has("--compress") || (arguments_.has("--compress-large") &&
                                                           after.size() > profile::kLargeReport);
    const std::string output = arguments_.value("--output", before.path);
    if (output == "-") {
      write(after, compress);
    } else if (output != before.path) {
      profile::write_report(output, after, compress || profile::is_compressed_name(output));
    } else {
      profile::replace_report(before, after, compress && !report.memlog.entries.empty());
    }
  }

  void write(const std::string& text, bool compress) const {
    if (!compress) return print(streams_, text);
    util::compress(text, [&](std::string_view piece) { print(streams_, std::string(piece)); });
  }

  // Nobody has named those that were left: what is wrong with them is not said.
  template <typename Work>
  void attempt(bool left, Work&& work) {
    const bool quiet = left || arguments_.has("--quiet");
    const auto failed = [&](int how) { status_ = left ? status_ : std::max(status_, how); };
    try {
      work();
    } catch (const util::FormatError& error) {
      if (!quiet) std::fprintf(streams_.err, "%s\n", error.what());
      failed(kUnusable);
    } catch (const std::exception& error) {
      if (!quiet) complain(streams_, error.what());
      failed(kFailed);
    }
  }

  const Arguments& arguments_;
  const Streams& streams_;
  symbols::Symbolizer resolver_;
  std::vector<Report> batch_;
  size_t bytes_ = 0;
  int status_ = kGood;
};

int run_resolve(const Arguments& arguments, const Streams& streams) {
  const std::vector<std::string>& files = arguments.operands();
  if (files.empty()) throw UsageError("resolve: no file given");
  const bool tree = arguments.has("--tree");
  if (arguments.has("--output") && (files.size() != 1 || tree)) {
    throw UsageError("resolve: --output takes exactly one file");
  }
  Resolving resolving(arguments, streams);
  util::Progress progress(files.size());
  for (const std::string& file : files) {
    progress.step();
    resolving.add(file, false);
  }
  // First: whoever started this may not wait for the others.
  resolving.flush();
  if (tree) {
    for (const std::string& file : reports::reports_since(files.back())) resolving.add(file, true);
    resolving.flush();
  }
  return resolving.status();
}

}  // namespace

const Command& resolve_command() {
  static const Command command = {
      {"resolve",
       "add functions, lines and inlined functions to reports",
       "[--sysroot DIR] [--symbols DIR]... [--tree] [--compress] FILE...\n[OPTION]... -o FILE|- "
       "FILE",
       kResolveHelp,
       {kSysrootOption,
        kSymbolsOption,
        {"--output", "-o", "FILE",
         "Write to FILE instead of replacing the report; -: standard output."},
        {"--tree", "", "",
         R"(Also resolve unnamed reports of other processes in the directory of the last FILE: those
         written when a process ended, since the process of the last FILE started. See
         MTRACE_NAME_AFTER_MS.)"},
        {"--compress", "", "",
         R"(Compress each FILE that has entries with zstd, and rename it to FILE.zst. Every
         command reads such reports. A report that is compressed stays so without this option.
         With -o: compress what is written, as if the name of the file ended in .zst.)"},
        {"--compress-large", "", "", "The same, but only for a report of more than 1 MiB."},
        {"--quiet", "-q", "", "Print nothing; the exit status tells."}},
       R"(0: done, even if some frames have no name; 1: a file cannot be read or replaced; 2: a file
       is not a valid memlog (it stays as it is), or the command line is wrong.)",
       R"(  memlog resolve app-4711-2.memlog
  memlog resolve --sysroot /srv/image --symbols ./debug -o - app-4711-2.memlog
  memlog resolve --compress app-4711-*.memlog
)"},
      run_resolve};
  return command;
}

}  // namespace mtrace::cli
