#include "target/restart_code.h"

#include <cstddef>

#include "format/restart_code.h"

namespace mtrace::target {
namespace {

extern "C" {
extern const char mtrace_restart_code[];
extern const char mtrace_restart_direct[];
extern const char mtrace_restart_polled[];
extern const char mtrace_restart_called[];
extern const char mtrace_restart_last[];
}

asm(".pushsection .rodata, \"a\"\n" MTRACE_RESTART_CODE("", "", "") ".popsection\n");

static_assert(offsetof(RestartFrame, rip) == 8 && offsetof(RestartFrame, rsp) == 16 &&
              offsetof(RestartFrame, rdi) == 24 && offsetof(RestartFrame, rsi) == 32 &&
              offsetof(RestartFrame, rdx) == 40 && offsetof(RestartFrame, r10) == 48 &&
              offsetof(RestartFrame, r8) == 56 && offsetof(RestartFrame, r9) == 64 &&
              offsetof(RestartFrame, flags) == 72 && offsetof(RestartFrame, number) == 80 &&
              offsetof(RestartFrame, on_timeout) == 88);

uint64_t offset_of(const char* place) { return static_cast<uint64_t>(place - mtrace_restart_code); }

}  // namespace

const RestartPlaces& restart_places() {
  static const RestartPlaces places = {offset_of(mtrace_restart_direct),
                                       offset_of(mtrace_restart_polled),
                                       offset_of(mtrace_restart_called)};
  return places;
}

const std::string& restart_code() {
  static const std::string code(mtrace_restart_code, mtrace_restart_last);
  return code;
}

}  // namespace mtrace::target
