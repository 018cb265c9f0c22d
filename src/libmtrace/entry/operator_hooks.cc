// operator new and delete. If the real ones call malloc by symbol (libstdc++), the hooks only jump
// on and leave no frame. If the allocator defines them beside malloc (jemalloc, tcmalloc), they
// count. In a C program that loads a C++ plug-in locally no operator is found: then they call
// malloc.
//
// The real operator new may throw: nothing is held over the call.
#include <cstddef>
#include <string_view>

#include "base/machine.h"
#include "life/lifecycle.h"
#include "next/next_functions.h"
#include "record/call_form.h"
#include "record/recorder.h"
#include "record/usable_size.h"

#define MTRACE_OPERATOR_EXPORT [[gnu::visibility("default")]]
// For a function that does more than jump on. The hooks themselves keep the caller's stack, which
// may be aligned to 8 bytes only. Calls with more than six arguments would need the stack: a
// function that is realigned and makes one begins with a copy of the return address
// (base/machine.h).
#define MTRACE_APART [[gnu::noinline]] MTRACE_REALIGN

namespace mtrace::entry {
namespace {

// For a failed allocation when no operator is in the global scope: calls the operator of a C++
// library that a plug-in has loaded, which calls the new-handler and throws.
template <typename... Rest>
MTRACE_APART void* from_loaded_library(const char* symbol, size_t size, Rest... rest) {
  constexpr const char* kLibraries[] = {"libstdc++.so.6", "libc++.so.1"};
  for (const char* library : kLibraries) {
    auto* call = reinterpret_cast<void* (*)(size_t, Rest...)>(next::symbol_of(library, symbol));
    if (call != nullptr) return call(size, rest...);
  }
  return nullptr;
}

template <typename... Rest>
MTRACE_APART void* counted_new(void* (*real)(size_t, Rest...), uint64_t form, unwind::Caller caller,
                               size_t size, Rest... rest) {
  record::before_call();
  // An operator that the allocator lacks is libstdc++'s, and counted where that calls malloc.
  record::t_thread.requested = size;
  if (sizeof...(Rest) != 0 || !next::operators_apart()) record::enter_form(form);
  void* const block = record::filled(real(size, rest...), 0, size);
  record::set_form(form);
  return record::record_block(block, record::of_operator(size), record::counted_call(form), caller);
}

// Allocates in place of an operator.
MTRACE_APART void* malloc_instead(uint64_t form, unwind::Caller caller, size_t size,
                                  size_t alignment) {
  if (!life::start()) return nullptr;
  size = record::of_operator(size);
  record::before_call();
  void* block = alignment == 0 ? next::g_next.malloc(size) : next::g_next.memalign(alignment, size);
  record::set_form(form);
  return record::record_block(record::filled(block, 0, size), size, record::counted_call(form),
                              caller);
}

MTRACE_APART void free_instead(ledger::Call call, unwind::Caller caller, void* block) {
  if (block != nullptr) record::forget(block, call, caller);
  next::g_next.free(block);
}

inline void begin_new(uint64_t form, size_t size) {
  record::t_thread.requested = size;
  record::enter_form(form);
}
consteval uint64_t form_of_new(ledger::Call call, std::string_view symbol) {
  const bool is_aligned = symbol.find("align") != symbol.npos;
  const bool is_nothrow = symbol.find("nothrow") != symbol.npos;
  if (!is_aligned && !is_nothrow) return record::form_of(call);
  return record::form_of((is_aligned ? is_nothrow ? format::kAlignedNothrowNew : format::kAlignedNew
                                     : format::kNothrowNew) +
                         (call == ledger::Call::kNewArray ? 1u : 0u));
}

// For an allocator that has operators of its own. The operators that it lacks are libstdc++'s, and
// reach free by symbol (jemalloc: the aligned ones).
template <typename... Parameters>
MTRACE_APART void counted_delete(void (*real)(void*, Parameters...), ledger::Call call,
                                 unwind::Caller caller, void* block, Parameters... rest) {
  if (block != nullptr) record::forget(block, call, caller);
  record::t_thread.moving = block;
  real(block, rest...);
  record::t_thread.moving = nullptr;
}

}  // namespace
}  // namespace mtrace::entry

using namespace mtrace;
using namespace mtrace::entry;

