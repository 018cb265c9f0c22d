// As churn.cc's pairs, of operator new and the sized operator delete of libstdc++, which a program
// in C cannot call. For the count of instructions alone.
//
//   news PAIRS   one stack, 12 nested calls
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

// Each call stays a call.
#if defined(__clang__)
#define NEST __attribute__((noinline))
#else
#define NEST __attribute__((noipa))
#endif

namespace {

template <int Depth>
NEST void nested(long pairs) {
  if constexpr (Depth > 1) {
    nested<Depth - 1>(pairs);
    __asm__ volatile("" ::: "memory");
  } else {
    for (long i = 0; i < pairs; ++i) {
      const auto size = static_cast<size_t>(16 + i % 512);
      void* volatile block = operator new(size);
      operator delete(block, size);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const long pairs = argc == 2 ? atol(argv[1]) : 0;
  if (pairs <= 0) {
    fputs("news PAIRS\n", stderr);
    return 2;
  }
  nested<12>(pairs);
  return 0;
}
