// What a request to memlog serve may hold: a path, a query and headers, each on a line. No answer
// of these parts may let a word through that is not an option of the view, or a host that is not
// known.
#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "serve/access.h"
#include "serve/listen_address.h"
#include "serve/routes.h"
#include "serve/view_query.h"

namespace {

using namespace mtrace::serve;

void check(bool good) {
  if (!good) __builtin_trap();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

void use_query(const Query& query, const std::vector<std::string>& allowed) {
  try {
    for (const std::string& word : view_options(query, allowed)) {
      const auto& known = view_parameters();
      check(std::any_of(known.begin(), known.end(), [&](const Parameter& one) {
        const std::string option = one.option;
        return one.is_switch ? word == option : word.starts_with(option + '=');
      }));
      check(word.find('\n') == std::string::npos && word.find('\0') == std::string::npos);
    }
  } catch (const QueryError&) {
  }
  try {
    const long number = number_of(query, "limit", 5, 1, 60);
    check(number >= 1 && number <= 60);
  } catch (const QueryError&) {
  }
}

void use_host(const Access& access, const Request& request) {
  const auto refusal = access.refusal(request, true);
  if (refusal) return check(refusal->status >= 400);
  const std::string host = request.header("host");
  std::string name = host.substr(0, host.find(':'));
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  check(name == "127.0.0.1" || name == "localhost" || name == "web3.example");
  const std::string origin = request.header("origin");
  check(origin.empty() || origin == "http://" + host || origin == "https://" + host);
  check(!access.refusal(request, false));  // no token is asked for
}

void use_address(const std::string& text) {
  try {
    const ListenAddress address = read_address(text);
    const std::string again = address.is_unix() ? address.text() : address.text().substr(7);
    check(read_address(again).text() == address.text());
  } catch (const std::runtime_error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Access access([] {
    AccessRules rules;
    rules.address = read_address("127.0.0.1:7040");
    rules.hosts = {"web3.example"};
    return rules;
  }());
  std::vector<std::string> lines = lines_of({reinterpret_cast<const char*>(data), size});
  lines.resize(std::max<size_t>(lines.size(), 4));
  Request request = {.method = "GET", .path = lines[0], .query = {}, .headers = {}};
  request.headers = {{"host", lines[1]}, {"origin", lines[2]}, {"cookie", lines[3]}};
  for (size_t i = 4; i < lines.size(); ++i) {
    const size_t equals = std::min(lines[i].find('='), lines[i].size());
    request.query.emplace(lines[i].substr(0, equals),
                          lines[i].substr(std::min(equals + 1, lines[i].size())));
  }
  const auto match = find_route("GET", request.path);
  if (match) {
    for (const auto& [name, part] : match->parts) check(!part.empty() && !name.empty());
  }
  static const Route& widest = *find_route("GET", "/api/diff")->route;
  use_query(request.query, match ? match->route->query : widest.query);
  use_host(access, request);
  use_address(lines[1]);
  return 0;
}
