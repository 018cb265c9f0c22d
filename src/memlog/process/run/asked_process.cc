#include "process/run/asked_process.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/memlog.h"
#include "model/profile/reader.h"
#include "model/profile/writer.h"
#include "model/symbols/symbolizer.h"
#include "process/inspect/ledgers.h"
#include "process/inspect/process.h"
#include "process/ptrace/attach.h"
#include "process/ptrace/safe_point.h"
#include "process/run/launch.h"
#include "util/compression.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::process {

std::optional<AskedProcess> AskedProcess::find(pid_t pid, std::string& why) {
  AskedProcess process(pid);
  if (!process.handle_.valid()) {
    why = std::strerror(errno);
    return std::nullopt;
  }
  process.name_ = process_name(pid);
  process.traced_ = TracedProcess::find(pid, true, why);
  if (process.traced_ && util::array_text(process.traced_->header().path).empty()) return process;
  std::string no_ledger;
  try {
    process.ledger_ = ledger_of(pid, no_ledger);
  } catch (const std::exception&) {
    // The ledger is damaged, or still being created: not usable for a request.
  }
  if (!process.traced_ && process.ledger_ == nullptr) return std::nullopt;
  return process;
}

std::optional<AskedProcess> AskedProcess::find_settled(
    pid_t pid, std::chrono::steady_clock::time_point deadline, std::string& why) {
  for (;;) {
    auto process = find(pid, why);
    if (!process || !process->is_leaving()) return process;
    why = "is executing another program (exec): try again";
    const bool late = std::chrono::steady_clock::now() >= deadline;
    if (late || process->handle_.wait_end(5)) return std::nullopt;
  }
}

// Returns whether the process still maps its ledger. The file may have lost its name (the mapping
// then ends with " (deleted)"); or the process has become another program by a raw system call.
bool AskedProcess::maps_its_ledger() const {
  const auto files = mapped_files(pid_);
  return files && std::any_of(files->begin(), files->end(), [&](const Mapping& mapping) {
           return mapping.path.starts_with(ledger_->name());
         });
}

bool AskedProcess::refresh() {
  if (ledger_ != nullptr) {
    try {
      ledger_->refresh();
    } catch (const std::exception&) {
      return false;
    }
  }
  if (traced_) return traced_->refresh();
  return ledger_->header().state != format::LedgerState::kReplaced || maps_its_ledger();
}

bool AskedProcess::is_leaving() const {
  return traced_ ? traced_->is_leaving()
                 : ledger_->header().state == format::LedgerState::kReplaced;
}

uint32_t AskedProcess::seq() const { return traced_ ? traced_->seq() : ledger_->header().seq; }

uint32_t AskedProcess::named_seq() const { return header().named_seq; }

uint32_t AskedProcess::failures() const { return is_silent_child() ? 0 : header().failures; }

uint32_t AskedProcess::withheld() const {
  return traced_ && !is_silent_child() ? traced_->block().withheld : 0;
}

bool AskedProcess::has_unknown_filter() const { return traced_ && traced_->has_unknown_filter(); }

std::string AskedProcess::path() const { return util::array_text(header().report_path); }

std::string AskedProcess::failure() const {
  if (!traced_) return "its next report says why";
  const format::StatusBlock& block = traced_->block();
  const std::string text = util::array_text(block.error);
  const std::string reason = block.error_number > 0 ? std::strerror(block.error_number) : "";
  return text + (text.empty() || reason.empty() ? "" : ": ") + reason;
}

bool AskedProcess::label_waits() const { return !is_silent_child() && header().label_length != 0; }

