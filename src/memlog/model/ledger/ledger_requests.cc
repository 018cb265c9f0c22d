#include "model/ledger/ledger_requests.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "model/ledger/ledger_file.h"

namespace mtrace::ledger {
namespace {

using format::LedgerThread;

// Writes the label for the next report. Writes the length last: it announces the text.
bool write_label(const LedgerWriter& out, const std::string& label) {
  const auto length =
      static_cast<uint32_t>(std::min(label.size(), sizeof(format::LedgerHeader::label)));
  return out.write_header(offsetof(format::LedgerHeader, label), label.data(), length) &&
         out.write_header(offsetof(format::LedgerHeader, label_length), &length, sizeof length);
}

bool offer_names(const LedgerWriter& out, uint32_t offered) {
  return out.write_header(offsetof(format::LedgerHeader, names_offered), &offered, sizeof offered);
}

bool add_to_asked(const LedgerFile& file, const LedgerWriter& out, uint32_t step) {
  uint32_t asked = 0;
  return file.read(file.header().roots.threads_asked, asked) &&
         out.write(file.header().roots.threads_asked, asked + step);
}

}  // namespace

bool request_report(const LedgerFile& file, const std::string& label, bool names) {
  const format::LedgerRoots& roots = file.header().roots;
  const LedgerWriter out(file);
  uint32_t used = 0;
  if (!out.valid() || !write_label(out, label) || !offer_names(out, names) ||
      !add_to_asked(file, out, 1) || !file.read(roots.threads_used, used)) {
    return false;
  }
  used = std::clamp(used, 1u, format::kLedgerThreads - 1);
  for (uint32_t number = 1; number <= used; ++number) {
    const uint64_t high =
        roots.threads + number * sizeof(LedgerThread) + offsetof(LedgerThread, high);
    int64_t limit = 0;
    // INT64_MIN has a meaning in the library (ledger/peak.h) and the same effect, so keep it.
    if (file.read(high, limit) && limit != INT64_MIN) out.write(high, INT64_MIN + 1);
    out.write(high - offsetof(LedgerThread, high) + offsetof(LedgerThread, low), INT64_MAX);
  }
  return true;
}

void withdraw_request(const LedgerFile& file) {
  const LedgerWriter out(file);
  if (!out.valid()) return;
  write_label(out, "");
  offer_names(out, 0);
  add_to_asked(file, out, ~0u);
}
namespace {

constexpr size_t place_of(HoldPoint point) {
  using format::LedgerHeader;
  switch (point) {
    case HoldPoint::kExit:
      return offsetof(LedgerHeader, exit_hold);
    case HoldPoint::kAfterExit:
      return offsetof(LedgerHeader, late_hold);
  }
  return 0;
}

}  // namespace

bool waits_at(const LedgerFile& file, HoldPoint point) {
  format::ExitHold hold;
  const auto place = static_cast<off_t>(place_of(point));
  return ::pread(file.descriptor(), &hold, sizeof hold, place) == sizeof hold &&
         hold == format::ExitHold::kWaits;
}

bool set_hold(const LedgerFile& file, HoldPoint point, format::ExitHold hold) {
  return LedgerWriter(file).write_header(place_of(point), &hold, sizeof hold);
}

}  // namespace mtrace::ledger
