#include "live/exit_hold.h"

#include <unistd.h>

#include <cstddef>

#include "live/ledger_writer.h"

namespace mtrace::live {
namespace {

constexpr size_t place_of(HoldPoint point) {
  using format::LedgerHeader;
  switch (point) {
    case HoldPoint::kExit:
      return offsetof(LedgerHeader, exit_hold);
    case HoldPoint::kAfterExit:
      return offsetof(LedgerHeader, late_hold);
    case HoldPoint::kCheck:
      return offsetof(LedgerHeader, check_hold);
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

bool set_check_found(const LedgerFile& file, uint32_t blocks) {
  return LedgerWriter(file).write_header(offsetof(format::LedgerHeader, check_found), &blocks,
                                         sizeof blocks);
}

}  // namespace mtrace::live
