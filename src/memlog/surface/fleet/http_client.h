// Requests to HTTP servers.
#pragma once

#include "util/prelude.h"

namespace mtrace::fleet {

struct HttpAnswer {
  int status = 0;  // 0: there was no answer
  std::string body = {};
  std::string failure = {};  // why there was none
  bool ended = false;        // there was none since the server closed the connection
  bool untrusted = false;    // there was none since nothing trusted signs the server's certificate
};

struct HttpServerAddress {
  std::string origin;   // "http://web3:7040", "https://web3"
  std::string path;     // of the URL, without a slash at its end; empty: none
  std::string ca_file;  // certificates that may sign the server's; empty: the system's
};

// Whether a text begins like what read_url() reads.
bool is_url(const std::string& text);
// Reads "http://web3:7040/prefix" or "https://...". Throws std::runtime_error that says what a URL
// looks like.
HttpServerAddress read_url(const std::string& url);

using HttpHeaders = std::map<std::string, std::string>;

// For one thread. Waits at most 10 s for a connection and 120 s for each part of an answer.
class HttpClient {
 public:
  HttpClient() = default;
  virtual ~HttpClient() = default;
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // `target`: path and query, encoded as in a URL. `method`: GET, PUT or POST.
  virtual HttpAnswer ask(const std::string& method, const std::string& target,
                         const HttpHeaders& headers, std::string_view body) = 0;
};

// What memlog-http.so exports: stores a new client.
using MakeHttpClient = void(const HttpServerAddress& server, std::unique_ptr<HttpClient>& client);
inline constexpr char kMakeHttpClient[] = "memlog_make_http_client";

// Loads memlog-http.so, which stays loaded, and returns a client. Throws std::runtime_error when it
// is not installed or a library that it needs is missing.
std::unique_ptr<HttpClient> load_http_client(const HttpServerAddress& server);

}  // namespace mtrace::fleet
