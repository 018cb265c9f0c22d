// Exceptions and jumps that leave operator new, callbacks and threads; after each, allocations are
// still counted. See truth.h.
#include <setjmp.h>

#include <new>
#include <stdexcept>
#include <string>

#include "truth.h"

namespace {

void* kept[8];
jmp_buf place;
const size_t kHuge = static_cast<size_t>(-1) / 4;

struct Gone {};

}  // namespace

extern "C" {
SITE void site_handler_throws() {
  std::set_new_handler([] { throw Gone(); });
  for (int i = 0; i < 20; ++i) {
    try {
      opaque(::operator new(sized(kHuge)));
      check(false, "no exception");
    } catch (const Gone&) {
    }
  }
  std::set_new_handler(nullptr);
  kept[0] = opaque(::operator new(sized(100)));
  HOLD(100);
}
SITE void site_handler_jumps() {
  std::set_new_handler([] { longjmp(place, 1); });
  static int round;
  for (round = 0; round < 20; ++round) {
    if (setjmp(place) == 0) {
      opaque(::operator new(sized(kHuge)));
      check(false, "no jump");
    }
  }
  std::set_new_handler(nullptr);
  kept[1] = opaque(::operator new(sized(200)));
  HOLD(200);
}
SITE void site_through_qsort() {
  int numbers[64];
  for (int i = 0; i < 64; ++i) numbers[i] = 64 - i;
  try {
    qsort(numbers, 64, sizeof(int), [](const void*, const void*) -> int {
      const std::string reason(sized(300), 'x');
      throw std::runtime_error(reason);
    });
    check(false, "no exception");
  } catch (const std::runtime_error& error) {
    check(strlen(error.what()) == 300, "what()");
  }
  kept[2] = malloc(sized(300));
  HOLD(300);
}
SITE void site_deep() {
  struct Deep {
    static void go(int depth) {
      const std::string text(sized(64) + static_cast<size_t>(depth), 'y');
      if (depth == 200) throw std::runtime_error(text);
      go(depth + 1);
      asm volatile("" : : "r"(text.data()) : "memory");
    }
  };
  for (int i = 0; i < 50; ++i) {
    try {
      Deep::go(0);
    } catch (const std::runtime_error&) {
    }
  }
  kept[3] = malloc(sized(400));
  HOLD(400);
}
SITE void site_after_cancellation() {
  kept[4] = malloc(sized(500));
  HOLD(500);
}
// Cancellation unwinds through the thread's frames. (A thread costs memory that libc keeps.)
void cancel_a_thread() {
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        const std::string text(sized(500), 'z');
        for (;;) {
          pause();
          asm volatile("" : : "r"(text.data()) : "memory");
        }
      },
      nullptr);
  pthread_cancel(thread);
  void* result;
  pthread_join(thread, &result);
  check(result == PTHREAD_CANCELED, "cancel");
}
}

int main(int argc, char** argv) {
  begin(argc, argv);
  site_handler_throws();
  site_handler_jumps();
  site_through_qsort();
  site_deep();
  cancel_a_thread();
  site_after_cancellation();
  tell(1);
  return 0;
}
