#include "process/inspect/traced.h"

#include <unistd.h>

#include "format/ledger.h"
#include "format/memlog.h"
#include "format/python.h"
#include "model/ledger/ledger_state.h"
#include "model/symbols/elf_file.h"
#include "process/inspect/mappings.h"
#include "process/inspect/process.h"
#include "process/inspect/system_calls.h"
#include "process/inspect/target_objects.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::process {
namespace {

using format::Handler;
using format::LedgerHeader;
using format::Mode;
using format::StatusBlock;

constexpr char kLibrary[] = "libmtrace.so";

std::optional<uint64_t> block_address(pid_t pid, const Mapping& mapping) {
  const int file = open_mapped(pid, mapping);
  if (file < 0) return std::nullopt;
  uint64_t size = 0;
  const auto address =
      symbols::exported_address(file, format::kStatusSymbol, mapping.begin, mapping.offset, &size);
  ::close(file);
  if (size < sizeof(StatusBlock)) return std::nullopt;
  return address;
}

std::string why_not_mapped(pid_t pid, const std::vector<Mapping>& files) {
  if (files.empty()) return "is not traced: it has ended, or is part of the kernel";
  const bool loader = std::any_of(files.begin(), files.end(), [](const Mapping& m) {
    return util::base_name(m.path).starts_with("ld-") ||
           util::base_name(m.path).starts_with("ld.so");
  });
  const std::string preload = start_environment(pid, "LD_PRELOAD").value_or("");
  const std::string nothing = fmt::format("{} is not mapped", kLibrary);
  const auto obstacle = symbols::preload_obstacle(fmt::format("/proc/{}/exe", pid));
  if (obstacle.foreign) {
    return fmt::format("is not traced: {} (the program {})", nothing, obstacle.why);
  }
  if (!loader && !obstacle.is_musl) {
    return fmt::format(
        "is not traced: {} (the program is linked statically, which LD_PRELOAD "
        "does not reach)",
        nothing);
  }
  if (preload.find(kLibrary) != std::string::npos) {
    return fmt::format(
        "is not traced: {}, although LD_PRELOAD names it (a file that was not "
        "found, a set-uid program, another architecture)",
        nothing);
  }
  if (obstacle.is_musl) {
    return fmt::format(
        "is not traced: {} (the program is linked with musl, not with glibc: start it "
        "by memlog run)",
        nothing);
  }
  return fmt::format("is not traced; memlog attach {}", pid);
}

}  // namespace

std::string with_attach_option(const std::string& why, pid_t pid, std::string_view command) {
  if (!why.ends_with(fmt::format("; memlog attach {}", pid))) return why;
  return fmt::format("{}, or memlog {} --attach {}", why, command, pid);
}

std::optional<TracedProcess> TracedProcess::find(pid_t pid, bool thorough, std::string& why) {
  const auto files = file_mappings(pid);
  if (!files) {
    why = errno == EACCES || errno == EPERM
              ? why_forbidden(pid)
              : fmt::format("cannot be inspected: {}", std::strerror(errno));
    return std::nullopt;
  }
  TracedProcess process;
  process.pid_ = pid;
  process.own_pid_ = pid_in_namespace(pid);
  process.name_ = process_name(pid);
  why.clear();
  for (const bool by_name : {true, false}) {
    if (!by_name && !thorough) break;
    for (const Mapping& mapping : *files) {
      // Only offset 0: the library may also be mapped as data, and its first segment follows each
      // such beginning.
      if (mapping.offset != 0) continue;
      if (by_name != util::base_name(mapping.path).starts_with(kLibrary)) continue;
      const auto address = block_address(pid, mapping);
      if (!address) continue;
      process.address_ = *address;
      if (process.read()) return process;
      why = errno == 0 ? fmt::format("has {} mapped, but of another version than this memlog",
                                     util::base_name(mapping.path))
                       : fmt::format("has {} mapped, but cannot be read: it {}",
                                     util::base_name(mapping.path),
                                     errno == EPERM ? why_forbidden(pid) : std::strerror(errno));
    }
  }
  if (why.empty()) why = why_not_mapped(pid, *files);
  return std::nullopt;
}

TracedProcess::TracedProcess() : header_(std::make_unique<format::LedgerHeader>()) {}

bool TracedProcess::refresh() { return read(); }

bool TracedProcess::read() {
  constexpr int kMostTries = 10;  // a fork's child may unmap its parent's header meanwhile
  bool good = false;
  for (int i = 0; !good && i < kMostTries; ++i) {
    if (!read_memory(pid_, address_, &block_, sizeof block_)) return false;
    // Another program may have other data there.
    const bool is_block =
        block_.magic == format::kStatusMagic && block_.size >= sizeof(StatusBlock);
    if (!is_block) return errno = 0, false;
    good = read_memory(pid_, block_.header, &header_address_, sizeof header_address_) &&
           read_memory(pid_, header_address_, header_.get(), sizeof *header_);
  }
  if (!good) return false;
  if (header_->version != format::kLedgerVersion) return errno = 0, false;
  // Again, because the number of failures announces the text of the last one.
  return read_memory(pid_, address_, &block_, sizeof block_);
}

