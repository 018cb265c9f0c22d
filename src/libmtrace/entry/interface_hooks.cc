// The hooks of interfaces.def. Each calls the real function and counts as malloc_hooks.cc does.
//
// Calls inside the allocator do not reach these hooks (next/interfaces.cc), so a function that
// calls another one is counted once, for its own caller.
#include <errno.h>

#include <algorithm>
#include <cstring>

#include "base/machine.h"
#include "modules/linkage.h"
#include "next/interfaces.h"
#include "next/next_functions.h"
#include "record/call_form.h"
#include "record/recorder.h"
#include "record/usable_size.h"

namespace mtrace::entry {
namespace {

using unwind::Caller;

// An argument or a result: an integer or an address. No function has more than six arguments, so
// both processors pass all in registers, and a function that is given six words takes those it has.
using Word = uintptr_t;

void* pointer(Word word) { return reinterpret_cast<void*>(word); }
Word word(const void* pointer) { return reinterpret_cast<Word>(pointer); }

// Prevents queries for usable sizes of blocks that are not of malloc's allocator: that allocator
// would answer for a block it does not know.
class AnotherAllocator {
 public:
  explicit AnotherAllocator(bool elsewhere) : before_(record::t_thread.asking) {
    if (elsewhere) record::t_thread.asking = true;
  }
  ~AnotherAllocator() { record::t_thread.asking = before_; }

 private:
  bool before_;
};

// Visitor of mi_heap_visit_blocks: forgets a block of a heap that is being destroyed.
bool forget_in_heap(const void*, const void*, void* block, size_t size, void*) {
  if (block == nullptr) return true;  // the beginning of an area
  // An aligned block begins at the first aligned address of the area that the heap shows.
  const auto begin = reinterpret_cast<uintptr_t>(block);
  if (record::forget_known(block, ledger::Call::kFree)) return true;
  for (uintptr_t alignment = 16; alignment < size; alignment *= 2) {
    const uintptr_t address = (begin + alignment - 1) & ~(alignment - 1);
    if (address - begin >= size) break;
    if (address != begin &&
        record::forget_known(reinterpret_cast<void*>(address), ledger::Call::kFree))
      break;
  }
  return true;
}

struct Request;

// What a resizing call that returns nullptr leaves of the old block.
enum Failure : uint8_t {
  kKept,     // all of it, unless the new size is 0
  kFreed,    // nothing
  kInPlace,  // all of it: it is resized where it is, or not at all
};
// What the hook of a function does, and which arguments it looks at.
struct Shape {
  Word (*answer)(const Request& request);
  uint8_t block = 0;  // the old block, the text to copy or the place for the address
  uint8_t size = 0;   // bytes; also of an aligned block, whose alignment is the argument before
  int8_t count = -1;  // how many of that size; -1: one
  Failure failure = kKept;
};

// A call of one of these functions.
struct Request {
  const next::Interface& interface;
  ledger::Call call;
  const Shape& shape;
  uint64_t form;
  const Word* arguments;
  Caller caller;

  Word real() const {
    using Function = Word (*)(Word, Word, Word, Word, Word, Word);
    const auto function = reinterpret_cast<Function>(const_cast<void*>(interface.real));
    return function(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                    arguments[5]);
  }
  void* block() const { return pointer(arguments[shape.block]); }
  // Requested bytes. SIZE_MAX: more than there can be.
  size_t size() const {
    size_t product = arguments[shape.size];
    if (shape.count < 0) return product;
    return __builtin_mul_overflow(arguments[shape.count], product, &product) ? SIZE_MAX : product;
  }

