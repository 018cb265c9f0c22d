// Calls each form of operator new and delete that C++17 has, once, and reports before and after.
#include <mtrace.h>

#include <new>

namespace {
void* volatile g_sink;
void* opaque(void* block) {
  g_sink = block;
  return g_sink;
}
}  // namespace

int main() {
  constexpr std::align_val_t kAlignment{64};
  mtrace_report();
  ::operator delete(opaque(::operator new(10)));
  ::operator delete(opaque(::operator new(11)), 11);
  ::operator delete(opaque(::operator new(12, std::nothrow)), std::nothrow);
  ::operator delete(opaque(::operator new(64, kAlignment)), kAlignment);
  ::operator delete(opaque(::operator new(65, kAlignment)), 65, kAlignment);
  ::operator delete(opaque(::operator new(66, kAlignment, std::nothrow)), kAlignment, std::nothrow);
  ::operator delete[](opaque(::operator new[](10)));
  ::operator delete[](opaque(::operator new[](11)), 11);
  ::operator delete[](opaque(::operator new[](12, std::nothrow)), std::nothrow);
  ::operator delete[](opaque(::operator new[](64, kAlignment)), kAlignment);
  ::operator delete[](opaque(::operator new[](65, kAlignment)), 65, kAlignment);
  ::operator delete[](opaque(::operator new[](66, kAlignment, std::nothrow)), kAlignment,
                      std::nothrow);
  mtrace_report();
}
