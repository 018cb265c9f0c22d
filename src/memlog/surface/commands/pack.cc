// memlog pack: data and what names it, in one file for another machine.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "model/events/event_log.h"
#include "model/profile/reader.h"
#include "model/profile/writer.h"
#include "model/symbols/symbol_files.h"
#include "model/symbols/symbolizer.h"
#include "process/inspect/ledgers.h"
#include "surface/cli/command.h"
#include "surface/cli/data_files.h"
#include "surface/cli/report_options.h"
#include "util/compression.h"
#include "util/error.h"
#include "util/input.h"
#include "util/tar.h"
#include "util/text.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

constexpr char kPackHelp[] = R"(
Puts reports, event logs, timelines and ledgers into one file, with all that their names need. On
another machine memlog unpack makes a directory of it, and every command shows the same names there
as here, without the programs and their libraries. FILE may be a directory: all such files in it.
Without FILE: those of the directory of MTRACE_OUTPUT, else of the current one.

Reports are packed with their names, as memlog resolve writes them. Event logs and ledgers stay as
they are; for each module in their stacks the archive has a copy of its file, and of its separate
debug file, that has symbol tables and debugging information, but no code and no data. --binaries
packs these files whole, for a debugger, and also those in reports.

The archive is tar's format compressed with zstd: tar --zstd -xf ARCHIVE unpacks it, too. Symbols are
in it by build-id, as symbols/.build-id/xx/yyyy, with .debug at the end for a separate debug file.
)";

class Packing {
 public:
  Packing(const Arguments& arguments, const Streams& streams)
      : streams_(streams),
        where_(search_path(arguments)),
        binaries_(arguments.has("--binaries")),
        resolver_(where_),
        output_(arguments, streams),
        compressor_([this](std::string_view bytes) { output_.write(std::string(bytes)); }),
        tar_([this](std::string_view bytes) { compressor_.write(bytes); }) {}

