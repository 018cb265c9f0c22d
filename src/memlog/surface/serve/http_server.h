// The HTTP server: threads, limits and timeouts around a handler.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "surface/serve/http.h"

namespace mtrace::serve {

struct Limits {
  size_t connections = 64;                // at a time, half of them of one address; a further one
                                          // gets status 503
  size_t request_bytes = 65536;           // of the request line and all headers
  size_t body_bytes = 256 << 20;          // of the body of a PUT; other bodies are not read
  std::chrono::seconds request_time{10};  // from the connection to the end of the request's headers
  std::chrono::seconds body_time{300};    // from then to the end of the body
  std::chrono::seconds answer_time{120};  // from then to the end of the answer
  double rate = 100;  // requests a second of one address, and twice as many at once; a further one
                      // gets status 429. 0: no limit
};

// Files in PEM format for an encrypted connection.
struct TlsFiles {
  std::string certificate;  // of this server, and of those that signed it; empty: no encryption
  std::string key;          // of the certificate
  std::string
      client_ca;  // clients must have a certificate that one of these signed; empty: not asked
};

class HttpServer {
 public:
  HttpServer() = default;
  virtual ~HttpServer() = default;
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Answers requests at the listening socket, one a connection, until stop(). Closes it.
  virtual void serve(int listening) = 0;
  // Ends serve() from another thread, also before it has begun. NextPart functions must end by
  // themselves soon after.
  virtual void stop() = 0;
};

// What memlog-http.so exports: stores a new server. Throws std::runtime_error that names the file
// of `tls` that cannot be used.
using MakeHttpServer = void(Handler handler, const Limits& limits, const TlsFiles& tls,
                            std::unique_ptr<HttpServer>& server);
inline constexpr char kMakeHttpServer[] = "memlog_make_http_server";

// Loads memlog-http.so, which stays loaded, and returns a server. Throws std::runtime_error when it
// is not installed or a library that it needs is missing, or a file of `tls` cannot be used.
std::unique_ptr<HttpServer> load_http_server(Handler handler, const Limits& limits,
                                             const TlsFiles& tls);

}  // namespace mtrace::serve