  // `moved`: see record::record_block().
  Word entered(Word block, size_t size, const void* moved = nullptr) const {
    record::set_form(form);
    if (call == ledger::Call::kNew || call == ledger::Call::kNewArray)
      size = record::of_operator(size);
    return word(record::record_block(pointer(block), size, call, caller, moved));
  }
  Word counted(Word block, size_t size, bool zeroed) const {
    const AnotherAllocator guard(interface.is_another);
    if (!zeroed && !interface.is_another) record::filled(pointer(block), 0, size);
    return entered(block, size);
  }
  Word copied(Word text) const {
    const AnotherAllocator guard(interface.is_another);
    return entered(text, text != 0 ? strlen(static_cast<char*>(pointer(text))) + 1 : 1);
  }
  record::Reallocation reallocation_of(void* block) const {
    const AnotherAllocator guard(interface.is_another);
    return {block, caller};
  }
  // `real_call` returns the new block.
  template <typename Resize>
  Word resized(void* old, Resize&& real_call) const {
    const Failure failure = shape.failure;
    const size_t size = this->size();
    record::before_call();
    if (next::g_bootstrap.owns(old)) {
      const AnotherAllocator guard(interface.is_another);
      void* fresh = next::g_next.malloc(size);
      if (fresh != nullptr) memcpy(fresh, old, std::min(next::Bootstrap::size(old), size));
      return entered(word(fresh), size);
    }
    const bool may_be_known = old != nullptr &&
                              (!record::samples() || record::may_be_recorded(old)) &&
                              record::counting();
    if (!may_be_known) {
      const Word fresh = real_call();
      if (fresh == 0 && failure == kInPlace) return 0;
      const AnotherAllocator guard(interface.is_another);
      return entered(fresh, size);
    }
    record::Reallocation reallocation = reallocation_of(old);
    const Word fresh = real_call();
    const AnotherAllocator guard(interface.is_another);
    if (fresh == 0 && (failure == kInPlace || (failure == kKept && size != 0))) {
      reallocation.failed();
      return failure == kInPlace ? 0 : entered(fresh, size);
    }
    reallocation.succeeded();
    return entered(fresh, size, reallocation.moved());
  }
};

// ---- What the hooks do.

Word allocate(const Request& request) {
  record::before_call();
  return request.counted(request.real(), request.size(), request.call == ledger::Call::kCalloc);
}
Word allocate_by_flags(const Request& request) {
  constexpr Word kZero = 0x40;  // MALLOCX_ZERO
  record::before_call();
  return request.counted(request.real(), request.size(), (request.arguments[1] & kZero) != 0);
}
Word allocate_aligned(const Request& request) {
  record::before_call();
  const Word block = request.real();
  const bool refused =
      record::was_refused(pointer(block), request.arguments[request.shape.size - 1]);
  return request.counted(block, refused ? 0 : request.size(), false);
}
Word allocate_into_pointer(const Request& request) {
  record::before_call();
  const int error = static_cast<int>(request.real());
  const Word block = error == 0 ? *static_cast<Word*>(request.block()) : 0;
  request.counted(block, error == EINVAL ? 0 : request.size(), false);
  return static_cast<Word>(error);
}

Word resize(const Request& request) {
  return request.resized(request.block(), [&] { return request.real(); });
}
Word resize_in_pointer(const Request& request) {
  auto** const place = static_cast<void**>(request.block());
  int error = 0;
  request.resized(place != nullptr ? *place : nullptr, [&]() -> Word {
    error = static_cast<int>(request.real());
    return error == 0 && place != nullptr ? word(*place) : 0;
  });
  return static_cast<Word>(error);
}
// By up to argument 2 more than argument 1. Returns the usable size.
Word resize_in_place_by_extra(const Request& request) {
  void* const block = request.block();
  const size_t size = request.size();
  const size_t extra = request.arguments[2];
  record::before_call();
  if ((record::samples() && !record::may_be_recorded(block)) || !record::counting())
    return request.real();
  record::Reallocation reallocation = request.reallocation_of(block);
  const size_t usable = request.real();
  const AnotherAllocator guard(request.interface.is_another);
  if (usable < size) {
    reallocation.failed();
    return usable;
  }
  reallocation.succeeded();
  request.entered(word(block), usable - size > extra ? size + extra : usable, reallocation.moved());
  return usable;
}

Word free_block(const Request& request) {
  void* const block = request.block();
  if (next::g_bootstrap.owns(block)) return 0;
  if (block != nullptr) {
    const AnotherAllocator guard(request.interface.is_another);
    record::forget(block, request.call, request.caller);
  }
  record::t_thread.moving = block;
  request.real();
  record::t_thread.moving = nullptr;
  return 0;
}
Word usable_size(const Request& request) {
  void* const block = request.block();
  return next::g_bootstrap.owns(block) ? next::Bootstrap::size(block) : request.real();
}

Word copy_text(const Request& request) {
  record::before_call();
  const Word fresh = request.real();
  return request.block() == nullptr ? fresh : request.copied(fresh);
}
Word copy_wide_text(const Request& request) {
  record::before_call();
  const Word fresh = request.real();
  const auto* const text = static_cast<const uint16_t*>(request.block());
  if (text == nullptr) return fresh;
  size_t length = 0;
  while (text[length] != 0) ++length;
  const AnotherAllocator guard(request.interface.is_another);
  return request.entered(fresh, (length + 1) * sizeof *text);
}
Word resolve_path(const Request& request) {
  record::before_call();
  const Word path = request.real();
  return request.arguments[request.shape.block + 1] != 0 || path == 0 ? path : request.copied(path);
}
Word copy_variable(const Request& request) {
  record::before_call();
  const int error = static_cast<int>(request.real());
  const auto* const place = static_cast<Word*>(request.block());
  if (error == 0 && place != nullptr && *place != 0) request.copied(*place);
  return static_cast<Word>(error);
}

Word destroy_heap(const Request& request) {
  using Visit = bool (*)(const void*, const void*, void*, size_t, void*);
  const link_map& object = *request.interface.definition;
  const auto function = [&](const char* name) -> void* {
    const Elf64_Sym* symbol = modules::find_function(object, name);
    return symbol == nullptr ? nullptr : pointer(modules::address_of(object, *symbol));
  };
  const auto visit_blocks =
      reinterpret_cast<bool (*)(const void*, bool, Visit, void*)>(function("mi_heap_visit_blocks"));
  const auto backing = reinterpret_cast<void* (*)()>(function("mi_heap_get_backing"));
  void* const heap = pointer(request.arguments[0]);
  // The blocks of the thread's own heap outlive the call.
  if (heap != nullptr && visit_blocks != nullptr && backing != nullptr && heap != backing() &&
      record::counting()) {
    const AnotherAllocator guard(request.interface.is_another);
    visit_blocks(heap, true, forget_in_heap, nullptr);
  }
  return request.real();
}

// The names of interfaces.def.
constexpr Shape of_size = {.answer = allocate};
constexpr Shape of_product = {.answer = allocate, .size = 1, .count = 0};
constexpr Shape with_flags = {.answer = allocate_by_flags};
constexpr Shape aligned_of_size = {.answer = allocate_aligned, .size = 1};
constexpr Shape into_pointer = {.answer = allocate_into_pointer, .size = 2};
constexpr Shape resized = {.answer = resize, .size = 1};
constexpr Shape resized_to_product = {.answer = resize, .size = 2, .count = 1};
constexpr Shape resized_or_freed = {.answer = resize, .size = 1, .failure = kFreed};
constexpr Shape resized_in_place = {.answer = resize, .size = 1, .failure = kInPlace};
constexpr Shape resized_in_place_by_extra = {.answer = resize_in_place_by_extra, .size = 1};
constexpr Shape resized_in_pointer = {.answer = resize_in_pointer, .size = 2, .count = 1};
constexpr Shape freed_with = {.answer = free_block};
constexpr Shape usable = {.answer = usable_size};
constexpr Shape copy_of_text = {.answer = copy_text};
constexpr Shape copy_of_wide_text = {.answer = copy_wide_text};
constexpr Shape path_of = {.answer = resolve_path};
constexpr Shape copy_of_variable = {.answer = copy_variable};
constexpr Shape heap_destroyed = {.answer = destroy_heap};
// The same with a heap as the first argument.
constexpr Shape behind_heap(Shape shape) {
  ++shape.block;
  ++shape.size;
  if (shape.count >= 0) ++shape.count;
  return shape;
}
template <const Shape& kShape>
constexpr Shape on_heap = behind_heap(kShape);

[[gnu::noinline]] Word answer(unsigned number, ledger::Call call, const Shape& shape,
                              const Word* words, Caller caller) {
  const uint64_t form = record::form_of(format::kFirstInterface + number);
  return shape.answer({next::g_interfaces[number], call, shape, form, words, caller});
}

template <unsigned kNumber, ledger::Call kCall, const Shape& kShape>
struct Hook {
  MTRACE_REALIGN static Word run(Word a, Word b, Word c, Word d, Word e, Word f) {
    const Word words[] = {a, b, c, d, e, f};
    return answer(kNumber, kCall, kShape, words, MTRACE_CALLER());
  }
};

}  // namespace
}  // namespace mtrace::entry

namespace mtrace::next {

using namespace entry;

#define MTRACE_INTERFACE(symbol, call, shape)                                                 \
  {#symbol,                                                                                   \
   reinterpret_cast<const void*>(&Hook<kInterface_##symbol, ledger::Call::call, shape>::run), \
   nullptr, nullptr, false},
Interface g_interfaces[kInterfaces] = {
#include "format/interfaces.def"
};
#undef MTRACE_INTERFACE

}  // namespace mtrace::next
