// Hooks of malloc, free and the other allocating functions of libc.

#include <errno.h>

#include <cstddef>
#include <cstring>

#include "base/machine.h"
#include "life/lifecycle.h"
#include "next/next_functions.h"
#include "record/call_form.h"
#include "record/call_stack.h"
#include "record/recorder.h"
#include "record/usable_size.h"

namespace mtrace::entry {

namespace {

bool overflows(size_t count, size_t size, size_t* product) {
  return __builtin_mul_overflow(count, size, product);
}

// Moves a block from the bootstrap memory to the real allocator. The old block is not freed.
void* move_out(void* block, size_t size, unwind::Caller caller) {
  record::before_call();
  void* fresh = next::g_next.malloc(size);
  if (fresh != nullptr) {
    const size_t old_size = next::Bootstrap::size(block);
    memcpy(fresh, block, old_size < size ? old_size : size);
    record::filled(fresh, old_size, size);
  }
  return record::record_block(fresh, size, ledger::Call::kRealloc, caller);
}

// For a hook whose allocator may call another hook: that one counts the call as this function's.
inline void begin_call(ledger::Call call) {
  record::before_call();
  record::enter_form(record::form_of(call));
}

// realloc and reallocarray: one free and one allocation.
template <typename RealCall>
inline void* reallocate(void* old, size_t size, ledger::Call call, unwind::Caller caller,
                        RealCall real) {
  begin_call(call);
  if (old == nullptr)
    return record::record_block(record::filled(real(), 0, size), size, call, caller);
  if ((record::samples() && !record::may_be_recorded(old)) || !record::counting()) {
    const size_t content = record::content_size(old, 0);
    return record::record_block(record::filled(real(), content, size), size, call, caller);
  }
  record::Reallocation reallocation(old, caller);
  const size_t content = record::content_size(old, reallocation.old_size());
  void* fresh = real();
  if (fresh == nullptr && size != 0) {
    reallocation.failed();
    return record::record_block(nullptr, size, call, caller);
  }
  reallocation.succeeded();
  return record::record_block(record::filled(fresh, content, size), size, call, caller,
                              reallocation.moved());
}

// Jumped to, and jumps on, as the hook that it serves; so it uses no stack itself.
[[gnu::noinline]] void* early_malloc(size_t size) {
  if (!life::ready_slowly()) return next::g_bootstrap.allocate(size, 16);
  return record::g_path.malloc(size);
}

}  // namespace
}  // namespace mtrace::entry

using namespace mtrace;
using namespace mtrace::entry;

MTRACE_EXPORT_AS_IT_IS void* malloc(size_t size) noexcept {
  return record::g_path.malloc != nullptr ? record::g_path.malloc(size) : early_malloc(size);
}

MTRACE_EXPORT void* calloc(size_t count, size_t size) noexcept {
  size_t product;
  if (!life::ready()) [[unlikely]] {
    return overflows(count, size, &product) ? nullptr : next::g_bootstrap.allocate(product, 16);
  }
  if (overflows(count, size, &product)) product = SIZE_MAX;  // the call will fail
  if (record::loads_an_object(product, __builtin_return_address(0))) [[unlikely]]
    record::look_for_unloaded();
  begin_call(ledger::Call::kCalloc);
  void* block = next::g_next.calloc(count, size);
  return record::record_block(block, product, ledger::Call::kCalloc, MTRACE_CALLER());
}

MTRACE_EXPORT void* realloc(void* block, size_t size) noexcept {
  if (!life::ready()) [[unlikely]] {
    void* fresh = next::g_bootstrap.allocate(size, 16);
    if (fresh != nullptr && next::g_bootstrap.owns(block)) {
      const size_t old_size = next::Bootstrap::size(block);
      memcpy(fresh, block, old_size < size ? old_size : size);
    }
    return fresh;
  }
  const unwind::Caller caller = MTRACE_CALLER();
  if (next::g_bootstrap.owns(block)) [[unlikely]]
    return move_out(block, size, caller);
  return reallocate(block, size, ledger::Call::kRealloc, caller,
                    [=] { return next::g_next.realloc(block, size); });
}

