// A client of memlog serve on loopback.
#pragma once

#include <map>
#include <string>

namespace mtrace::test {

struct HttpAnswer {
  int status = 0;                              // 0: the connection ended without an answer
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// A connection to 127.0.0.1, from this address if one is given. Closed by the destructor.
class HttpConnection {
 public:
  explicit HttpConnection(int port, const char* from = nullptr);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Returns false when the server has closed the connection.
  bool send(const std::string& text);
  // Reads until `end` has come, or the end of the connection; returns what came.
  std::string read_until(const std::string& end);
  std::string read_all() { return read_until(""); }

 private:
  int socket_;
  std::string got_;
};

// One request with these headers besides Host, which they may replace.
HttpAnswer http(int port, const std::string& method, const std::string& target,
                std::map<std::string, std::string> headers = {});
// A socket bound to a port of 127.0.0.1, which does not listen yet. The caller closes it.
int socket_at_free_port(int& port);
// A port of 127.0.0.1 at which nobody listens.
int free_port();
HttpAnswer parse_answer(const std::string& text);

// NAME.pem and NAME.key in `directory`, for an address and signed by itself.
void make_certificate(const std::string& directory, const std::string& name,
                      const std::string& address = "127.0.0.1");

}  // namespace mtrace::test
