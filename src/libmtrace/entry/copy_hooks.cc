// strdup and its variants. libc's functions call malloc by symbol and are a frame of the stack.
// These hooks only store their form, jump on, and leave no frame.
#include <cstddef>
#include <cstring>

#include "life/lifecycle.h"
#include "next/export.h"
#include "next/next_functions.h"
#include "record/call_form.h"

extern "C" void* malloc(size_t size) noexcept;

namespace mtrace::hook {
namespace {

// Copies the text before the real functions are known.
template <typename Char>
[[gnu::noinline]] Char* copy_early(const Char* text, size_t most) {
  size_t length = 0;
  while (length < most && text[length] != 0) ++length;
  auto* const copy = static_cast<Char*>(malloc((length + 1) * sizeof(Char)));
  if (copy == nullptr) return nullptr;
  memcpy(copy, text, length * sizeof(Char));
  copy[length] = 0;
  return copy;
}

}  // namespace
}  // namespace mtrace::hook

using namespace mtrace;
using namespace mtrace::hook;

MTRACE_EXPORT_AS_IT_IS char* strdup(const char* text) noexcept {
  if (g_next.strdup == nullptr) [[unlikely]]
    return copy_early(text, SIZE_MAX);
  enter_form(form_of(format::kStrdup));
  return g_next.strdup(text);
}

MTRACE_EXPORT_AS_IT_IS char* __strdup(const char* text) noexcept {
  if (g_next.strdup_reserved == nullptr) [[unlikely]]
    return copy_early(text, SIZE_MAX);
  enter_form(form_of(format::kStrdup));
  return g_next.strdup_reserved(text);
}

MTRACE_EXPORT_AS_IT_IS char* strndup(const char* text, size_t most) noexcept {
  if (g_next.strndup == nullptr) [[unlikely]]
    return copy_early(text, most);
  enter_form(form_of(format::kStrndup));
  return g_next.strndup(text, most);
}

MTRACE_EXPORT_AS_IT_IS wchar_t* wcsdup(const wchar_t* text) noexcept {
  if (g_next.wcsdup == nullptr) [[unlikely]]
    return copy_early(text, SIZE_MAX);
  enter_form(form_of(format::kWcsdup));
  return g_next.wcsdup(text);
}
