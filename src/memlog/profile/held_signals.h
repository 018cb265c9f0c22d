// Lets a signal wait until a file that has a temporary name has its own.
#pragma once

#include <csignal>

namespace mtrace::profile {

// Blocks every signal in the calling thread until its end. Not for work without a bound: Ctrl-C
// waits for it, too.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t every;
    ::sigfillset(&every);
    ::pthread_sigmask(SIG_SETMASK, &every, &before_);
  }
  ~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace mtrace::profile
