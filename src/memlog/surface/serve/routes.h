// The paths that memlog serve answers: a row each, for the dispatcher and for the description of
// the interface in OpenAPI.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "surface/serve/request.h"
#include "view/json/stack.h"

namespace mtrace::serve {

// A file of the page of memlog serve; they are in page/.
struct PageFile {
  const char* path;  // of the server: "/" or "/serve.css"
  const char* type;
  std::string_view text;
};
const std::vector<PageFile>& page_files();

// Returns the text of the file at a path. Empty: there is none.
std::string_view page_file(std::string_view path);

class Site;
struct Match;

// The command whose view a path answers with: the query gives its options.
struct View {
  const cli::Command& (*command)() = nullptr;
  Given fixed = {};  // options that every request gives it
};

struct Route {
  const char* path;  // with {NAME} for a part that varies
  const char* summary;
  Response (Site::*answer)(const Request&, const Match&);
  const char* method = "GET";  // also HEAD; "POST" or "PUT"
  const char* type = "application/json";
  std::vector<std::string> query = {};  // parameters
  std::vector<std::string> keys = {};   // of the answer's object, if it is JSON
  View view = {};
  bool open = false;  // holds no data of a process: needs no token
};

const std::vector<Route>& routes();

struct Match {
  const Route* route;
  PathParts parts;
};

// Returns the route of a path, of several methods the one of `method`; nothing: no route has this
// path. `method` "HEAD" is "GET".
std::optional<Match> find_route(const std::string& method, const std::string& path);

// Returns the description of the interface, OpenAPI 3.0.
json::Value openapi();

}  // namespace mtrace::serve
