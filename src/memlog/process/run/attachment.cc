#include "process/run/attachment.h"

#include <unistd.h>

#include "process/inspect/ledgers.h"
#include "process/inspect/process.h"
#include "process/ptrace/attach.h"
#include "process/ptrace/safe_point.h"
#include "process/run/preload.h"

namespace mtrace::process {
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