  void add(const DataFile& file) {
    const util::Descriptor open(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat state = {};
    if (open.get() < 0 || ::fstat(open.get(), &state) != 0) {
      throw util::FileError("cannot open " + file.path, errno);
    }
    const util::TarFile entry = {util::base_name(file.path), static_cast<uint64_t>(state.st_size),
                                 state.st_mtim};
    std::string named;
    try {
      if (file.kind == DataKind::kLedger && changes(file.path)) return;
      named = learn(file);
    } catch (const std::runtime_error& error) {
      complain(streams_, fmt::format("{}; packed as it is", error.what()));
      status_ = kUnusable;
    }
    ++counts_[static_cast<size_t>(file.kind)];
    if (named.empty()) return copy(entry, open.get(), 0);
    tar_.begin({entry.name, named.size(), entry.changed});
    tar_.write(named);
  }

  void add_symbols() {
    const std::unique_ptr<FILE, decltype(&std::fclose)> room(std::tmpfile(), std::fclose);
    if (room == nullptr) throw util::FileError("cannot make a temporary file", errno);
    const int file = ::fileno(room.get());
    std::set<std::string> packed;
    for (const auto& [path, build_id] : modules_) {
      const auto copies = symbols::copy_symbols(where_, path, build_id, binaries_, file);
      if (copies.empty()) {
        complain(streams_, fmt::format("no file of this build of {} is here: its frames have only "
                                       "the names that the data has",
                                       util::escaped(path, "")));
      }
      modules_packed_ += !copies.empty();
      uint64_t at = 0;
      for (const symbols::SymbolFile& copied : copies) {
        const util::TarFile entry = {kPackedSymbols + copied.name, copied.size, {}};
        if (packed.insert(copied.name).second) copy(entry, file, at);
        at += copied.size;
      }
    }
  }

  // Returns the exit status.
  int finish(const std::string& place) {
    tar_.finish();
    compressor_.finish();
    output_.finish();
    if (place == "-") return status_;
    constexpr std::array<const char*, 4> kNames = {"report", "timeline", "event log", "ledger"};
    std::string text;
    for (size_t i = 0; i < kNames.size(); ++i) {
      if (counts_[i] == 0) continue;
      text += (text.empty() ? "" : ", ") + text::count_text(counts_[i], kNames[i]);
    }
    print(streams_, fmt::format("{}: {}; {} of {}\n", util::escaped(place, ""), text,
                                binaries_ ? "files" : "symbols",
                                text::count_text(modules_packed_, "module")));
    return status_;
  }

 private:
  // Says so.
  bool changes(const std::string& path) {
    const pid_t pid = process::process_of(ledger::LedgerFile(path));
    if (pid == 0) return false;
    complain(streams_, fmt::format("{} is left out: process {} still changes it; memlog recover {} "
                                   "makes a report that can be packed",
                                   util::escaped(path, ""), pid, util::shell_word(path)));
    status_ = std::max<int>(status_, kFailed);
    return true;
  }

  // Returns what is to be packed in place of the file; empty: it is packed as it is.
  std::string learn(const DataFile& file) {
    switch (file.kind) {
      case DataKind::kTimeline:
        break;
      case DataKind::kReport:
        return named_report(file.path);
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
    return "";
  }

  std::string named_report(const std::string& path) {
    const util::Text before = util::read_text(path);
    profile::Memlog memlog = profile::read(path, before.text);
    if (symbols::Symbolizer::is_needed(memlog)) resolver_.resolve(memlog);
    if (binaries_) {
      for (const auto& entry : memlog.entries) add_modules(entry.frames, memlog.modules);
    }
    const std::string text = profile::write(memlog);
    if (!before.compressed) return text;
    std::string compressed;
    util::compress(text, [&](std::string_view piece) { compressed += piece; });
    return compressed;
  }

  void add_modules(const profile::Frames& frames, const std::vector<profile::Module>& modules) {
    for (const profile::Frame& frame : frames) {
      if (frame.place != profile::Place::kModule) continue;
      const profile::Module& module = modules[frame.module];
      if (!module.python) modules_.emplace(module.path, module.build_id);
    }
  }

  // Of a file that grows, as much as it had at the beginning.
  void copy(const util::TarFile& entry, int file, uint64_t from) {
    tar_.begin(entry);
    std::string buffer(1 << 18, '\0');
    for (uint64_t done = 0; done < entry.size;) {
      const size_t size = static_cast<size_t>(std::min<uint64_t>(buffer.size(), entry.size - done));
      const size_t got = util::read_at(file, from + done, buffer.data(), size);
      if (got == 0) throw util::FileError("cannot read " + entry.name, errno);
      tar_.write({buffer.data(), got});
      done += got;
    }
  }

  const Streams& streams_;
  symbols::SearchPath where_;
  bool binaries_;
  symbols::Symbolizer resolver_;
  Output output_;
  util::Compressor compressor_;
  util::TarWriter tar_;
  std::set<std::pair<std::string, std::string>> modules_;  // path and build-id
  std::array<size_t, 4> counts_ = {};                      // by DataKind
  size_t modules_packed_ = 0;
  int status_ = kGood;
};

int run_pack(const Arguments& arguments, const Streams& streams) {
  const std::string place = arguments.value("--output");
  if (place.empty()) throw UsageError("pack: give the archive with --output FILE");
  const std::vector<DataFile> files = data_files(arguments);
  Packing packing(arguments, streams);
  for (const DataFile& file : files) packing.add(file);
  packing.add_symbols();
  return packing.finish(place);
}

}  // namespace

const Command& pack_command() {
  static const Command command = {
      {"pack",
       "put data and what names it into one file, for another machine",
       "[OPTION]... --output ARCHIVE [FILE|DIR]...",
       kPackHelp,
       {{"--output", "-o", "ARCHIVE", "The file to write; -: standard output."},
        {"--binaries", "", "", "Pack programs and libraries whole, with their code."},
        kSysrootOption,
        kSymbolsOption},
       R"(0: done, even if some modules have no file here; 1: a file cannot be read or written; 2: a
       damaged file is packed as it is, or the command line is wrong.)",
       R"(  memlog pack -o app.tar.zst reports
  memlog pack -o - app-4711.events app-4711-1.memlog | ssh office 'cat >app.tar.zst'
)"},
      run_pack};
  return command;
}

}  // namespace mtrace::cli
