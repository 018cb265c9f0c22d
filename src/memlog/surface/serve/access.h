// Who may ask memlog serve for what.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "surface/serve/http.h"
#include "surface/serve/listen_address.h"

namespace mtrace::serve {

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

// Returns the first line of the file, at least 16 printable characters. Throws std::runtime_error
// when it cannot be read, others may read it, or the token is shorter.
std::string read_token(const std::string& path);

// Compares in a time that depends on the length of `given` only.
bool equal_secret(const std::string& given, const std::string& secret);

// Returns {"error": reason} with this status.
Response failure(int status, const std::string& reason);

}  // namespace mtrace::serve
