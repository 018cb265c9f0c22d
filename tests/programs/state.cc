// What a call of malloc and free, and a signal that writes a report, leave alone: errno, the modes
// of the floating-point units, registers that functions preserve, memory below the caller's frame,
// and how much of the stack they use ("thread again FUNCTION", in bytes).
#include <fenv.h>
#include <malloc.h>
#include <ucontext.h>
#include <xmmintrin.h>

#include <cstdint>
#include <initializer_list>

#include "truth.h"

extern "C" void call_with_values(void (*function)(), uint64_t* after);
asm(R"(
  .type call_with_values, @function
call_with_values:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  push %rsi
  mov $0x1111111111111111, %rbx
  mov $0x2222222222222222, %r12
  mov $0x3333333333333333, %r13
  mov $0x4444444444444444, %r14
  mov $0x5555555555555555, %r15
  call *%rdi
  pop %rax
  mov %rbx, 0(%rax)
  mov %r12, 8(%rax)
  mov %r13, 16(%rax)
  mov %r14, 24(%rax)
  mov %r15, 32(%rax)
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
  .size call_with_values, . - call_with_values
)");

// With a stack pointer that is no multiple of 16 where the ABI asks for one.
extern "C" void call_misaligned(void (*function)());
asm(R"(
  .type call_misaligned, @function
call_misaligned:
  .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  mov %rsp, %rbp
  .cfi_def_cfa_register %rbp
  sub $8, %rsp
  call *%rdi
  leave
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size call_misaligned, . - call_misaligned
)");

