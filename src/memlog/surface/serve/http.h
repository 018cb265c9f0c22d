// A request and its answer, without the library that carries them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

}  // namespace mtrace::serve
