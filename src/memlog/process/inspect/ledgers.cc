#include "process/inspect/ledgers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "format/memlog.h"
#include "model/profile/report_file.h"
#include "model/profile/writer.h"
#include "model/symbols/symbolizer.h"
#include "process/inspect/clock.h"
#include "process/inspect/proc_files.h"
#include "process/inspect/traced.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::process {
namespace {

constexpr int kMostNames = 10000;

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Adds the memory use, which only the kernel knows.
void add_memory_use(pid_t pid, ledger::LedgerOccasion& occasion) {
  const std::string status = read_proc(proc_path(pid, "status")).value_or("");
  occasion.rss = status_bytes(status, "VmRSS");
  occasion.rss_max = status_bytes(status, "VmHWM");
  occasion.virtual_size = status_bytes(status, "VmSize");
}

constexpr char kNoLedger[] =
    "has no ledger: start it with memlog run, or with MTRACE_LEDGER=/dev/shm/";

}  // namespace

std::unique_ptr<ledger::LedgerFile> ledger_of(pid_t pid, std::string& why) {
  const auto files = mapped_files(pid);
  if (!files) {
    why = fmt::format("cannot be inspected: {}", std::strerror(errno));
    return nullptr;
  }
  why = kNoLedger;
  for (const Mapping& mapping : *files) {
    constexpr std::string_view kDeleted = " (deleted)";
    if (!mapping.shared) continue;
    const bool deleted = mapping.path.ends_with(kDeleted);
    // MTRACE_LEDGER can give a ledger any name. So every file that is mapped shared and begins with
    // a ledger's header is a ledger.
    const int file = open_mapped(pid, mapping);
    if (file < 0) {
      if (util::base_name(mapping.path).find(format::kLedgerSuffix) != std::string::npos) {
        why = fmt::format("has a ledger that cannot be opened, {}: {}",
                          util::escaped(mapping.path, ""),
                          deleted ? "the file was deleted" : std::strerror(errno));
      }
      continue;
    }
    uint64_t magic = 0;
    struct stat state = {};
    if (::fstat(file, &state) != 0 || !S_ISREG(state.st_mode) ||
        ::pread(file, &magic, sizeof magic, 0) != sizeof magic || magic != format::kLedgerMagic) {
      ::close(file);
      continue;
    }
    auto ledger = std::make_unique<ledger::LedgerFile>(file, mapping.path);
    if (ledger->header().pid != pid_in_namespace(pid)) {
      // Until its first operation, a fork's child has its parent's ledger mapped.
      why = "is a forked child that has not allocated yet, and so has no ledger of its own";
    } else if (ledger->header().state == format::LedgerState::kDetached) {
      why = fmt::format("is not traced any more; memlog attach {}", pid);
    } else {
      return ledger;
    }
  }
  return nullptr;
}

pid_t process_of(const ledger::LedgerFile& file) {
  const auto pid = static_cast<pid_t>(file.header().pid);
  struct stat own = {};
  const auto files = mapped_files(pid);
  if (!files || ::fstat(file.descriptor(), &own) != 0) return 0;
  for (const Mapping& mapping : *files) {
    const int mapped = open_mapped(pid, mapping);
    if (mapped < 0) continue;
    struct stat other = {};
    const bool same = ::fstat(mapped, &other) == 0 && same_file(own, other);
    ::close(mapped);
    if (same) return pid;
  }
  return 0;
}

Target::Target(const std::string& name, std::string_view command,
               const std::function<void(pid_t)>& attach)
    : pid_([&] {
        const std::vector<pid_t> pids = find_processes(name);
        if (pids.size() == 1) return pids[0];
        throw util::NotFound(pids.empty() ? no_process_text(name)
                                          : fmt::format("{} processes are called {}: give a pid",
                                                        pids.size(), name));
      }()),
      process_(pid_) {
  std::string why = std::strerror(errno);
  if (process_.valid()) {
    ledger_ = ledger_of(pid_, why);
    std::string not_traced;
    const auto traced = TracedProcess::find(pid_, true, not_traced);
    if (attach && ledger_ == nullptr && !(traced && traced->counts())) {
      attach(pid_);
      ledger_ = ledger_of(pid_, why);
    } else if (ledger_ == nullptr && !traced) {
      why = not_traced;
    } else if (ledger_ == nullptr && traced->is_detached()) {
      // Its ledger stays mapped without a name. Only root can open that.
      why = traced->obstacle();
    } else if (ledger_ == nullptr && why == kNoLedger) {
      why += fmt::format("; memlog report {} needs none", pid_);
    }
  }
  if (ledger_ != nullptr) return;
  if (!command.empty()) why = with_attach_option(why, pid_, command);
  throw util::NotFound(fmt::format("{} ({}) {}", pid_, util::escaped(process_name(pid_), ""), why));
}

profile::Memlog memlog_of(const ledger::LedgerFile& file, const ledger::LedgerState& state,
                          ledger::LedgerOccasion occasion) {
  if (const pid_t pid = process_of(file)) add_memory_use(pid, occasion);
  return ledger::ledger_memlog(file, state, occasion);
}

profile::Memlog recovered_memlog(const ledger::LedgerFile& file, const std::string& label) {
  const pid_t alive = process_of(file);
  const ledger::LedgerState state = ledger::read_ledger(file);
  const ledger::LastSign last = ledger::last_sign_of_life(file, state);
  ledger::LedgerOccasion occasion = {.trigger = "recovered",
                                     .taken = alive != 0 ? real_time_now() : last.when,
                                     .label = label,
                                     .notes = {}};
  if (alive == 0 && last.of_contents) {
    occasion.notes.emplace_back(
        "recovered from a copy of the ledger: the process may have lived longer than told");
  }
  if (alive != 0) occasion.notes.push_back(fmt::format("process {} was still running", alive));
  if (file.header().state == format::LedgerState::kEnded) {
    occasion.notes.emplace_back("the process had exited normally");
  }
  if (file.header().state == format::LedgerState::kUnreported) {
    occasion.notes.emplace_back("the process had exited normally, but could not write its report");
  }
  return memlog_of(file, state, occasion);
}

std::string write_snapshot(profile::Memlog& memlog, const std::string& directory,
                           const std::string& what, bool compress) {
  const std::string stem =
      fmt::format("{}{}{}-{}-{}", directory == "." ? "" : directory,
                  directory == "." || directory.ends_with('/') ? "" : "/",
                  util::base_name(memlog.header.program), memlog.header.pid, what);
  std::string path;
  int file = -1;
  for (int number = 1; file < 0 && number <= kMostNames; ++number) {
    path = fmt::format("{}{}{}{}", stem, number == 1 ? "" : fmt::format(".{}", number),
                       format::kSuffix, compress ? format::kCompressedSuffix : "");
    file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0 && errno != EEXIST) throw util::FileError("cannot make " + path, errno);
  }
  if (file < 0) throw util::FileError("cannot make " + path, EEXIST);
  ::close(file);
  // The name is reserved with an empty file, which is replaced in one step.
  try {
    profile::write_report(path, profile::write(memlog), compress);
  } catch (...) {
    ::unlink(path.c_str());
    throw;
  }
  return path;
}

std::string write_snapshot_now(const ledger::LedgerFile& file, const std::string& label) {
  profile::Memlog memlog =
      memlog_of(file, ledger::read_ledger(file),
                {.trigger = "snapshot", .taken = real_time_now(), .label = label, .notes = {}});
  symbols::Symbolizer({}).resolve(memlog);
  return write_snapshot(memlog, ".", "snapshot");
}

}  // namespace mtrace::process
