#include "live/exit_hold.h"

#include <unistd.h>

#include <cstddef>

#include "live/ledger_writer.h"

namespace mtrace::live {
namespace {

constexpr size_t kPlace = offsetof(format::LedgerHeader, exit_hold);

}  // namespace

bool waits_at_exit(const LedgerFile& file) {
  format::ExitHold hold;
  return ::pread(file.descriptor(), &hold, sizeof hold, kPlace) == sizeof hold &&
         hold == format::ExitHold::kWaits;
}

bool set_exit_hold(const LedgerFile& file, format::ExitHold hold) {
  return LedgerWriter(file).write_header(kPlace, &hold, sizeof hold);
}

}  // namespace mtrace::live
