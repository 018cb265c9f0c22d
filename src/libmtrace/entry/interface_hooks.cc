// The hooks of interfaces.def. Each calls the real function and counts as malloc_hooks.cc does.
//
// Calls inside the allocator do not reach these hooks (next/interfaces.cc), so a function that
// calls another one is counted once, for its own caller.
#include <errno.h>

#include <cstring>

#include "base/machine.h"
#include "modules/linkage.h"
#include "next/interfaces.h"
#include "next/next_functions.h"
#include "record/call_form.h"
#include "record/recorder.h"
#include "record/usable_size.h"

#define MTRACE_INLINE [[gnu::always_inline]] static inline

namespace mtrace::hook {
namespace {

using Caller = unwind::Caller;

// Prevents queries for usable sizes of blocks that are not of malloc's allocator: that allocator
// would answer for a block it does not know.
class AnotherAllocator {
 public:
  explicit AnotherAllocator(bool elsewhere) : before_(t_thread.asking) {
    if (elsewhere) t_thread.asking = true;
  }
  ~AnotherAllocator() { t_thread.asking = before_; }

 private:
  bool before_;
};

size_t product_of(size_t count, size_t size) {
  size_t product;
  return __builtin_mul_overflow(count, size, &product) ? SIZE_MAX : product;
}

// Visitor of mi_heap_visit_blocks: forgets a block of a heap that is being destroyed.
bool forget_in_heap(const void*, const void*, void* block, size_t size, void*) {
  if (block == nullptr) return true;  // the beginning of an area
  // An aligned block begins at the first aligned address of the area that the heap shows.
  const auto begin = reinterpret_cast<uintptr_t>(block);
  if (forget_known(block, Call::kFree)) return true;
  for (uintptr_t alignment = 16; alignment < size; alignment *= 2) {
    const uintptr_t address = (begin + alignment - 1) & ~(alignment - 1);
    if (address - begin >= size) break;
    if (address != begin && forget_known(reinterpret_cast<void*>(address), Call::kFree)) break;
  }
  return true;
}

template <unsigned kNumber, Call kCall>
struct Hooks {
  enum Content { kNone, kZeroed };  // of new memory, as the allocator gives it

  template <typename Result, typename... All>
  MTRACE_INLINE Result real(All... all) {
    return reinterpret_cast<Result (*)(All...)>(const_cast<void*>(g_interfaces[kNumber].real))(
        all...);
  }
  static bool is_another() { return g_interfaces[kNumber].is_another; }

  // `moved`: see record().
  MTRACE_INLINE void* entered(void* block, size_t size, Caller caller,
                              const void* moved = nullptr) {
    set_form(form_of(format::kFirstInterface + kNumber));
    if constexpr (kCall == Call::kNew || kCall == Call::kNewArray) size = of_operator(size);
    return record(block, size, kCall, caller, moved);
  }
  MTRACE_INLINE void* counted(void* block, size_t size, Content content, Caller caller) {
    const AnotherAllocator guard(is_another());
    if (content == kNone && !is_another()) filled(block, 0, size);
    return entered(block, size, caller);
  }
  template <typename... All>
  MTRACE_INLINE void* allocate(Caller caller, size_t size, Content content, All... all) {
    before_call();
    return counted(real<void*>(all...), size, content, caller);
  }

  MTRACE_INLINE Reallocation reallocation_of(void* block, Caller caller) {
    const AnotherAllocator guard(is_another());
    return {block, caller};
  }

  // What a call that returns nullptr leaves of the old block.
  enum Failure {
    kKept,     // all of it, unless the new size is 0
    kFreed,    // nothing
    kInPlace,  // all of it; no memory was asked for
  };
  template <typename Resize>
  MTRACE_INLINE void* resize(Caller caller, void* old, size_t size, Failure failure,
                             Resize&& call) {
    if (g_bootstrap.owns(old)) {
      before_call();
      const AnotherAllocator guard(is_another());
      void* fresh = g_next.malloc(size);
      if (fresh != nullptr) {
        const size_t old_size = Bootstrap::size(old);
        memcpy(fresh, old, old_size < size ? old_size : size);
      }
      return entered(fresh, size, caller);
    }
    before_call();
    const bool may_be_known = old != nullptr && (!samples() || may_be_recorded(old)) && counting();
    if (!may_be_known) {
      void* fresh = call();
      if (fresh == nullptr && failure == kInPlace) return nullptr;
      const AnotherAllocator guard(is_another());
      return entered(fresh, size, caller);
    }
    Reallocation reallocation = reallocation_of(old, caller);
    void* fresh = call();
    const AnotherAllocator guard(is_another());
    if (fresh == nullptr && (failure == kInPlace || (failure == kKept && size != 0))) {
      reallocation.failed();
      return failure == kInPlace ? nullptr : entered(fresh, size, caller);
    }
    reallocation.succeeded();
    return entered(fresh, size, caller, reallocation.moved());
  }

