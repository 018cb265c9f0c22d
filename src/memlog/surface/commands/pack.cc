// memlog pack: data and what names it, in one file for another machine.
#include <absl/cleanup/cleanup.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/event_log.h"
#include "format/ledger.h"
#include "format/memlog.h"
#include "format/timeline.h"
#include "model/events/event_log.h"
#include "model/profile/line.h"
#include "model/profile/reader.h"
#include "model/profile/writer.h"
#include "model/symbols/module_symbols.h"
#include "model/symbols/symbolizer.h"
#include "process/inspect/ledgers.h"
#include "surface/cli/command.h"
#include "surface/cli/report_options.h"
#include "util/compression.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"
#include "view/reports/catalog.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kPackHelp[] = R"(
Puts reports, event logs, timelines and ledgers into one file, with all that their names need. On
another machine tar makes a directory of it, in which every command shows the same names as here,
without the programs and their libraries. FILE may be a directory: all such files in it. Without
FILE: those of the directory of MTRACE_OUTPUT, else of the current one.

Reports are packed with their names, as memlog resolve writes them. Event logs and ledgers stay as
they are; for each module in their stacks the archive has a copy of its file, and of its separate
debug file, that has symbol tables and debugging information, but no code and no data. --binaries
packs these files whole, for a debugger, and also those in reports.

tar writes the archive, compressed as its name says: app.tar.zst, app.tar.xz, app.tar.gz, app.tar.
The directory in it is called app. Its directory symbols has the symbols by build-id, as
.build-id/xx/yyyy, with .debug at the end for a separate debug file. Commands look there for names if
it belongs to you or to root.
)";

enum class DataKind : uint8_t { kReport, kTimeline, kEvents, kLedger };

struct DataFile {
  std::string path;
  DataKind kind;
};

// By its first bytes. `path` becomes that of a report which was compressed meanwhile.
std::optional<DataKind> kind_of(std::string& path) {
  char head[32] = {};
  util::Input input(path);
  path = input.path();
  size_t got = 0;
  try {
    for (size_t more = 1; more != 0 && got < sizeof head; got += more) {
      more = input.read(head + got, sizeof head - got);
    }
  } catch (const util::DamagedCompression&) {
    got = 0;
  }
  const std::string_view text(head, got);
  uint64_t magic = 0;
  std::memcpy(&magic, head, sizeof magic);
  if (profile::is_first_line(text.substr(0, text.find('\n')))) return DataKind::kReport;
  if (text.starts_with(format::kTimelineMagic)) return DataKind::kTimeline;
  if (text.starts_with(format::kEventHeaderMark)) return DataKind::kEvents;
  if (magic == format::kLedgerMagic) return DataKind::kLedger;
  return std::nullopt;
}

// Older files of an event log have a name behind it: app-4711.events.old1.
bool has_data_name(std::string_view name) {
  return util::is_report_name(name) || name.ends_with(format::kTimelineSuffix) ||
         name.ends_with(format::kLedgerSuffix) || name.ends_with(format::kEventsSuffix) ||
         name.find(std::string(format::kEventsSuffix) + ".old") != name.npos;
}

// The files that the operands name, and those in directories that they name.
std::vector<DataFile> data_files(const Arguments& arguments) {
  std::vector<std::string> paths = arguments.operands();
  if (paths.empty()) paths.push_back(reports::report_directory());
  std::vector<DataFile> files;
  refuse_standard_input("pack", paths);
  for (std::string& path : paths) {
    if (!fs::is_directory(path)) {
      const auto kind = kind_of(path);
      if (!kind) {
        throw UsageError(fmt::format("pack: {} is no memlog, event log, timeline or ledger",
                                     util::escaped(path, "")));
      }
      files.push_back({path, *kind});
      continue;
    }
    std::vector<DataFile> found;
    for (const auto& entry : fs::directory_iterator(path)) {
      if (!has_data_name(entry.path().filename().native()) || !entry.is_regular_file()) continue;
      std::string name = entry.path();
      if (const auto kind = kind_of(name)) found.push_back({name, *kind});
    }
    std::sort(found.begin(), found.end(),
              [](const DataFile& a, const DataFile& b) { return a.path < b.path; });
    files.insert(files.end(), found.begin(), found.end());
    if (!found.empty()) continue;
    throw UsageError(fmt::format("pack: no memlog, event log, timeline or ledger in {}",
                                 util::escaped(path, "")));
  }
  std::set<std::string> names;
  for (const DataFile& file : files) {
    if (names.insert(util::base_name(file.path)).second) continue;
    throw UsageError(fmt::format("pack: two files are called {}: their directories would be lost",
                                 util::escaped(util::base_name(file.path), "")));
  }
  return files;
}

