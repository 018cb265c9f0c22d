// Calls the allocation functions with a stack pointer that is 8 bytes off what the ABI asks for, as
// old assembly and some compilers do. libc's own functions stand that.
#include <malloc.h>

#include <new>

#include "truth.h"

// function(a, b, c).
extern "C" void* call_misaligned(const void* function, unsigned long a, unsigned long b,
                                 unsigned long c);
asm(R"(
  .text
  .type call_misaligned, @function
call_misaligned:
  .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  mov %rsp, %rbp
  .cfi_def_cfa_register %rbp
  and $-16, %rsp
  sub $8, %rsp
  mov %rdi, %rax
  mov %rsi, %rdi
  mov %rdx, %rsi
  mov %rcx, %rdx
  call *%rax
  leave
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size call_misaligned, . - call_misaligned
)");

namespace {

unsigned long word(void* pointer) { return reinterpret_cast<unsigned long>(pointer); }

template <typename Function>
void* call(Function* function, unsigned long a, unsigned long b = 0, unsigned long c = 0) {
  return call_misaligned(reinterpret_cast<const void*>(function), a, b, c);
}

using New = void*(size_t);
using NothrowNew = void*(size_t, const std::nothrow_t&) noexcept;
using AlignedNew = void*(size_t, std::align_val_t);
using Delete = void(void*) noexcept;
using SizedDelete = void(void*, size_t) noexcept;
using AlignedDelete = void(void*, std::align_val_t) noexcept;

void* round(void* with_operators) {
  free(malloc(1));  // in a new thread libc's own needs the alignment
  void* block = call(malloc, 100);
  block = call(realloc, word(block), 300);
  block = call(realloc, word(block), 30000);
  memset(block, 1, 30000);
  call(malloc_usable_size, word(block));
  call(free, word(block));
  call(free, word(call(calloc, 10, 10)));
  call(free, word(call(memalign, 64, 100)));
  call(free, word(call(aligned_alloc, 64, 128)));
  void* aligned = nullptr;
  call(posix_memalign, word(&aligned), 64, 100);
  call(free, word(aligned));
  call(free, word(call(reallocarray, 0, 10, 10)));
  if (with_operators == nullptr) return nullptr;
  call(static_cast<Delete*>(operator delete), word(call(static_cast<New*>(operator new), 100)));
  call(static_cast<SizedDelete*>(operator delete),
       word(call(static_cast<NothrowNew*>(operator new), 100, word(nullptr))), 100);
  call(static_cast<Delete*>(operator delete[]), word(call(static_cast<New*>(operator new[]), 100)));
  call(static_cast<AlignedDelete*>(operator delete),
       word(call(static_cast<AlignedNew*>(operator new), 100, 64)), 64);
  return nullptr;
}

}  // namespace

// Argument 1, if any: without operators.
int main(int argc, char**) {
  void* with_operators = argc > 1 ? nullptr : &argc;
  for (int i = 0; i < 100; ++i) round(with_operators);  // the first is from callers not known yet
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    pthread_create(&thread, nullptr, round, with_operators);
    pthread_join(thread, nullptr);
  }
  static void* kept[10];
  for (void*& one : kept) one = call(malloc, 1000);
  // As emulators enter handlers. Read past sigaction(), which shows none of the library's.
  struct {
    void (*handler)(int) = nullptr;
    unsigned long flags = 0;
    void* restorer = nullptr;
    unsigned long mask = 0;
  } action;
  syscall(SYS_rt_sigaction, SIGUSR1, nullptr, &action, sizeof action.mask);
  if (action.handler != nullptr) call(action.handler, SIGUSR1);
  puts("fine");
  return 0;
}
