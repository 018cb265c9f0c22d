#include "life/output_message.h"

#include <errno.h>
#include <unistd.h>

#include <cstring>

#include "base/file.h"
#include "base/process.h"
#include "base/writer.h"
#include "format/escape.h"
#include "life/options.h"
#include "life/relatives.h"
#include "report/output.h"

namespace mtrace::hook {
void say_when_elsewhere(char* const* envp) {
  if (g_options.signal == 0 && !g_options.exit_report) return;
  const report::OutputCheck check = report::check_output(sys::real_time());
  // EPERM: a filter of system calls forbids the check.
  if (check.error == 0 || check.error == -EPERM) return;
  constexpr char kVariable[] = "MTRACE_OUTPUT";
  const char* given = find_variable(envp, kVariable);
  if (parent_has_told(given != nullptr ? given - sizeof kVariable : nullptr)) return;
  char line[2 * report::kPathCapacity];
  Writer out(line, sizeof line);
  const char* const directory = report::output_directory();
  out.text("mtrace: cannot write reports to ");
  out.escaped(directory, strlen(directory), format::kReservedNone).text(": ");
  out.reason(static_cast<int>(-check.error));
  if (check.instead == nullptr) {
    out.text(", nor to $TMPDIR or /tmp");
  } else {
    out.text("; using ").escaped(check.instead, strlen(check.instead), format::kReservedNone);
  }
  out.put('\n').finish();
  sys::write_all(STDERR_FILENO, line, out.size());
}

}  // namespace mtrace::hook
