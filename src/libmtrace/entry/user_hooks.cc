// Changes of the user. A process that gives up root for good gives its ledger to the new user, who
// could neither grow the file nor remove it from a directory like /dev/shm. One that can become
// root again keeps it: another process of that user must not write to tables that root follows.
#include <errno.h>
#include <unistd.h>

#include "base/table_file.h"
#include "life/lifecycle.h"
#include "next/export.h"
#include "next/next_functions.h"

namespace mtrace::hook {
namespace {

constexpr uid_t kUnchanged = static_cast<uid_t>(-1);

// Calls call(), by which this process becomes `user` for good.
template <typename Call>
int become_user(uid_t user, const Call& call) {
  const bool gives = user != 0 && user != kUnchanged && is_own_process();
  const long owner = gives ? sys::give_table_file(user) : -1;
  const int result = call();
  if (result != 0 && owner >= 0) sys::give_table_file(static_cast<uid_t>(owner));
  return result;
}

int absent() {
  errno = ENOSYS;
  return -1;
}

}  // namespace
}  // namespace mtrace::hook

using namespace mtrace;
using namespace mtrace::hook;

MTRACE_EXPORT int setuid(uid_t user) noexcept {
  start();
  if (g_next.setuid == nullptr) return absent();
  return become_user(user, [=] { return g_next.setuid(user); });
}
MTRACE_EXPORT int setreuid(uid_t real, uid_t effective) noexcept {
  start();
  if (g_next.setreuid == nullptr) return absent();
  return become_user(real == effective ? real : kUnchanged,
                     [=] { return g_next.setreuid(real, effective); });
}
MTRACE_EXPORT int setresuid(uid_t real, uid_t effective, uid_t saved) noexcept {
  start();
  if (g_next.setresuid == nullptr) return absent();
  return become_user(real == effective && real == saved ? real : kUnchanged,
                     [=] { return g_next.setresuid(real, effective, saved); });
}
