#include "process/run/report_channels.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "format/memlog.h"
#include "model/profile/reader.h"
#include "model/profile/report_file.h"
#include "model/profile/writer.h"
#include "model/symbols/symbolizer.h"
#include "process/inspect/error.h"
#include "process/inspect/process.h"
#include "process/ptrace/attach.h"
#include "process/ptrace/interruption.h"
#include "process/ptrace/process_image.h"
#include "util/file.h"
#include "util/input.h"

namespace mtrace::process {
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

}  // namespace mtrace::process
