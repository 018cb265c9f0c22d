// A memlog serve on another machine: what it holds, gives and takes.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "surface/fleet/http_client.h"
#include "surface/fleet/store.h"

namespace mtrace::fleet {

// The server refused a request or cannot be reached.
class ServerError : public std::runtime_error {
 public:
  enum class Kind {
    kPassing,  // it may answer later
    kReport,   // it does not want this report
    kRefusal,  // it refuses all requests like this one
  };
  ServerError(Kind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

// For one thread. All functions throw ServerError. One that the server is too busy for is tried
// again for three seconds.
class Remote {
 public:
  // `token`: empty: none is sent. Throws std::runtime_error when the HTTP client cannot be loaded.
  Remote(const HttpServerAddress& server, const std::string& token);

  struct Listing {
    std::vector<ListedReport> reports;
    uint64_t expired_until = 0;  // reports taken until then are not taken, ns since 1970
  };
  // `host`: only the reports of this directory; empty: all.
  Listing list(const std::string& host);
  // Returns the report, compressed.
  std::string read(const ReportKey& key);
  // `bytes`: a report, compressed.
  Receipt send(std::string_view bytes);
  // Appends to the event log `name` if it has `at` bytes there. Returns how many it has then.
  // Without bytes it only asks.
  uint64_t append_log(const std::string& name, uint64_t at, std::string_view bytes);

 private:
  ServerError not_ours() const;
  std::string ask(const std::string& method, const std::string& path, std::string_view body = "");

  std::string url_;
  std::string token_;
  std::unique_ptr<HttpClient> client_;
};

}  // namespace mtrace::fleet
