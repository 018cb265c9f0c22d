// The address that memlog serve listens at, and who may ask it for what.
#pragma once

#include <sys/types.h>

#include "surface/serve/http.h"
#include "util/file.h"
#include "util/prelude.h"

namespace mtrace::serve {

struct ListenAddress {
  std::string path;  // of a Unix socket; empty: TCP
  std::string host;  // an IP address, without brackets
  int port = 0;      // 0: any free one
  bool tls = false;  // the connection is encrypted

  bool is_unix() const { return !path.empty(); }
  // Whether only this machine reaches it.
  bool is_local() const;
  // Returns "http://127.0.0.1:7040", "https://..." or "unix:PATH".
  std::string text() const;
};

// Reads "127.0.0.1:7040", "[::1]:7040", "localhost:7040" or "unix:PATH". Throws std::runtime_error
// that says what an address looks like.
ListenAddress read_address(const std::string& text);

// A listening socket. A Unix socket has mode 0600, replaces one that nobody listens at any more,
// and is removed by the destructor.
class Listener {
 public:
  // Sets `address.port` to the port that it got. Throws std::runtime_error.
  explicit Listener(ListenAddress address);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const ListenAddress& address() const { return address_; }
  int descriptor() const { return socket_.get(); }

 private:
  void open_unix();
  void open_tcp();

  ListenAddress address_;
  util::Descriptor socket_;
  ino_t inode_ = 0;  // of the Unix socket; 0: none was made
};

struct AccessRules {
  ListenAddress address;
  std::vector<std::string> hosts;  // further names that a Host header may have
  std::string token;               // empty: none is asked for
  bool certificates = false;       // every client has shown a certificate that this server trusts
  bool actions = false;            // POST is allowed
  bool receives = false;           // PUT is allowed
};

class Access {
 public:
  explicit Access(AccessRules rules);

  // Returns the refusal; nothing: the request is allowed. `open`: what is asked for holds no data
  // of a process, so it needs no token.
  std::optional<Response> refusal(const Request& request, bool open) const;

  bool allows_actions() const { return rules_.actions; }

  // Returns the header "Set-Cookie" by which a browser that has sent the token once need not send
  // it again.
  std::string cookie() const;

 private:
  bool knows_host(const std::string& host) const;
  bool knows_caller(const Request& request) const;

  AccessRules rules_;
  std::string session_;  // value of the cookie, new each time the server starts
};

// Compares in a time that depends on the length of `given` only.
bool equal_secret(const std::string& given, const std::string& secret);

Response answer_with(std::string body, std::string type = "application/json");
// Returns {"error": reason} with this status.
Response failure(int status, const std::string& reason);

}  // namespace mtrace::serve
