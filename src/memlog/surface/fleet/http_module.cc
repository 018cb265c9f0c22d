#include "surface/fleet/http_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "process/run/preload.h"
#include "surface/fleet/http_client.h"
#include "util/text.h"

namespace mtrace::fleet {

void* http_module_function(const char* name, const char* what) {
  const std::string path = process::find_installed("mtrace/memlog-http.so");
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* found = library != nullptr ? ::dlsym(library, name) : nullptr;
  if (found != nullptr) return found;
  throw std::runtime_error(fmt::format(
      "cannot load the HTTP {}: {}; on Debian, install libcpp-httplib0.11", what, ::dlerror()));
}

HttpServerAddress read_url(const std::string& url) {
  const size_t host = url.find("://") + 3;
  const bool known = url.starts_with("http://") || url.starts_with("https://");
  if (!known || host >= url.size() || url[host] == '/' || !util::is_printable(url, false) ||
      url.find_first_of(" ?#@") != std::string::npos) {
    throw std::runtime_error(
        fmt::format("{} is not a URL like http://web3:7040", util::escaped(url, "")));
  }
  const size_t path = std::min(url.find('/', host), url.size());
  HttpServerAddress server = {url.substr(0, path), url.substr(path), ""};
  while (server.path.ends_with('/')) server.path.pop_back();
  return server;
}

std::unique_ptr<HttpClient> load_http_client(const HttpServerAddress& server) {
  void* const make = http_module_function(kMakeHttpClient, "client");
  std::unique_ptr<HttpClient> client;
  reinterpret_cast<MakeHttpClient*>(make)(server, client);
  return client;
}

}  // namespace mtrace::fleet
