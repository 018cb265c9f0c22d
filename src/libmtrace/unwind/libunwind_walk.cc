#define UNW_LOCAL_ONLY
#include <errno.h>
#include <libunwind.h>

#include "modules/c_library.h"
#include "modules/object.h"
#include "unwind/rule.h"
#include "unwind/slow_walk.h"

namespace mtrace::unwind {
namespace {

struct Functions {
  int (*get_context)(unw_context_t*);
  int (*init_local)(unw_cursor_t*, unw_context_t*);
  int (*step)(unw_cursor_t*);
  int (*get_reg)(unw_cursor_t*, unw_regnum_t, unw_word_t*);
  int (*is_signal_frame)(unw_cursor_t*);
};
Functions functions;

thread_local constinit bool walking = false;

#define MTRACE_TEXT_OF(name) #name
#define MTRACE_TEXT(name) MTRACE_TEXT_OF(name)  // expands libunwind's renaming macros

template <typename Function>
bool find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(modules::libc().symbol(library, name));
  return *function != nullptr;
}

#ifdef UNW_TARGET_AARCH64
// Instructions in libunwind's header, not a function.
[[gnu::always_inline]] inline int get_context(unw_context_t* context) {
  return unw_tdep_getcontext(context);
}
bool find_context(void*) { return true; }
#else
inline int get_context(unw_context_t* context) { return functions.get_context(context); }
bool find_context(void* library) {
  return find(library, MTRACE_TEXT(unw_tdep_getcontext), &functions.get_context);
}
#endif

Walk walk_from(const Registers& from, unw_cursor_t* cursor, WalkState state) {
  unw_word_t pc = 0;
  unw_word_t sp = 0;
  for (unsigned i = 0; pc != from.pc || sp != from.sp; ++i) {
    if (i == kMaxOwnFrames || functions.step(cursor) <= 0) return state.result(End::kLost);
    if (functions.get_reg(cursor, UNW_REG_IP, &pc) != 0 ||
        functions.get_reg(cursor, UNW_REG_SP, &sp) != 0) {
      return state.result(End::kLost);
    }
  }
  state.enter(from.pc);
  for (;;) {
    state.leave_own();
    const int stepped = functions.step(cursor);
    if (stepped == 0) return state.result(End::kBottom);
    if (stepped < 0 || functions.get_reg(cursor, UNW_REG_IP, &pc) != 0) {
      return state.result(End::kLost);
    }
    if (pc == 0) return state.result(End::kBottom);
    if (pc >= kKeyEnd - 1) return state.result(End::kLost);
    if (state.count == state.depth) return state.result(End::kDepth);
    // libunwind flags the frame that was interrupted, not the trampoline inside it.
    state.enter(pc + (functions.is_signal_frame(cursor) > 0 ? 1 : 0));
  }
}

}  // namespace

bool open_libunwind() {
  if (modules::libc().open == nullptr || modules::libc().symbol == nullptr) return false;
  void* library = modules::libc().open("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  return find_context(library) &&
         find(library, MTRACE_TEXT(unw_init_local), &functions.init_local) &&
         find(library, MTRACE_TEXT(unw_step), &functions.step) &&
         find(library, MTRACE_TEXT(unw_get_reg), &functions.get_reg) &&
         find(library, MTRACE_TEXT(unw_is_signal_frame), &functions.is_signal_frame);
}

[[gnu::noinline]] Walk libunwind_walk(const Registers& from, uintptr_t* frames, unsigned depth) {
  const WalkState state = {0, from.sp, from.fp, 0, frames, 0, depth, 0};
  if (walking) return state.result(End::kLost);
  walking = true;
  const int saved_errno = errno;
  unw_context_t context;
  unw_cursor_t cursor;
  Walk walk = state.result(End::kLost);
  if (get_context(&context) == 0 && functions.init_local(&cursor, &context) == 0) {
    walk = walk_from(from, &cursor, state);
    // Enters the modules into the list, as walk() does when it compiles a rule.
    modules::Object scratch;
    for (unsigned i = 0; i < walk.count; ++i) modules::loaded_object(frames[i], &scratch);
  }
  errno = saved_errno;
  walking = false;
  return walk;
}

}  // namespace mtrace::unwind
