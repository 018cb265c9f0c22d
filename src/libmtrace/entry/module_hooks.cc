// Hooks of what makes code come and go: dlclose, and libgcc's registration of call-frame
// information for code made at run time.
#include "base/machine.h"
#include "life/lifecycle.h"
#include "next/next_functions.h"
#include "record/call_stack.h"
#include "record/recorder.h"
#include "report/coverage.h"
#include "unwind/registered_frames.h"

namespace mtrace::entry {
namespace {

// Calls libgcc's function, also if a plug-in has loaded libgcc into a scope of its own. Returns
// what that returns; without libgcc, nothing or nullptr.
template <typename Result, typename... Parameters>
Result pass_on(Result (*const& next)(Parameters...), const char* symbol, Parameters... all) {
  life::start();
  if (next != nullptr) return next(all...);
  const auto found =
      reinterpret_cast<Result (*)(Parameters...)>(next::symbol_of("libgcc_s.so.1", symbol));
  return found != nullptr ? found(all...) : Result();
}

// Calls visit(section) for each section of a table, up to the null pointer.
template <typename Visit>
void each_section(void* table, Visit&& visit) {
  for (void* const* section = static_cast<void**>(table); *section != nullptr; ++section) {
    visit(*section);
  }
}

}  // namespace
}  // namespace mtrace::entry

using namespace mtrace;
using namespace mtrace::entry;
using unwind::deregister_frames;
using unwind::register_frames;

MTRACE_EXPORT void __register_frame(void* begin) noexcept {
  register_frames(begin);
  pass_on(next::g_next.register_frame, "__register_frame", begin);
}

MTRACE_EXPORT void __register_frame_table(void* begin) noexcept {
  each_section(begin, register_frames);
  pass_on(next::g_next.register_frame_table, "__register_frame_table", begin);
}

MTRACE_EXPORT void __register_frame_info(const void* begin, void* object) noexcept {
  register_frames(begin);
  pass_on(next::g_next.register_frame_info, "__register_frame_info", begin, object);
}

MTRACE_EXPORT void __register_frame_info_bases(const void* begin, void* object, void* text,
                                               void* data) noexcept {
  register_frames(begin);
  pass_on(next::g_next.register_frame_info_bases, "__register_frame_info_bases", begin, object,
          text, data);
}

MTRACE_EXPORT void __register_frame_info_table(void* begin, void* object) noexcept {
  each_section(begin, register_frames);
  pass_on(next::g_next.register_frame_info_table, "__register_frame_info_table", begin, object);
}

MTRACE_EXPORT void __deregister_frame(void* begin) noexcept {
  deregister_frames(begin);
  pass_on(next::g_next.deregister_frame, "__deregister_frame", begin);
}

MTRACE_EXPORT void* __deregister_frame_info(const void* begin) noexcept {
  deregister_frames(begin);
  return pass_on(next::g_next.deregister_frame_info, "__deregister_frame_info", begin);
}

MTRACE_EXPORT void* __deregister_frame_info_bases(const void* begin) noexcept {
  deregister_frames(begin);
  return pass_on(next::g_next.deregister_frame_info_bases, "__deregister_frame_info_bases", begin);
}

// ---- dlclose: an unloaded module keeps its names, and a later one in its place is another module.
// dlopen is not hooked, because it looks at its caller.

MTRACE_EXPORT int dlclose(void* handle) noexcept {
  const bool started = life::start();
  if (next::g_next.dlclose == nullptr) return -1;
  if (started && record::counting()) mtrace::report::look_before_unloading(handle);
  const int result = next::g_next.dlclose(handle);
  if (result == 0 && started && record::counting()) record::retire_unloaded();
  return result;
}
