// One site for each form of operator new, and containers; see truth.h.
#include <functional>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "truth.h"

namespace {

struct alignas(128) Wide {
  char data[256];
};
struct Thrower {
  Thrower() { throw 1; }
  char data[777];
};
struct Part {
  int number;
  ~Part() { number = 0; }
};

void* kept[16];
std::vector<char>* vector_kept;
std::string* string_kept;
std::map<int, int>* map_kept;
std::function<int()>* function_kept;
Wide* wide_kept;
Part* parts_kept;

}  // namespace

extern "C" {

#define NEWS(name, slot, bytes, call) \
  SITE void site_##name() {           \
    kept[slot] = opaque(call);        \
    HOLD(bytes);                      \
  }
NEWS(new, 0, 1234, ::operator new(sized(1234)))
NEWS(new_array, 1, 2345, ::operator new[](sized(2345)))
NEWS(new_nothrow, 2, 345, ::operator new(sized(345), std::nothrow))
NEWS(new_array_nothrow, 3, 456, ::operator new[](sized(456), std::nothrow))
// libstdc++'s aligned operator new asks aligned_alloc for the size rounded up to the alignment, so
// these sizes are multiples of it.
NEWS(new_aligned, 4, 512, ::operator new(sized(512), std::align_val_t(64)))
NEWS(new_array_aligned, 5, 768, ::operator new[](sized(768), std::align_val_t(128)))
NEWS(new_aligned_nothrow, 6, 1024, ::operator new(sized(1024), std::align_val_t(256), std::nothrow))
NEWS(new_array_aligned_nothrow, 7, 4096,
     ::operator new[](sized(4096), std::align_val_t(4096), std::nothrow))
SITE void site_new_zero() {
  kept[8] = opaque(::operator new(sized(0)));
  // libstdc++ asks malloc for one byte.
  check(kept[8] != nullptr, "operator new(0)");
  HOLD(1);
}
SITE void site_object() {
  wide_kept = opaque(new Wide);
  check(reinterpret_cast<size_t>(wide_kept) % 128 == 0, "alignment of an object");
  HOLD(sizeof(Wide));
}
SITE void site_parts() {
  // The number of elements is kept in front of them.
  parts_kept = opaque(new Part[sized(10)]);
  HOLD(10 * sizeof(Part) + sizeof(size_t));
}
SITE void site_vector() {
  vector_kept = opaque(new std::vector<char>(sized(10000)));
  HOLD(sizeof(std::vector<char>));
  HOLD(10000);
}
SITE void site_string() {
  string_kept = opaque(new std::string(sized(500), 'x'));
  HOLD(sizeof(std::string));
  HOLD(string_kept->capacity() + 1);
}
SITE void site_map() {
  map_kept = opaque(new std::map<int, int>);
  HOLD(sizeof(std::map<int, int>));
  for (int i = 0; i < 50; ++i) {
    (*map_kept)[i] = i;
    HOLD(sizeof(std::_Rb_tree_node<std::pair<const int, int>>));
  }
}
SITE void site_function() {
  char large[200] = {};
  function_kept = opaque(new std::function<int()>([large] { return large[0]; }));
  HOLD(sizeof(std::function<int()>));
  HOLD(200);
}
SITE void site_constructor_throws() {
  try {
    opaque(new Thrower);
    check(false, "no exception");
  } catch (int) {
  }
  NO_TAIL;
}
SITE void site_new_fails() {
  // More than there are addresses for, but less than the largest size.
  const size_t huge = sized(static_cast<size_t>(-1) / 4);
  for (int i = 0; i < 10; ++i) {
    try {
      opaque(::operator new(huge));
      check(false, "no bad_alloc");
    } catch (const std::bad_alloc&) {
    }
    try {
      opaque(::operator new[](huge, std::align_val_t(64)));
      check(false, "no bad_alloc");
    } catch (const std::bad_alloc&) {
    }
    check(opaque(::operator new(huge, std::nothrow)) == nullptr, "nothrow");
  }
  // After an exception went through it, the next allocation is still counted.
  kept[9] = opaque(::operator new(sized(88)));
  HOLD(88);
}
SITE void site_new_handler() {
  static int calls;
  calls = 0;
  static void* reserve;
  reserve = nullptr;
  std::set_new_handler([] {
    // Allocates itself, then gives up at the third call.
    free(reserve);
    reserve = malloc(sized(64));
    if (++calls == 3) std::set_new_handler(nullptr);
  });
  try {
    opaque(::operator new(sized(static_cast<size_t>(-1) / 4)));
    check(false, "no bad_alloc");
  } catch (const std::bad_alloc&) {
  }
  check(calls == 3, "calls of the new handler");
  // The lambda's frames are below this one.
  HOLD(64);
  kept[10] = reserve;
}
SITE void site_deletes() {
  ::operator delete(opaque(::operator new(sized(10))));
  ::operator delete(opaque(::operator new(sized(11))), sized(11));
  ::operator delete[](opaque(::operator new[](sized(12))));
  ::operator delete[](opaque(::operator new[](sized(13))), sized(13));
  ::operator delete(opaque(::operator new(sized(14))), std::nothrow);
  ::operator delete[](opaque(::operator new[](sized(15))), std::nothrow);
  ::operator delete(opaque(::operator new(sized(64), std::align_val_t(64))), std::align_val_t(64));
  ::operator delete(opaque(::operator new(sized(128), std::align_val_t(64))), sized(128),
                    std::align_val_t(64));
  ::operator delete[](opaque(::operator new[](sized(192), std::align_val_t(64))),
                      std::align_val_t(64));
  ::operator delete[](opaque(::operator new[](sized(256), std::align_val_t(64))), sized(256),
                      std::align_val_t(64));
  ::operator delete(opaque(::operator new(sized(320), std::align_val_t(64))), std::align_val_t(64),
                    std::nothrow);
  ::operator delete[](opaque(::operator new[](sized(384), std::align_val_t(64))),
                      std::align_val_t(64), std::nothrow);
  ::operator delete(nullptr);
  NO_TAIL;
}

}  // extern "C"

int main(int argc, char** argv) {
  begin(argc, argv);
  site_new();
  site_new_array();
  site_new_nothrow();
  site_new_array_nothrow();
  site_new_aligned();
  site_new_array_aligned();
  site_new_aligned_nothrow();
  site_new_array_aligned_nothrow();
  site_new_zero();
  site_object();
  site_parts();
  site_vector();
  site_string();
  site_map();
  site_function();
  site_constructor_throws();
  site_new_fails();
  site_new_handler();
  tell(1);

  ::operator delete(kept[0]);
  DROP(new, 1234);
  ::operator delete[](kept[5], std::align_val_t(128));
  DROP(new_array_aligned, 768);
  delete map_kept;
  DROP(map, sizeof(std::map<int, int>));
  for (int i = 0; i < 50; ++i) DROP(map, sizeof(std::_Rb_tree_node<std::pair<const int, int>>));
  delete[] parts_kept;
  DROP(parts, 10 * sizeof(Part) + sizeof(size_t));
  tell(2);

  site_deletes();
  tell(3);
  return 0;
}
