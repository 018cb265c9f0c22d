#include "surface/serve/expire_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/ledger/ledger_state.h"
#include "process/inspect/clock.h"
#include "view/text/quantity.h"

namespace mtrace::serve {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLeastAfter{100};
constexpr milliseconds kLeastPause{20};
constexpr milliseconds kMostPause{1000};
constexpr long kMostBlocks = 100'000;  // bounds what a watch remembers

}  // namespace

ExpireRequest read_expire(const Query& query) {
  ExpireRequest request;
  request.length = std::chrono::seconds(number_of(query, "seconds", 30, 1, 60));
  request.most =
      static_cast<uint64_t>(number_of(query, "max_expired", kMostBlocks, 1, kMostBlocks));
  const auto given = query.find("after");
  if (given != query.end()) {
    const auto after = text::read_duration(given->second, 1000);
    if (!after) throw QueryError("after: not a time like 500ms or 10s");
    request.after = milliseconds(std::min(*after, uint64_t{INT32_MAX}));
  }
  if (request.after < kLeastAfter || request.after >= request.length) {
    throw QueryError(fmt::format("after: not from {} ms to less than the {} seconds of the watch",
                                 kLeastAfter.count(), request.length.count()));
  }
  return request;
}

ExpireWatch::ExpireWatch(ledger::LedgerFile& ledger, const ExpireRequest& request)
    : ledger_(ledger),
      request_(request),
      begun_(now()),
      expiry_(begun_, ledger::ticks_in(std::chrono::nanoseconds(request.after).count()), 0) {}

uint64_t ExpireWatch::now() const { return process::ticks_now(ledger_.header()); }

milliseconds ExpireWatch::pause() const {
  return std::clamp(request_.after / 10, kLeastPause, kMostPause);
}

void ExpireWatch::look() {
  ledger_.refresh();
  const uint64_t seen = now();
  expiry_.begin();
  ledger::each_block(ledger_, [&](const ledger::LedgerBlock& block) { expiry_.see(block, seen); });
  expiry_.end(seen);
}

bool ExpireWatch::over() const {
  return watched() >= request_.length || expiry_.expired() >= request_.most;
}

milliseconds ExpireWatch::watched() const {
  return milliseconds(ledger::tick_milliseconds(now() - begun_));
}

}  // namespace mtrace::serve