namespace {

constexpr unsigned kMxcsr = 0x1f80 | 0x6000 | 0x8040;  // toward zero, flush and denormals to zero
constexpr unsigned short kControl = 0x0f7f;            // toward zero, extended precision

unsigned mxcsr() { return _mm_getcsr(); }
unsigned short control() {
  unsigned short word;
  asm volatile("fnstcw %0" : "=m"(word));
  return word;
}

void* g_blocks[1000];
int g_held;

void one_malloc() { g_blocks[g_held++] = malloc(sized(100)); }
void one_calloc() { g_blocks[g_held++] = calloc(1, sized(50)); }
void one_memalign() { g_blocks[g_held++] = memalign(64, sized(50)); }
void one_realloc() { g_blocks[g_held - 1] = realloc(g_blocks[g_held - 1], sized(500)); }
void one_free() { free(g_blocks[--g_held]); }
void one_report() {
  if (truth_signals) raise(SIGUSR1);
}

struct Call {
  const char* name;
  void (*function)();
};
constexpr Call kCalls[] = {{"malloc", one_malloc},     {"calloc", one_calloc},
                           {"memalign", one_memalign}, {"realloc", one_realloc},
                           {"free", one_free},         {"report", one_report}};

// The registers that a function preserves, with values of their own before the call.
bool preserves_registers(void (*function)()) {
  uint64_t after[5] = {};
  call_with_values(function, after);
  for (uint64_t i = 0; i < 5; ++i) {
    if (after[i] != 0x1111111111111111u * (i + 1)) return false;
  }
  return true;
}

// A signal comes between two instructions: then all of the state is the program's, the words below
// the stack pointer too. The signal is sent by the instruction in the middle.
bool survives_signal() {
  alignas(64) unsigned char in[32];
  alignas(64) unsigned char out[32] = {};
  for (int i = 0; i < 32; ++i) in[i] = static_cast<unsigned char>(i * 7 + 1);
  const pid_t pid = getpid();
  uint64_t red_zone = 0;
  if (__builtin_cpu_supports("avx")) {
    asm volatile(
        "vmovdqa (%[in]), %%ymm0\n\tvmovdqa (%[in]), %%ymm15\n\t"
        "movq $0x1234567, -128(%%rsp)\n\tmovq $0x7654321, -8(%%rsp)\n\t"
        "mov $62, %%eax\n\tmov %[pid], %%edi\n\tmov $10, %%esi\n\tsyscall\n\t"  // kill
        "mov -128(%%rsp), %[red]\n\txor -8(%%rsp), %[red]\n\t"
        "vpxor %%ymm0, %%ymm15, %%ymm1\n\tvptest %%ymm1, %%ymm1\n\t"
        "setnz %%al\n\tmovzbl %%al, %%eax\n\tshl $40, %%rax\n\tor %%rax, %[red]\n\t"
        "vmovdqa %%ymm15, (%[out])\n\t"
        : [red] "+&r"(red_zone)
        : [in] "r"(in), [out] "r"(out), [pid] "r"(pid)
        : "rax", "rdi", "rsi", "rcx", "r11", "memory", "cc", "xmm0", "xmm1", "xmm15");
    return red_zone == (0x1234567u ^ 0x7654321u) && memcmp(in, out, 32) == 0;
  }
  return true;
}

// ---- How deep below the caller's frame a call writes: on a stack of its own that was painted.

constexpr size_t kStack = 256 * 1024;
alignas(64) char g_stack[kStack];
ucontext_t g_outside;
ucontext_t g_inside;
void (*g_measured)();
uintptr_t g_from;

void paint_and_call() {
  // Well below this frame, so that painting does not disturb what paints.
  auto* low = reinterpret_cast<volatile char*>(g_stack);
  g_from = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - 256;
  const size_t length = g_from - reinterpret_cast<uintptr_t>(g_stack);
  for (size_t i = 0; i < length; ++i) low[i] = 0x5a;
  g_measured();
}

void measure(const char* when, const char* name, void (*function)()) {
  g_measured = function;
  getcontext(&g_inside);
  g_inside.uc_stack.ss_sp = g_stack;
  g_inside.uc_stack.ss_size = kStack;
  g_inside.uc_link = &g_outside;
  makecontext(&g_inside, paint_and_call, 0);
  swapcontext(&g_outside, &g_inside);
  size_t untouched = 0;
  while (untouched < kStack && g_stack[untouched] == 0x5a) ++untouched;
  const uintptr_t deepest = reinterpret_cast<uintptr_t>(g_stack) + untouched;
  printf("%s %s %ld\n", when, name, static_cast<long>(g_from + 256 - deepest));
}

// On the thread's own stack, which the walk trusts: painted below the current frame.
__attribute__((noinline)) size_t measure_here(void (*function)()) {
  constexpr size_t kDepth = 16384;
  auto* base = static_cast<volatile char*>(__builtin_frame_address(0));
  // Between the frame of this function and what it calls lie at most so many bytes of its own.
  for (size_t i = 512; i < kDepth; ++i) base[-static_cast<long>(i)] = 0x5a;
  function();
  size_t deepest = kDepth - 1;
  while (deepest > 512 && base[-static_cast<long>(deepest)] == 0x5a) --deepest;
  return deepest;
}

// The first call from a new caller, and those that follow from there.
void* measure_in_thread(void*) {
  for (const Call& call : kCalls) {
    size_t first = 0;
    size_t again = 0;
    for (int round = 0; round < 40; ++round) {
      const size_t depth = measure_here(call.function);
      if (round == 0) first = depth;
      if (round > 0 && depth > again) again = depth;
    }
    printf("thread first %s %zu\nthread again %s %zu\n", call.name, first, call.name, again);
  }
  return nullptr;
}

}  // namespace

int main() {
  truth_signals = getenv("LD_PRELOAD") != nullptr;
  for (const Call& call : kCalls) {  // also the first from its place
    if (call.function != one_report) call_misaligned(call.function);
  }
  const unsigned old_mxcsr = mxcsr();
  const unsigned short old_control = control();
  for (int round = 0; round < 3; ++round) {
    for (const Call& call : kCalls) {
      const unsigned short word = kControl;
      asm volatile("fldcw %0" : : "m"(word));
      _mm_setcsr(kMxcsr);
      errno = 77;
      call.function();
      const bool same_error = errno == 77;
      const bool same_mode = mxcsr() == kMxcsr && control() == kControl;
      asm volatile("fldcw %0" : : "m"(old_control));
      _mm_setcsr(old_mxcsr);
      check(same_error, "errno");
      check(same_mode, "modes of the floating-point units");
    }
    for (const Call& call : kCalls) check(preserves_registers(call.function), "registers");
    if (truth_signals) check(survives_signal(), "state at a signal");
  }
  for (const char* when : {"fiber first", "fiber again"}) {
    for (const Call& call : kCalls) measure(when, call.name, call.function);
  }
  pthread_t thread;
  pthread_create(&thread, nullptr, measure_in_thread, nullptr);
  pthread_join(thread, nullptr);
  puts("fine");
  return 0;
}
