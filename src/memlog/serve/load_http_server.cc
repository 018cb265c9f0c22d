#include <dlfcn.h>
#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "serve/http_server.h"
#include "target/preload.h"

namespace mtrace::serve {

std::unique_ptr<HttpServer> load_http_server(Handler handler, const Limits& limits,
                                             const TlsFiles& tls) {
  const std::string path = target::find_installed("mtrace/memlog-http.so");
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* found = library != nullptr ? ::dlsym(library, kMakeHttpServer) : nullptr;
  if (found == nullptr) {
    throw std::runtime_error(fmt::format(
        "cannot load the HTTP server: {}; on Debian, install libcpp-httplib0.11", ::dlerror()));
  }
  std::unique_ptr<HttpServer> server;
  reinterpret_cast<MakeHttpServer*>(found)(std::move(handler), limits, tls, server);
  return server;
}

}  // namespace mtrace::serve