// Fills a directory with what is packed: data as links to it, unless it changes.
class Packing {
 public:
  Packing(const Arguments& arguments, const Streams& streams, std::string directory)
      : streams_(streams),
        where_(search_path(arguments)),
        binaries_(arguments.has("--binaries")),
        resolver_(where_),
        directory_(std::move(directory)) {}

  void add(const DataFile& file) {
    const std::string packed = directory_ + '/' + util::base_name(file.path);
    try {
      if (file.kind == DataKind::kLedger && changes(file.path)) return;
      learn(file, packed);
    } catch (const std::runtime_error& error) {
      complain(streams_, fmt::format("{}; packed as it is", error.what()));
      status_ = kUnusable;
    }
    ++counts_[static_cast<size_t>(file.kind)];
    if (!fs::exists(packed)) fs::create_symlink(fs::absolute(file.path), packed);
  }

  void add_symbols() {
    for (const auto& [path, build_id] : modules_) {
      if (symbols::copy_symbols(where_, path, build_id, binaries_,
                                directory_ + '/' + kPackedSymbols)) {
        ++modules_packed_;
        continue;
      }
      complain(streams_, fmt::format("no file of this build of {} is here: its frames have only "
                                     "the names that the data has",
                                     util::escaped(path, "")));
    }
  }

  // "1 report, 2 event logs; symbols of 3 modules".
  std::string summary() const {
    constexpr std::array<const char*, 4> kNames = {"report", "timeline", "event log", "ledger"};
    std::string text;
    for (size_t i = 0; i < kNames.size(); ++i) {
      if (counts_[i] == 0) continue;
      text += (text.empty() ? "" : ", ") + text::count_text(counts_[i], kNames[i]);
    }
    return fmt::format("{}; {} of {}", text, binaries_ ? "files" : "symbols",
                       text::count_text(modules_packed_, "module"));
  }
  int status() const { return status_; }

 private:
  // Complains of a ledger whose process runs.
  bool changes(const std::string& path) {
    const pid_t pid = process::process_of(ledger::LedgerFile(path));
    if (pid == 0) return false;
    complain(streams_, fmt::format("{} is left out: process {} still changes it; memlog recover {} "
                                   "makes a report that can be packed",
                                   util::escaped(path, ""), pid, util::shell_word(path)));
    status_ = std::max<int>(status_, kFailed);
    return true;
  }

  // Collects the modules of the file's stacks. Writes a report with names to `packed`.
  void learn(const DataFile& file, const std::string& packed) {
    switch (file.kind) {
      case DataKind::kTimeline:
        break;
      case DataKind::kReport:
        return add_report(file.path, packed);
      case DataKind::kEvents: {
        events::EventLog log(file.path);
        while (log.skip_chunk()) {
        }
        for (uint32_t i = 1; i <= log.stack_count(); ++i) {
          add_modules(log.stack(i).frames, log.modules());
        }
        break;
      }
      case DataKind::kLedger: {
        const ledger::LedgerFile ledger(file.path);
        const profile::Memlog memlog = process::recovered_memlog(ledger, "");
        for (const auto& entry : memlog.entries) add_modules(entry.frames, memlog.modules);
        if (!ledger::each_block(ledger, [](const ledger::LedgerBlock&) {})) {
          throw ledger::LedgerError(util::escaped(file.path, "") + ": a part of it is missing");
        }
        break;
      }
    }
  }