std::string TracedProcess::obstacle() const {
  const StatusBlock& block = block_;
  const std::string reason = util::array_text(block.reason);
  const std::string because = reason.empty() ? "" : ": " + reason;
  if (block.mode == Mode::kStarting) return "is only starting: ask again";
  if (block.mode == Mode::kDormant) {
    if (reason.find("not covered") != std::string::npos) return "is not traced" + because;
    return fmt::format("is not followed{} (MTRACE_FOLLOW)", because);
  }
  if (is_detached()) return fmt::format("is not traced any more; memlog attach {}", pid_);
  if (block.mode == Mode::kQuiet) return fmt::format("is not traced any more{}", because);
  if (block.mode != Mode::kActive)
    return "is in a state that this memlog does not know: use the version of its libmtrace.so";

  constexpr const char* kOther = "start it with MTRACE_SIGNAL naming another signal";
  const std::string signal = signal_name(block.signal);
  if (block.handler == Handler::kNone || block.signal <= 0 || block.signal > 64) {
    return fmt::format("takes no signal (MTRACE_SIGNAL=none): {}", kOther);
  }
  if (block.handler == Handler::kProgram) {
    return fmt::format("uses SIG{} itself: {}", signal, kOther);
  }
  if (block.handler == Handler::kIgnored) return fmt::format("ignores SIG{}: {}", signal, kOther);
  if (block.handler == Handler::kForbidden) {
    return "has added a system call filter (seccomp) that may kill it when a signal handler "
           "returns, or hands over its system calls (syscall user dispatch)";
  }
  if (block.handler != Handler::kOurs) return fmt::format("swallows SIG{}", signal);

  const auto masks = signal_masks(pid_);
  if (!masks) return "has ended";
  const uint64_t bit = uint64_t{1} << (block.signal - 1);
  if ((masks->caught & bit) == 0) {
    return fmt::format("does not catch SIG{}, which would end it: {}", signal, kOther);
  }
  if ((masks->blocked & bit) != 0) {
    return fmt::format("blocks SIG{} in every thread: {}", signal, kOther);
  }
  return {};
}

// Returns the library's counters by thread, at least those of one; nothing when they cannot be
// read.
std::vector<format::LedgerThread> TracedProcess::threads() const {
  uint32_t used = 0;
  if (header_->roots.threads == 0 || !counts() ||
      !read_memory(pid_, header_->roots.threads_used, &used, sizeof used)) {
    return {};
  }
  std::vector<format::LedgerThread> threads(std::min(used, format::kLedgerThreads - 1) + size_t{1});
  if (!read_memory(pid_, header_->roots.threads, threads.data(),
                   threads.size() * sizeof threads[0])) {
    return {};
  }
  return threads;
}

std::optional<uint64_t> TracedProcess::calls() const {
  const std::vector<format::LedgerThread> all = threads();
  if (all.empty()) return std::nullopt;
  uint64_t calls = 0;
  for (const format::LedgerThread& thread : all) {
    calls = std::accumulate(std::begin(thread.calls), std::end(thread.calls), calls);
  }
  return calls;
}

std::optional<uint64_t> TracedProcess::live_bytes() const {
  const std::vector<format::LedgerThread> all = threads();
  if (all.empty()) return std::nullopt;
  uint64_t live = 0;
  for (const format::LedgerThread& thread : all) live += thread.live_bytes;
  // Below zero while a block goes from one thread to another.
  return static_cast<int64_t>(live) > 0 ? live : 0;
}

std::string TracedProcess::python_gap() const {
  using format::PythonGap;
  const format::PythonCoverage& coverage = header_->python;
  if (!counts() || coverage.gap <= PythonGap::kBeingNoted) return "";
  const auto mappings = file_mappings(pid_);
  if (!mappings) return "";
  const auto object = std::find_if(mappings->begin(), mappings->end(), [&](const Mapping& one) {
    return coverage.loop >= one.begin && coverage.loop < one.end;
  });
  return ledger::python_gap_text(coverage, object == mappings->end() ? "" : object->path);
}

bool TracedProcess::is_detached() const {
  return block_.mode == Mode::kQuiet && util::array_text(block_.reason) == format::kDetachedReason;
}

bool TracedProcess::has_unknown_filter() const {
  return system_call_filters(pid_) > block_.filters;
}

namespace {

// Returns whether a status block is there; false with errno.
bool has_block(const TargetMemory& memory, uint64_t address) {
  uint64_t magic = 0;
  if (!memory.read(address, &magic, sizeof magic)) return false;
  if (magic != format::kStatusMagic) errno = ESRCH;
  return magic == format::kStatusMagic;
}

}  // namespace

bool TracedProcess::write_label(const std::string& label) const {
  if (is_child_without_report() && header_->path[0] != '\0') return true;
  const size_t size = std::min(label.size(), sizeof header_->label);
  const auto length = static_cast<uint32_t>(size);
  const TargetMemory memory(pid_, std::nothrow);
  // Write the length last: it announces the text.
  return has_block(memory, address_) &&
         memory.write(header_address_ + offsetof(LedgerHeader, label), label.data(), size) &&
         memory.write(header_address_ + offsetof(LedgerHeader, label_length), &length,
                      sizeof length);
}

bool TracedProcess::send_signal(const ProcessHandle& handle, std::string& why) {
  const TargetMemory memory(pid_, std::nothrow);
  const uint64_t signaller = address_ + offsetof(StatusBlock, signaller);
  const auto self = static_cast<uint32_t>(::getpid());
  const uint32_t nobody = 0;
  // First write, then read: a thread either sees this and waits, or is seen to leave.
  if (!has_block(memory, address_) || !memory.write(signaller, &self, sizeof self)) {
    why = fmt::format("cannot be written to: {}", std::strerror(errno));
    return false;
  }
  if (!memory.read(address_, &block_, sizeof block_) || is_leaving()) {
    why = "is executing another program (exec): try again";
  } else {
    why = obstacle();
  }
  if (why.empty() && !handle.send(block_.signal)) {
    why = fmt::format("cannot be signalled: {}", std::strerror(errno));
  }
  memory.write(signaller, &nobody, sizeof nobody);
  return why.empty();
}

}  // namespace mtrace::process