MTRACE_EXPORT void* reallocarray(void* block, size_t count, size_t size) noexcept {
  size_t product;
  if (overflows(count, size, &product)) {
    if (life::ready()) {
      begin_call(ledger::Call::kReallocarray);
      record::record_block(nullptr, SIZE_MAX, ledger::Call::kReallocarray, MTRACE_CALLER());
    }
    errno = ENOMEM;
    return nullptr;
  }
  if (!life::ready() || next::g_bootstrap.owns(block)) [[unlikely]]
    return realloc(block, product);
  // libc's own reallocarray would come back to our realloc, with this hook as its caller.
  return reallocate(block, product, ledger::Call::kReallocarray, MTRACE_CALLER(),
                    [=] { return next::g_next.realloc(block, product); });
}

MTRACE_EXPORT_AS_IT_IS void free(void* block) noexcept {
  if (record::g_path.free != nullptr) record::g_path.free(block);
}

MTRACE_EXPORT void cfree(void* block) noexcept {
  if (block == nullptr || next::g_bootstrap.owns(block) || record::g_path.free == nullptr) return;
  record::forget(block, ledger::Call::kFree, MTRACE_CALLER());
  (next::g_next.cfree != nullptr ? next::g_next.cfree : next::g_next.free)(block);
}

MTRACE_EXPORT void free_sized(void* block, size_t size) noexcept {
  if (block == nullptr || next::g_bootstrap.owns(block) || record::g_path.free == nullptr) return;
  record::forget(block, ledger::Call::kFree, MTRACE_CALLER());
  next::g_next.free_sized != nullptr ? next::g_next.free_sized(block, size)
                                     : next::g_next.free(block);
}

MTRACE_EXPORT void free_aligned_sized(void* block, size_t alignment, size_t size) noexcept {
  if (block == nullptr || next::g_bootstrap.owns(block) || record::g_path.free == nullptr) return;
  record::forget(block, ledger::Call::kFree, MTRACE_CALLER());
  next::g_next.free_aligned_sized != nullptr
      ? next::g_next.free_aligned_sized(block, alignment, size)
      : next::g_next.free(block);
}

MTRACE_EXPORT void* memalign(size_t alignment, size_t size) noexcept {
  if (!life::ready()) [[unlikely]]
    return next::g_bootstrap.allocate(size, alignment);
  begin_call(ledger::Call::kMemalign);
  void* const block = record::filled(next::g_next.memalign(alignment, size), 0, size);
  if (record::was_refused(block, alignment)) size = 0;
  return record::record_block(block, record::requested(size, alignment), ledger::Call::kMemalign,
                              MTRACE_CALLER());
}

MTRACE_EXPORT int posix_memalign(void** result, size_t alignment, size_t size) noexcept {
  if (!life::ready()) [[unlikely]] {
    void* block = next::g_bootstrap.allocate(size, alignment);
    if (block == nullptr) return ENOMEM;
    *result = block;
    return 0;
  }
  begin_call(ledger::Call::kPosixMemalign);
  const int error = next::g_next.posix_memalign(result, alignment, size);
  void* block = error == 0 ? record::filled(*result, 0, size) : nullptr;
  if (error == EINVAL) size = 0;
  record::record_block(block, record::requested(size, alignment), ledger::Call::kPosixMemalign,
                       MTRACE_CALLER());
  return error;
}

MTRACE_EXPORT void* aligned_alloc(size_t alignment, size_t size) noexcept {
  if (!life::ready()) [[unlikely]]
    return next::g_bootstrap.allocate(size, alignment);
  begin_call(ledger::Call::kAlignedAlloc);
  void* const block = record::filled(next::g_next.aligned_alloc(alignment, size), 0, size);
  if (record::was_refused(block, alignment)) size = 0;
  return record::record_block(block, record::requested(size, alignment),
                              ledger::Call::kAlignedAlloc, MTRACE_CALLER());
}

