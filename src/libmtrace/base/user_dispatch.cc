#include "base/user_dispatch.h"

#include <sys/prctl.h>

#include "base/syscall.h"

namespace mtrace::sys {
namespace {

struct UserDispatch {
  bool on;
  const volatile char* selector;
};
[[gnu::visibility("hidden")]] thread_local constinit UserDispatch t_user_dispatch = {};

}  // namespace

void set_user_dispatch(bool on, const volatile char* selector) {
  t_user_dispatch = {on, selector};
  if (on) __atomic_store_n(&g_filtered, true, __ATOMIC_RELEASE);
}

bool has_user_dispatch() { return t_user_dispatch.on; }

bool is_dispatched() {
  const UserDispatch& dispatch = t_user_dispatch;
  return dispatch.on &&
         (dispatch.selector == nullptr || *dispatch.selector != SYSCALL_DISPATCH_FILTER_ALLOW);
}

}  // namespace mtrace::sys
