// A process made by sys::start_sharing() that runs a tool for this one, and is collected when it
// has ended. Thread-safe; async-signal-safe.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/spawn.h"

namespace mtrace::report {

struct Supervisor {
  uint32_t pid = 0;  // 0: none, or collected

  // `wait`: it is about to exit.
  void collect(bool wait) {
    const uint32_t now = load_acquire(pid);
    if (now != 0 && sys::collect_sharing(now, wait)) store_release<uint32_t>(pid, 0);
  }

  // A wait of the program has found process `found`. True: it was this one, which is collected.
  bool collect_found(uint32_t found) {
    if (found == 0 || load_acquire(pid) != found) return false;
    sys::collect_sharing(found, true);  // a wait may have left it to be found again
    compare_exchange<uint32_t>(pid, found, 0);
    return true;
  }
};

}  // namespace mtrace::report
