#include "model/symbols/demangle.h"

// Otherwise libiberty.h declares a basename() that differs from <cstring>'s.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

#include <cstdlib>
#include <cstring>
#include <memory>

namespace mtrace::symbols {
namespace {

struct Free {
  void operator()(char* text) const { std::free(text); }
};

}  // namespace

std::string demangle(const char* name) {
  // glibc's name for its own calls of a public function: people know the public one.
  if (std::strncmp(name, "__GI_", 5) == 0 && name[5] != '\0') name += 5;
  // Only what begins like a mangled name: the demangler would also take plain C names apart.
  if (std::strncmp(name, "_Z", 2) != 0 && std::strncmp(name, "_R", 2) != 0) return name;
  const std::unique_ptr<char, Free> plain(
      cplus_demangle(name, DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI));
  return plain == nullptr || *plain == '\0' ? name : plain.get();
}

}  // namespace mtrace::symbols
