// A C++ plug-in: operator new and exceptions in a program that has no C++ of its own.
#include <new>
#include <string>
#include <vector>

#define SITE __attribute__((noinline, visibility("default")))

namespace {
std::vector<std::string*> kept;
void* volatile aligned[6];
}  // namespace

extern "C" {
SITE int site_plugin(unsigned count) {
  kept.reserve(kept.size() + count);
  for (unsigned i = 0; i < count; ++i) kept.push_back(new std::string(1000, 'p'));
  return static_cast<int>(kept.size());
}
SITE void site_forms() {
  constexpr std::align_val_t kAlignment{64};
  aligned[0] = ::operator new(1000, kAlignment);
  aligned[1] = ::operator new[](1001, kAlignment);
  aligned[2] = ::operator new(1002, kAlignment, std::nothrow);
  aligned[3] = ::operator new[](1003, kAlignment, std::nothrow);
  aligned[4] = ::operator new(1004, std::nothrow);
  aligned[5] = ::operator new[](1005, std::nothrow);
}
SITE int plugin_fails(unsigned long size) {
  volatile unsigned long huge = size;
  try {
    void* p = ::operator new(huge);
    ::operator delete(p);
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}
// Gives back all but the last `rest` strings.
SITE void plugin_release(unsigned rest) {
  while (kept.size() > rest) {
    delete kept.back();
    kept.pop_back();
  }
}
}