  void add_report(const std::string& path, const std::string& packed) {
    const util::Text before = util::read_text(path);
    profile::Memlog memlog = profile::read(path, before.text);
    if (symbols::Symbolizer::is_needed(memlog)) resolver_.resolve(memlog);
    if (binaries_) {
      for (const auto& entry : memlog.entries) add_modules(entry.frames, memlog.modules);
    }
    profile::write_report(packed, profile::write(memlog), before.compressed);
    fs::last_write_time(packed, fs::last_write_time(path));
  }

  void add_modules(const profile::Frames& frames, const std::vector<profile::Module>& modules) {
    for (const profile::Frame& frame : frames) {
      if (frame.place != profile::Place::kModule) continue;
      const profile::Module& module = modules[frame.module];
      if (!module.python) modules_.emplace(module.path, module.build_id);
    }
  }

  const Streams& streams_;
  symbols::SearchPath where_;
  bool binaries_;
  symbols::Symbolizer resolver_;
  std::string directory_;
  std::set<std::pair<std::string, std::string>> modules_;  // path and build-id
  std::array<size_t, 4> counts_ = {};                      // by DataKind
  size_t modules_packed_ = 0;
  int status_ = kGood;
};

// Packs the directory `name` in `parent`. Throws std::runtime_error; there is no archive then.
void run_tar(const std::string& parent, const std::string& name, const std::string& archive) {
  const bool piped = archive == "-";
  // Owned by root, so that commands that root runs trust the symbols.
  std::vector<std::string> words = {
      "tar",           "--create", "--format=pax", piped ? "--zstd" : "--auto-compress",
      "--dereference", "--sparse", "--owner=0",    "--group=0",
      "--force-local", "--file",   archive,        "--directory",
      parent,          name};
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t pid = 0;
  if (const int error = ::posix_spawnp(&pid, "tar", nullptr, nullptr, pointers.data(), environ)) {
    throw util::FileError("cannot run tar", error);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  // 1: a file changed meanwhile, such as the event log of a process that runs.
  if (WIFEXITED(status) && WEXITSTATUS(status) <= 1) return;
  if (!piped) ::unlink(archive.c_str());
  throw std::runtime_error(fmt::format("tar could not write {}", util::escaped(archive, "")));
}

int run_pack(const Arguments& arguments, const Streams& streams) {
  const std::string archive = arguments.value("--output");
  if (archive.empty()) throw UsageError("pack: give the archive with --output FILE");
  const std::vector<DataFile> files = data_files(arguments);
  std::string room = fs::temp_directory_path() / "memlog-pack-XXXXXX";
  if (::mkdtemp(room.data()) == nullptr) throw util::FileError("cannot make " + room, errno);
  const absl::Cleanup remove = [&room] {
    std::error_code ignored;
    fs::remove_all(room, ignored);
  };
  std::string name = util::base_name(archive);
  name = archive == "-" ? "packed" : name.substr(0, name.find(".tar"));
  if (name.empty()) throw UsageError("pack: give the archive a name before .tar");
  fs::create_directory(room + '/' + name);
  Packing packing(arguments, streams, room + '/' + name);
  for (const DataFile& file : files) packing.add(file);
  packing.add_symbols();
  std::fflush(streams.out);
  run_tar(room, name, archive);
  if (archive != "-") {
    print(streams, fmt::format("{}: {}\n", util::escaped(archive, ""), packing.summary()));
  }
  return packing.status();
}

}  // namespace

const Command& pack_command() {
  static const Command command = {
      {"pack",
       "pack reports and their symbols into one file, for another machine",
       "[OPTION]... --output ARCHIVE [FILE|DIR]...",
       kPackHelp,
       {{"--output", "-o", "ARCHIVE",
         "The file to write; -: standard output, compressed with zstd."},
        {"--binaries", "", "", "Pack programs and libraries whole, with their code."},
        kSysrootOption,
        kSymbolsOption},
       R"(0: done, even if some modules have no file here; 1: a file cannot be read or written; 2: a
       damaged file is packed as it is, or the command line is wrong.)",
       R"(  memlog pack -o app.tar.zst reports
  tar -xf app.tar.zst && memlog show app
  memlog pack -o - app-4711.events app-4711-1.memlog | ssh office 'cat >app.tar.zst'
)"},
      run_pack};
  return command;
}

}  // namespace mtrace::cli
