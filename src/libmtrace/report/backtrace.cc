#include "report/backtrace.h"

#include "base/writer.h"
#include "format/memlog.h"
#include "modules/modules.h"
#include "report/frame_writer.h"

namespace mtrace::report {

int write_backtrace(const unwind::Registers& caller, int fd) {
  if (fd < 0) return -1;
  uintptr_t frames[format::kMaxDepth];
  const unwind::Walk walk = unwind::walk(caller, frames, format::kMaxDepth);
  char buffer[1024];  // in a signal handler there may be no room for more
  Writer out(buffer, sizeof buffer, fd);
  ModuleSet modules;
  unwind::StackEpoch now;
  for (unsigned i = 0; i < walk.count; ++i) {
    const bool guessed = walk.guessed != 0 && walk.guessed == i;
    write_frame(out, frames[i], now, modules, guessed);
  }
  if (walk.end == unwind::End::kDepth) out.put('\t').text(format::kCutLine).put('\n');
  write_modules(out, modules);
  return out.finish() == 0 ? static_cast<int>(walk.count) : -1;
}

}  // namespace mtrace::report
