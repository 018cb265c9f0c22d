// A C++ plug-in: operator new and exceptions in a program that has no C++ of its own.
#include <new>
#include <string>
#include <vector>

#define SITE __attribute__((noinline, visibility("default")))

namespace {
std::vector<std::string*> kept;
}

extern "C" {
SITE int site_plugin(unsigned count) {
  kept.reserve(kept.size() + count);
  for (unsigned i = 0; i < count; ++i) kept.push_back(new std::string(1000, 'p'));
  return static_cast<int>(kept.size());
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
