#include <utility>

#include "surface/fleet/remote.h"
#include "surface/serve/http_server.h"

namespace mtrace::serve {

std::unique_ptr<HttpServer> load_http_server(Handler handler, const Limits& limits,
                                             const TlsFiles& tls) {
  void* const make = fleet::http_module_function(kMakeHttpServer, "server");
  std::unique_ptr<HttpServer> server;
  reinterpret_cast<MakeHttpServer*>(make)(std::move(handler), limits, tls, server);
  return server;
}

}  // namespace mtrace::serve