  template <typename... Rest>
  MTRACE_REALIGN static void* of_size(size_t size, Rest... rest) {
    return allocate(MTRACE_CALLER(), size, kNone, size, rest...);
  }
  template <typename... Rest>
  MTRACE_REALIGN static void* of_size_zeroed(size_t size, Rest... rest) {
    return allocate(MTRACE_CALLER(), size, kZeroed, size, rest...);
  }
  template <typename... Rest>
  MTRACE_REALIGN static void* of_product(size_t count, size_t size, Rest... rest) {
    return allocate(MTRACE_CALLER(), product_of(count, size), kNone, count, size, rest...);
  }
  template <typename... Rest>
  MTRACE_REALIGN static void* of_product_zeroed(size_t count, size_t size, Rest... rest) {
    return allocate(MTRACE_CALLER(), product_of(count, size), kZeroed, count, size, rest...);
  }
  MTRACE_REALIGN static void* aligned_of_size(size_t alignment, size_t size) {
    before_call();
    void* const block = real<void*>(alignment, size);
    return counted(block, was_refused(block, alignment) ? 0 : size, kNone, MTRACE_CALLER());
  }
  MTRACE_REALIGN static int into_pointer(void** result, size_t alignment, size_t size) {
    before_call();
    const int error = real<int>(result, alignment, size);
    counted(error == 0 ? *result : nullptr, error == EINVAL ? 0 : size, kNone, MTRACE_CALLER());
    return error;
  }
  template <typename... Rest>
  MTRACE_REALIGN static void* heap_of_size(void* heap, size_t size, Rest... rest) {
    return allocate(MTRACE_CALLER(), size, kNone, heap, size, rest...);
  }
  template <typename... Rest>
  MTRACE_REALIGN static void* heap_of_size_zeroed(void* heap, size_t size, Rest... rest) {
    return allocate(MTRACE_CALLER(), size, kZeroed, heap, size, rest...);
  }
  template <typename... Rest>
  MTRACE_REALIGN static void* heap_of_product(void* heap, size_t count, size_t size, Rest... rest) {
    return allocate(MTRACE_CALLER(), product_of(count, size), kNone, heap, count, size, rest...);
  }
  template <typename... Rest>
  MTRACE_REALIGN static void* heap_of_product_zeroed(void* heap, size_t count, size_t size,
                                                     Rest... rest) {
    return allocate(MTRACE_CALLER(), product_of(count, size), kZeroed, heap, count, size, rest...);
  }

  template <typename... Rest>
  MTRACE_REALIGN static void* resized(void* old, size_t size, Rest... rest) {
    return resize(MTRACE_CALLER(), old, size, kKept,
                  [&] { return real<void*>(old, size, rest...); });
  }
  template <typename... Rest>
  MTRACE_REALIGN static void* resized_to_product(void* old, size_t count, size_t size,
                                                 Rest... rest) {
    return resize(MTRACE_CALLER(), old, product_of(count, size), kKept,
                  [&] { return real<void*>(old, count, size, rest...); });
  }
  MTRACE_REALIGN static void* resized_or_freed(void* old, size_t size) {
    return resize(MTRACE_CALLER(), old, size, kFreed, [&] { return real<void*>(old, size); });
  }
  template <typename... Rest>
  MTRACE_REALIGN static void* heap_resized(void* heap, void* old, size_t size, Rest... rest) {
    return resize(MTRACE_CALLER(), old, size, kKept,
                  [&] { return real<void*>(heap, old, size, rest...); });
  }
  template <typename... Rest>
  MTRACE_REALIGN static void* heap_resized_to_product(void* heap, void* old, size_t count,
                                                      size_t size, Rest... rest) {
    return resize(MTRACE_CALLER(), old, product_of(count, size), kKept,
                  [&] { return real<void*>(heap, old, count, size, rest...); });
  }
  MTRACE_REALIGN static void* heap_resized_or_freed(void* heap, void* old, size_t size) {
    return resize(MTRACE_CALLER(), old, size, kFreed, [&] { return real<void*>(heap, old, size); });
  }
  MTRACE_REALIGN static int resized_in_pointer(void* pointer, size_t count, size_t size) {
    auto** const place = static_cast<void**>(pointer);
    int error = 0;
    resize(MTRACE_CALLER(), place != nullptr ? *place : nullptr, product_of(count, size), kKept,
           [&]() -> void* {
             error = real<int>(pointer, count, size);
             return error == 0 && place != nullptr ? *place : nullptr;
           });
    return error;
  }
  // Resizes the block where it is, or leaves it as it is.
  MTRACE_REALIGN static void* resized_in_place(void* block, size_t size) {
    if (block == nullptr) return real<void*>(block, size);
    return resize(MTRACE_CALLER(), block, size, kInPlace, [&] { return real<void*>(block, size); });
  }
  MTRACE_REALIGN static size_t resized_in_place_by_extra(void* block, size_t size, size_t extra,
                                                         int flags) {
    const Caller caller = MTRACE_CALLER();
    before_call();
    if ((samples() && !may_be_recorded(block)) || !counting()) {
      return real<size_t>(block, size, extra, flags);
    }
    Reallocation reallocation = reallocation_of(block, caller);
    const size_t usable = real<size_t>(block, size, extra, flags);
    const AnotherAllocator guard(is_another());
    if (usable < size) {
      reallocation.failed();
      return usable;
    }
    reallocation.succeeded();
    const size_t granted = usable - size > extra ? size + extra : usable;
    entered(block, granted, caller, reallocation.moved());
    return usable;
  }

