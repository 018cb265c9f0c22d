// What a request to memlog serve may hold: a method and a path, headers and a query, each on a
// line, and after a line "body:" its body. No answer of these parts may let a word through that is
// not an option of the view, a host that is not known, a caller without the token, or a name that
// leads out of a directory.
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "surface/fleet/store.h"
#include "surface/serve/access.h"
#include "surface/serve/request.h"
#include "util/error.h"

namespace {

using namespace mtrace;
using namespace mtrace::serve;

constexpr char kToken[] = "0123456789abcdef";

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

// Options of which each has a parameter, but for the last, which names a file.
const cli::Manual& a_command() {
  static const cli::Manual manual = {"show",
                                     "",
                                     "",
                                     "",
                                     {{"--include", "-i", "REGEX", ""},
                                      {"--min-bytes", "", "SIZE", ""},
                                      {"--grew", "", "", ""},
                                      {"--number", "-n", "N", ""},
                                      {"--output", "-o", "FILE", ""}},
                                     "",
                                     ""};
  return manual;
}

void use_query(const Query& query) {
  try {
    const Given given =
        view_options(query, a_command(), {"include", "min_bytes", "grew", "limit", "nothing"});
    for (const auto& [name, value] : given) {
      check(name == "--include" || name == "--min-bytes" || name == "--grew" || name == "--number");
      check(name != "--grew" || value.empty());
      check(value.find('\n') == std::string::npos && value.find('\0') == std::string::npos);
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

// Who has no token gets nothing but the page, whoever else is let in.
void use_token(const Access& guarded, const Request& request, bool open) {
  const auto refusal = guarded.refusal(request, open);
  if (refusal) return check(refusal->status >= 400 && refusal->status < 500);
  check(open || request.header("authorization") == std::string("Bearer ") + kToken);
  check(request.method == "GET" || request.method == "HEAD");
}

void use_expire(const Query& query) {
  try {
    const ExpireRequest request = read_expire(query);
    check(request.length <= std::chrono::seconds(60) && request.after < request.length);
    check(request.after >= std::chrono::milliseconds(100));
    check(request.most >= 1 && request.most <= 100'000);
  } catch (const QueryError&) {
  }
}

void use_name(const std::string& name) {
  const auto key = fleet::read_name(name);
  if (!key) return;
  check(key->name() == name && std::count(name.begin(), name.end(), '/') == 1);
  check(key->host() != "." && key->host() != ".." && !key->host().empty());
  check(name.find('\0') == std::string::npos && name.find("/.") == std::string::npos);
}

// What a machine sends as a memlog.
void use_memlog(const std::string& body) {
  const int file = memfd_create("body", MFD_CLOEXEC);
  check(file >= 0 && write(file, body.data(), body.size()) == static_cast<ssize_t>(body.size()));
  try {
    const fleet::ReportFacts facts =
        fleet::read_facts("/proc/self/fd/" + std::to_string(file), "the memlog");
    const auto again = fleet::read_name(facts.key.name());
    check(again && *again == facts.key);
  } catch (const util::FormatError&) {
  } catch (const util::FileError&) {
  }
  close(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Access access([] {
    AccessRules rules;
    rules.address = read_address("127.0.0.1:7040");
    rules.hosts = {"web3.example"};
    return rules;
  }());
  static const Access guarded([] {
    AccessRules rules;
    rules.address = read_address("0.0.0.0:7040");
    rules.address.tls = true;
    rules.hosts = {"web3.example"};
    rules.token = kToken;
    rules.receives = false;
    return rules;
  }());
  const std::string text(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view kBody = "\nbody:\n";
  const size_t end = std::min(text.find(kBody), text.size());
  const std::string body = text.substr(std::min(end + kBody.size(), text.size()));
  std::vector<std::string> lines = lines_of(text.substr(0, end));
  lines.resize(std::max<size_t>(lines.size(), 4));
  const size_t space = lines[0].find(' ');
  Request request = {.method = space == std::string::npos ? "GET" : lines[0].substr(0, space),
                     .path = space == std::string::npos ? lines[0] : lines[0].substr(space + 1),
                     .query = {},
                     .headers = {},
                     .body = nullptr};
  for (size_t i = 1; i < lines.size(); ++i) {
    // The first three stand for themselves.
    constexpr const char* kNames[] = {"", "host", "origin", "cookie"};
    constexpr std::string_view kAuthorization = "authorization: ";
    if (i < 4 && lines[i].find(": ") == std::string::npos) {
      request.headers[kNames[i]] = lines[i];
      continue;
    }
    if (lines[i].starts_with(kAuthorization)) {
      request.headers["authorization"] = lines[i].substr(kAuthorization.size());
      continue;
    }
    const size_t equals = std::min(lines[i].find('='), lines[i].size());
    request.query.emplace(lines[i].substr(0, equals),
                          lines[i].substr(std::min(equals + 1, lines[i].size())));
  }
  bool open = false;
  for (const char* pattern :
       {"/", "/api/processes/{pid}/stacks", "/api/reports/{number}/export/{format}",
        "/api/memlogs/{host}/{name}"}) {
    const auto parts = match_path(pattern, request.path);
    if (!parts) continue;
    open = parts->empty();
    check(parts->size() == names_of(pattern).size());
    for (const auto& [name, part] : *parts) check(!part.empty() && !name.empty());
    const auto host = parts->find("host");
    if (host != parts->end()) use_name(host->second + '/' + parts->at("name"));
  }
  use_query(request.query);
  use_expire(request.query);
  use_host(access, request);
  use_token(guarded, request, open);
  use_address(lines[1]);
  use_name(body);
  if (request.method == "PUT") use_memlog(body);
  return 0;
}