MTRACE_EXPORT void* valloc(size_t size) noexcept {
  if (!life::ready()) [[unlikely]]
    return next::g_bootstrap.allocate(size, 4096);
  begin_call(ledger::Call::kValloc);
  return record::record_block(record::filled(next::g_next.valloc(size), 0, size), size,
                              ledger::Call::kValloc, MTRACE_CALLER());
}

MTRACE_EXPORT void* pvalloc(size_t size) noexcept {
  if (!life::ready()) [[unlikely]]
    return next::g_bootstrap.allocate(size, 4096);
  begin_call(ledger::Call::kPvalloc);
  return record::record_block(record::filled(next::g_next.pvalloc(size), 0, size), size,
                              ledger::Call::kPvalloc, MTRACE_CALLER());
}

MTRACE_EXPORT size_t malloc_usable_size(void* block) noexcept {
  if (block == nullptr) return 0;
  if (next::g_bootstrap.owns(block)) [[unlikely]]
    return next::Bootstrap::size(block);
  return life::ready() && next::g_next.malloc_usable_size != nullptr
             ? next::g_next.malloc_usable_size(block)
             : 0;
}

extern "C" {
// Names of the functions above that no other object can define: see life/start_checks.cc and
// next/next_functions.cc.
#define MTRACE_OWN(name) [[gnu::alias(#name), gnu::visibility("hidden")]]
MTRACE_OWN(malloc) void* mtrace_own_malloc(size_t size) noexcept;
MTRACE_OWN(calloc) void* mtrace_own_calloc(size_t count, size_t size) noexcept;
MTRACE_OWN(realloc) void* mtrace_own_realloc(void* block, size_t size) noexcept;
MTRACE_OWN(free) void mtrace_own_free(void* block) noexcept;
MTRACE_OWN(malloc_usable_size) size_t mtrace_own_usable_size(void* block) noexcept;
[[gnu::visibility("hidden")]] extern const void* const mtrace_own_entrances[4];
const void* const mtrace_own_entrances[4] = {reinterpret_cast<const void*>(mtrace_own_malloc),
                                             reinterpret_cast<const void*>(mtrace_own_calloc),
                                             reinterpret_cast<const void*>(mtrace_own_realloc),
                                             reinterpret_cast<const void*>(mtrace_own_free)};
}

// ---- strdup and its variants. libc's functions call malloc by symbol and are a frame of the
// stack. These hooks only store their form, jump on, and leave no frame.

namespace mtrace::entry {
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
}  // namespace mtrace::entry

MTRACE_EXPORT_AS_IT_IS char* strdup(const char* text) noexcept {
  if (next::g_next.strdup == nullptr) [[unlikely]]
    return copy_early(text, SIZE_MAX);
  record::enter_form(record::form_of(format::kStrdup));
  return next::g_next.strdup(text);
}

MTRACE_EXPORT_AS_IT_IS char* __strdup(const char* text) noexcept {
  if (next::g_next.strdup_reserved == nullptr) [[unlikely]]
    return copy_early(text, SIZE_MAX);
  record::enter_form(record::form_of(format::kStrdup));
  return next::g_next.strdup_reserved(text);
}

MTRACE_EXPORT_AS_IT_IS char* strndup(const char* text, size_t most) noexcept {
  if (next::g_next.strndup == nullptr) [[unlikely]]
    return copy_early(text, most);
  record::enter_form(record::form_of(format::kStrndup));
  return next::g_next.strndup(text, most);
}

MTRACE_EXPORT_AS_IT_IS wchar_t* wcsdup(const wchar_t* text) noexcept {
  if (next::g_next.wcsdup == nullptr) [[unlikely]]
    return copy_early(text, SIZE_MAX);
  record::enter_form(record::form_of(format::kWcsdup));
  return next::g_next.wcsdup(text);
}
