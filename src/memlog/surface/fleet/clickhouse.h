// A ClickHouse server, by its HTTP interface.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "surface/fleet/http_client.h"

namespace mtrace::fleet {

struct ClickHouseAddress {
  HttpServerAddress server;
  std::string database;
  std::string user;  // empty: the server's default
};

// Reads "clickhouse://[USER@]HOST[:PORT][/DATABASE]"; port 8123 and database "default" unless they
// are named. "clickhouses://" is encrypted; its port is 8443. Throws std::runtime_error that says
// what an address looks like.
ClickHouseAddress read_clickhouse_url(const std::string& url);

// For one thread.
class ClickHouse {
 public:
  // Throws std::runtime_error when the HTTP client cannot be loaded.
  ClickHouse(const ClickHouseAddress& address, const std::string& password);

  // Returns the answer to a statement; `rows` follows an INSERT. Throws ServerError, passing when
  // the server cannot be reached or has too much to do.
  std::string ask(const std::string& statement, std::string_view rows = "");

 private:
  std::string url_;
  std::string target_;
  HttpHeaders headers_;
  std::unique_ptr<HttpClient> client_;
};

}  // namespace mtrace::fleet
