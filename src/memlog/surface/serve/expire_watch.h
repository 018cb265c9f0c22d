// The action expire: which blocks, of those that a process allocates meanwhile, outlive a time. As
// memlog expire has it, for as long as one answer takes.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "model/ledger/ledger_file.h"
#include "surface/serve/request.h"
#include "view/heap/expiry.h"

namespace mtrace::serve {

struct ExpireRequest {
  std::chrono::milliseconds after{10'000};  // how long a block may live
  std::chrono::seconds length{30};          // of the watch
  uint64_t most = 0;                        // end it once so many blocks have expired
};

// Throws QueryError.
ExpireRequest read_expire(const Query& query);

// For one thread. Looking costs the more the more blocks are live.
class ExpireWatch {
 public:
  // Begins now. `ledger` outlives it.
  ExpireWatch(ledger::LedgerFile& ledger, const ExpireRequest& request);

  // How long to wait before the next look.
  std::chrono::milliseconds pause() const;
  // Throws LedgerError.
  void look();
  bool over() const;

  std::chrono::milliseconds watched() const;  // since the beginning
  const analyze::Expiry& expiry() const { return expiry_; }

 private:
  uint64_t now() const;  // ticks

  ledger::LedgerFile& ledger_;
  ExpireRequest request_;
  uint64_t begun_;  // ticks
  analyze::Expiry expiry_;
};

}  // namespace mtrace::serve