// The hooks only jump: to libstdc++'s operator, or to a function for unusual cases. So they need no
// frame, which would cost as much as all else that they do.
#define MTRACE_NEW(call, member, symbol, alignment, parameters, ...)            \
  MTRACE_APART static void* unusual_##member parameters {                       \
    constexpr uint64_t form = form_of_new(ledger::Call::call, symbol);          \
    const mtrace::unwind::Caller caller = MTRACE_CALLER_OF_HOOK();              \
    life::start();                                                              \
    if (next::g_next.member != nullptr) {                                       \
      return counted_new(next::g_next.member, form, caller, __VA_ARGS__);       \
    }                                                                           \
    void* block = malloc_instead(form, caller, size, alignment);                \
    return block != nullptr ? block : from_loaded_library(symbol, __VA_ARGS__); \
  }                                                                             \
  MTRACE_OPERATOR_EXPORT void* hook_##member parameters asm(symbol);            \
  void* hook_##member parameters {                                              \
    constexpr uint64_t form = form_of_new(ledger::Call::call, symbol);          \
    if (next::g_next.member == nullptr || next::operators_apart()) [[unlikely]] \
      return unusual_##member(__VA_ARGS__);                                     \
    begin_new(form, size);                                                      \
    return next::g_next.member(__VA_ARGS__);                                    \
  }

MTRACE_NEW(kNew, new_one, "_Znwm", 0, (size_t size), size)
MTRACE_NEW(kNewArray, new_array, "_Znam", 0, (size_t size), size)
MTRACE_NEW(kNew, new_one_nothrow, "_ZnwmRKSt9nothrow_t", 0, (size_t size, const void* tag), size,
           tag)
MTRACE_NEW(kNewArray, new_array_nothrow, "_ZnamRKSt9nothrow_t", 0, (size_t size, const void* tag),
           size, tag)
MTRACE_NEW(kNew, new_one_aligned, "_ZnwmSt11align_val_t", align, (size_t size, size_t align), size,
           align)
MTRACE_NEW(kNewArray, new_array_aligned, "_ZnamSt11align_val_t", align, (size_t size, size_t align),
           size, align)
MTRACE_NEW(kNew, new_one_aligned_nothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t", align,
           (size_t size, size_t align, const void* tag), size, align, tag)
MTRACE_NEW(kNewArray, new_array_aligned_nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t", align,
           (size_t size, size_t align, const void* tag), size, align, tag)

#define MTRACE_DELETE(call, member, symbol, parameters, ...)                                      \
  MTRACE_OPERATOR_EXPORT void hook_##member parameters asm(symbol);                               \
  MTRACE_APART static void unusual_##member parameters {                                          \
    const mtrace::unwind::Caller caller = MTRACE_CALLER_OF_HOOK();                                \
    if (next::g_next.member == nullptr) {                                                         \
      if (next::g_bootstrap.owns(block) || !life::start()) return;                                \
      if (next::g_next.member == nullptr) return free_instead(ledger::Call::call, caller, block); \
    }                                                                                             \
    if (!next::operators_apart()) return hook_##member(__VA_ARGS__);                              \
    return counted_delete(next::g_next.member, ledger::Call::call, caller, __VA_ARGS__);          \
  }                                                                                               \
  void hook_##member parameters {                                                                 \
    if (next::g_next.member == nullptr || next::operators_apart()) [[unlikely]]                   \
      return unusual_##member(__VA_ARGS__);                                                       \
    if (block != nullptr) record::begin_delete(ledger::Call::call);                               \
    return next::g_next.member(__VA_ARGS__);                                                      \
  }

MTRACE_DELETE(kDelete, delete_one, "_ZdlPv", (void* block), block)
MTRACE_DELETE(kDeleteArray, delete_array, "_ZdaPv", (void* block), block)
MTRACE_DELETE(kDelete, delete_one_nothrow, "_ZdlPvRKSt9nothrow_t", (void* block, const void* tag),
              block, tag)
MTRACE_DELETE(kDeleteArray, delete_array_nothrow, "_ZdaPvRKSt9nothrow_t",
              (void* block, const void* tag), block, tag)
MTRACE_DELETE(kDelete, delete_one_sized, "_ZdlPvm", (void* block, size_t size), block, size)
MTRACE_DELETE(kDeleteArray, delete_array_sized, "_ZdaPvm", (void* block, size_t size), block, size)
MTRACE_DELETE(kDelete, delete_one_aligned, "_ZdlPvSt11align_val_t", (void* block, size_t align),
              block, align)
MTRACE_DELETE(kDeleteArray, delete_array_aligned, "_ZdaPvSt11align_val_t",
              (void* block, size_t align), block, align)
MTRACE_DELETE(kDelete, delete_one_aligned_nothrow, "_ZdlPvSt11align_val_tRKSt9nothrow_t",
              (void* block, size_t align, const void* tag), block, align, tag)
MTRACE_DELETE(kDeleteArray, delete_array_aligned_nothrow, "_ZdaPvSt11align_val_tRKSt9nothrow_t",
              (void* block, size_t align, const void* tag), block, align, tag)
MTRACE_DELETE(kDelete, delete_one_sized_aligned, "_ZdlPvmSt11align_val_t",
              (void* block, size_t size, size_t align), block, size, align)
MTRACE_DELETE(kDeleteArray, delete_array_sized_aligned, "_ZdaPvmSt11align_val_t",
              (void* block, size_t size, size_t align), block, size, align)
