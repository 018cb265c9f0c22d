// A request and its answer, without the library that carries them, and the server: threads, limits
// and timeouts around a handler.
#pragma once

#include "util/prelude.h"

namespace mtrace::serve {

// Gives the body of a request to `take`, part after part. Returns 0, or the status of the failure:
// 400 when the connection ended early, 413 when the body is too large. Throws what `take` throws.
using ReadBody = std::function<int(const std::function<void(std::string_view)>& take)>;

struct Request {
  std::string method;
  std::string path;                               // decoded, without the query
  std::multimap<std::string, std::string> query;  // decoded
  std::map<std::string, std::string> headers;     // names in lower case; the last of each
  ReadBody body;                                  // of a PUT or POST; may be called once
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

// Returns the next part of an answer without end; waits for it. Empty: the answer ends.
using NextPart = std::function<std::string()>;

struct Response {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  NextPart next;  // if set, sent instead of `body`
};

// Must be safe to call from several threads, and must not throw.
using Handler = std::function<Response(const Request&)>;

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

}  // namespace mtrace::serve
