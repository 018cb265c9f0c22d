// Loses nine blocks, each with two that hang on it, by nine paths to one function, which keeps what
// it makes in registers and on its stack meanwhile. Prints "ready", and waits for its input to end.
#include "truth.h"

namespace {

struct Buffer {
  char* bytes;
  long unused;
};
struct Session {
  long id;
  Buffer* buffer;
};

template <typename T>
T* make() {
  return static_cast<T*>(calloc(1, sizeof(T)));
}

[[gnu::noinline]] Session* session(size_t bytes) {
  Session* made = make<Session>();
  made->buffer = make<Buffer>();
  made->buffer->bytes = static_cast<char*>(calloc(1, bytes));
  return made;
}

template <int kPath>
[[gnu::noinline]] void lose() {
  const Session* lost = session(10000 + kPath);
  asm volatile("" : : "r"(lost));
}

}  // namespace

int main() {
  lose<1>();
  lose<2>();
  lose<3>();
  lose<4>();
  lose<5>();
  lose<6>();
  lose<7>();
  lose<8>();
  lose<9>();
  wipe_stack();
  print("ready");
  while (getchar() != EOF) {
  }
}
