#include "fleet/http_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "target/preload.h"

namespace mtrace::fleet {

void* http_module_function(const char* name, const char* what) {
  const std::string path = target::find_installed("mtrace/memlog-http.so");
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* found = library != nullptr ? ::dlsym(library, name) : nullptr;
  if (found != nullptr) return found;
  throw std::runtime_error(fmt::format(
      "cannot load the HTTP {}: {}; on Debian, install libcpp-httplib0.11", what, ::dlerror()));
}

}  // namespace mtrace::fleet