  static constexpr int kZero = 0x40;  // MALLOCX_ZERO
  MTRACE_REALIGN static void* with_flags(size_t size, int flags) {
    return allocate(MTRACE_CALLER(), size, (flags & kZero) != 0 ? kZeroed : kNone, size, flags);
  }
  MTRACE_REALIGN static void* resized_with_flags(void* old, size_t size, int flags) {
    return resize(MTRACE_CALLER(), old, size, kKept, [&] { return real<void*>(old, size, flags); });
  }

  template <typename... Rest>
  MTRACE_REALIGN static void freed_with(void* block, Rest... rest) {
    if (g_bootstrap.owns(block)) return;
    if (block != nullptr) {
      const AnotherAllocator guard(is_another());
      forget(block, kCall, MTRACE_CALLER());
    }
    t_thread.moving = block;
    real<void>(block, rest...);
    t_thread.moving = nullptr;
  }
  template <typename... Rest>
  static size_t usable(const void* block, Rest... rest) {
    if (g_bootstrap.owns(block)) return Bootstrap::size(block);
    return real<size_t>(block, rest...);
  }

  MTRACE_INLINE char* copy(Caller caller, char* text) {
    const AnotherAllocator guard(is_another());
    return static_cast<char*>(entered(text, text != nullptr ? strlen(text) + 1 : 1, caller));
  }
  template <typename... Rest>
  MTRACE_REALIGN static char* copy_of_text(const char* text, Rest... rest) {
    before_call();
    if (text == nullptr) return real<char*>(text, rest...);
    return copy(MTRACE_CALLER(), real<char*>(text, rest...));
  }
  template <typename... Rest>
  MTRACE_REALIGN static char* heap_copy_of_text(void* heap, const char* text, Rest... rest) {
    before_call();
    if (text == nullptr) return real<char*>(heap, text, rest...);
    return copy(MTRACE_CALLER(), real<char*>(heap, text, rest...));
  }
  MTRACE_REALIGN static char* path_of(const char* name, char* resolved) {
    before_call();
    char* const path = real<char*>(name, resolved);
    return resolved != nullptr || path == nullptr ? path : copy(MTRACE_CALLER(), path);
  }
  MTRACE_REALIGN static char* heap_path_of(void* heap, const char* name, char* resolved) {
    before_call();
    char* const path = real<char*>(heap, name, resolved);
    return resolved != nullptr || path == nullptr ? path : copy(MTRACE_CALLER(), path);
  }
  MTRACE_REALIGN static uint16_t* copy_of_wide_text(const uint16_t* text) {
    before_call();
    uint16_t* const fresh = real<uint16_t*>(text);
    if (text == nullptr) return fresh;
    size_t length = 0;
    while (text[length] != 0) ++length;
    const AnotherAllocator guard(is_another());
    return static_cast<uint16_t*>(entered(fresh, (length + 1) * sizeof *text, MTRACE_CALLER()));
  }
  MTRACE_REALIGN static int copy_of_variable(char** buffer, size_t* size, const char* name) {
    before_call();
    const int error = real<int>(buffer, size, name);
    if (error == 0 && buffer != nullptr && *buffer != nullptr) copy(MTRACE_CALLER(), *buffer);
    return error;
  }

  MTRACE_REALIGN static void heap_destroyed(void* heap) {
    using Visit = bool (*)(const void*, const void*, void*, size_t, void*);
    const link_map& object = *g_interfaces[kNumber].definition;
    const auto function = [&](const char* name) -> void* {
      const Elf64_Sym* symbol = unwind::find_function(object, name);
      return symbol == nullptr ? nullptr
                               : reinterpret_cast<void*>(unwind::address_of(object, *symbol));
    };
    const auto visit_blocks = reinterpret_cast<bool (*)(const void*, bool, Visit, void*)>(
        function("mi_heap_visit_blocks"));
    const auto backing = reinterpret_cast<void* (*)()>(function("mi_heap_get_backing"));
    // The blocks of the thread's own heap outlive the call.
    if (heap != nullptr && visit_blocks != nullptr && backing != nullptr && heap != backing() &&
        counting()) {
      const AnotherAllocator guard(is_another());
      visit_blocks(heap, true, forget_in_heap, nullptr);
    }
    real<void>(heap);
  }
};

}  // namespace

#define MTRACE_INTERFACE(symbol, call, ...)                                                      \
  {#symbol, reinterpret_cast<const void*>(&Hooks<kInterface_##symbol, Call::call>::__VA_ARGS__), \
   nullptr, nullptr, false},
Interface g_interfaces[kInterfaces] = {
#include "format/interfaces.def"
};
#undef MTRACE_INTERFACE

}  // namespace mtrace::hook
