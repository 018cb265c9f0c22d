// Sends reports to a server or fetches them, each once.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "surface/fleet/local_reports.h"
#include "surface/fleet/remote.h"
#include "surface/fleet/report_key.h"
#include "surface/fleet/store.h"

namespace mtrace::fleet {

struct Transferred {
  size_t stored = 0;
  size_t held = 0;  // were there already
  size_t expired = 0;
  size_t refused = 0;  // damaged, or not wanted by the server
  uint64_t bytes = 0;  // of the stored, compressed
};

using Complain = std::function<void(const std::string&)>;

// Sends the reports that the server does not hold. What it holds is asked once and after each
// error, so that nothing needs to be remembered across runs.
class Pusher {
 public:
  // `complain` gets what is wrong with a report that is left out.
  Pusher(LocalReports& local, Remote& remote, Complain complain)
      : local_(local), remote_(remote), complain_(std::move(complain)) {}

  // Sends what is new since the last call. Throws ServerError, and what looking at files throws;
  // then `done` counts what was done before, and the next call goes on from there.
  void push(Transferred& done);

 private:
  struct Host {
    HeldReports held;
    uint64_t expired_until = 0;
  };

  void send(const LocalReport& report, Host& host, Transferred& done);

  LocalReports& local_;
  Remote& remote_;
  Complain complain_;
  std::map<std::string, Host> hosts_;  // by directory
  std::set<std::string> refused_;      // names of reports
  std::set<std::string> counted_;      // held or expired
};

// Copies the reports that `store` wants. Throw what reading, storing and asking throws.
void collect_local(LocalReports& local, Store& store, const Complain& complain, Transferred& done);
void collect_remote(Remote& remote, Store& store, const Complain& complain, Transferred& done);

}  // namespace mtrace::fleet