AskTurn::AskTurn(pid_t pid, std::chrono::steady_clock::time_point deadline)
    : directory_(::open(fmt::format("/proc/{}", pid).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  for (int pause = 1;; pause = std::min(pause * 2, 20)) {
    held_ = directory_ < 0 || ::flock(directory_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (held_ || std::chrono::steady_clock::now() >= deadline) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
}

AskTurn::~AskTurn() {
  if (directory_ >= 0) ::close(directory_);
}

namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kLongestBorrow{5000};  // shorter, because the signal is left as another way
constexpr Milliseconds kLongestStop{1000};

// Returns the process that traces a thread of `pid`; 0: there is none.
pid_t tracer_of(pid_t pid) {
  for (const pid_t tid : all_tasks(pid)) {
    const pid_t tracer = std::atoi(task_status(pid, tid, "TracerPid").c_str());
    if (tracer != 0) return tracer;
  }
  return 0;
}

// `why` completes a sentence that begins with "it".
bool send_signal(AskedProcess& process, Traced spared, std::string& why) {
  TracedProcess& traced = *process.traced();
  why = traced.obstacle();
  if (!why.empty()) return false;
  const int signal = traced.block().signal;
  const auto is_same = [&] {
    return traced.refresh() && traced.obstacle().empty() && !traced.has_unknown_filter();
  };
  try {
    send_held(process.pid(), signal, is_same, kLongestStop);
    return true;
  } catch (const SignalKills& error) {
    why = error.what();
    return false;
  } catch (const AttachError& error) {
    why = error.what();
  }
  if (!is_same()) return false;
  const pid_t tracer = spared == Traced::kSpared ? tracer_of(process.pid()) : 0;
  if (tracer != 0) {
    why = fmt::format(
        "is traced by {} ({}), which would get the signal first: detach that, or use "
        "--signal",
        tracer, process_name(tracer));
    return false;
  }
  return traced.send_signal(process.handle(), why);
}

}  // namespace

bool report_by_thread(pid_t pid, const std::string& label, Milliseconds timeout, std::string& why,
                      bool* final) {
  const Clock::time_point deadline = Clock::now() + timeout;
  if (final != nullptr) *final = false;
  for (;;) {
    try {
      const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Clock::now());
      report(process_image(pid), label, std::max(left, Milliseconds(1)));
      return true;
    } catch (const Outdated&) {
      if (Clock::now() < deadline) continue;
      why = "keeps loading and unloading libraries: try again";
    } catch (const CallFailed& error) {
      why = error.what();
      if (final != nullptr) *final = true;
    } catch (const std::exception& error) {
      why = error.what();
    }
    return false;
  }
}

Outcome report_without_ledger(AskedProcess& process, const std::string& label, Milliseconds timeout,
                              std::string& why, Traced traced) {
  const std::string obstacle = process.traced()->obstacle();
  bool final = false;
  const Milliseconds most = obstacle.empty() ? std::min(timeout, kLongestBorrow) : timeout;
  if (report_by_thread(process.pid(), label, most, why, &final)) return Outcome::kReported;
  if (!obstacle.empty()) {
    why = fmt::format("{}; without a signal: it {}", obstacle, why);
    return Outcome::kRefused;
  }
  if (final) return Outcome::kRefused;
  // The signal carries no label, so leave it in the status block.
  if (!label.empty() && !process.traced()->write_label(label)) {
    why = fmt::format("takes no label: {}", std::strerror(errno));
    return Outcome::kRefused;
  }
  std::string no_signal;
  if (send_signal(process, traced, no_signal)) return Outcome::kSignalled;
  if (!label.empty()) process.traced()->write_label("");
  if (why != no_signal) why = fmt::format("{}; by a signal: it {}", why, no_signal);
  return Outcome::kRefused;
}
namespace {

bool is_same_file(const std::string& a, const std::string& b) {
  struct stat first = {};
  struct stat second = {};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

// Returns an unused name in the working directory: two containers may have processes of the same
// name.
std::string free_name(const std::string& name) {
  constexpr int kMost = 1000;
  std::string candidate = name;
  for (int i = 2; ::access(candidate.c_str(), F_OK) == 0; ++i) {
    if (i > kMost)
      throw std::runtime_error(name + " and all its numbered variants exist here already");
    candidate = fmt::format("{}.{}", i, name);
  }
  return candidate;
}

// The library knows the name that it gave the report. The resolver may have compressed it since.
std::string present_name(const std::string& root, const std::string& path) {
  const std::string compressed = path + format::kCompressedSuffix;
  const bool only_compressed = ::access((root + path).c_str(), F_OK) != 0 &&
                               ::access((root + compressed).c_str(), F_OK) == 0;
  return only_compressed ? compressed : path;
}

}  // namespace

std::string fetch_report(pid_t pid, const std::string& path) {
  const std::string root = fmt::format("/proc/{}/root", pid);
  const std::string here = present_name(root, path);
  if (is_same_file(here, root + here) || ::access((root + here).c_str(), F_OK) != 0) return here;
  const util::Text report = util::read_text(root + here);
  profile::Memlog memlog = profile::read(here, report.text);
  symbols::Symbolizer({root, {}}).resolve(memlog);
  std::string copy = free_name(util::base_name(here));
  profile::write_report(copy, profile::write(memlog), report.compressed);
  return copy;
}

namespace {

constexpr std::chrono::milliseconds kTimeout = std::chrono::seconds(kAttachTimeout);

}  // namespace

Done attach_with(pid_t pid, const std::vector<std::string>& settings,
                 std::chrono::milliseconds timeout) {
  const std::string block = attach_settings(pid, settings);
  const std::string library = find_library();
  return with_target(pid, timeout, [&](const ProcessImage& target, auto left) {
    return attach(target, library, block, left);
  });
}

Done detach_from(pid_t pid, std::chrono::milliseconds timeout, bool keep_ledger) {
  std::string why;
  const auto ledger = keep_ledger ? nullptr : ledger_of(pid, why);
  const Done done = with_target(
      pid, timeout, [](const ProcessImage& target, auto left) { return detach(target, left); });
  if (ledger != nullptr) remove_ledger(pid, *ledger);
  return done;
}

Attachment::Attachment(pid_t pid) : pid_(pid) {
  sweep_ledgers();
  stopped_ = attach_with(pid,
                         {fmt::format("MTRACE_LEDGER={}", format::kLedgerPlace),
                          "MTRACE_SIGNAL=none", "MTRACE_EXIT_REPORT=0"},
                         kTimeout)
                 .stopped;
}

Attachment::~Attachment() {
  constexpr std::chrono::milliseconds kShort{500};  // where a signal is to end memlog
  const std::chrono::milliseconds timeout = interrupted() ? kShort : kTimeout;
  const Uninterrupted end;
  try {
    detach_from(pid_, timeout, false);
  } catch (const std::exception&) {
    // The process has ended, or reaches no safe point. In the latter case the library stays and
    // counts.
  }
  sweep_ledgers(pid_);
}

std::string attach_settings(pid_t pid, const std::vector<std::string>& changes) {
  std::map<std::string, std::string> settings;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (text.starts_with("MTRACE_") && equals != std::string::npos) {
      settings[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  for (const std::string& setting : changes) {
    const size_t equals = setting.find('=');
    settings[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  std::string& output = settings["MTRACE_OUTPUT"];
  if (!output.starts_with('/')) {
    char here[PATH_MAX];
    if (::getcwd(here, sizeof here) == nullptr) throw std::runtime_error("no working directory");
    // Double the percent signs: the value is a template.
    std::string directory;
    for (const char* p = here; *p != '\0'; ++p) directory += *p == '%' ? "%%" : std::string(1, *p);
    output = directory + '/' + (output == "." ? "" : output);
  }
  if (const auto temporary = start_environment(pid, "TMPDIR")) settings["TMPDIR"] = *temporary;
  std::string block;
  for (const auto& [name, value] : settings) {
    block.append(name).append(1, '=').append(value).append(1, '\0');
  }
  return block.append(1, '\0');
}

}  // namespace mtrace::process
