#include "model/symbols/debug_package.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "util/text.h"

namespace mtrace::symbols {
namespace {

namespace fs = std::filesystem;

bool lists(const fs::path& list, const std::string& path, const std::string& other) {
  std::ifstream file(list);
  for (std::string line; std::getline(file, line);) {
    if (line == path || line == other) return true;
  }
  return false;
}

// The package of dpkg's that has the file; empty: none. With /usr merged, the list may have the
// path without it.
std::string package_of(const std::string& path, const std::string& root) {
  const std::string other = path.starts_with("/usr/") ? path.substr(4) : "/usr" + path;
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(root + "/var/lib/dpkg/info", error)) {
    if (entry.path().extension() != ".list" || !lists(entry.path(), path, other)) continue;
    const std::string name = entry.path().stem();
    return name.substr(0, name.find(':'));
  }
  return {};
}

// The server of the distribution that os-release names, as these run them.
std::string server(const std::string& root) {
  constexpr std::array<std::pair<std::string_view, const char*>, 6> kServers = {{
      {"debian", "https://debuginfod.debian.net"},
      {"ubuntu", "https://debuginfod.ubuntu.com"},
      {"fedora", "https://debuginfod.fedoraproject.org"},
      {"centos", "https://debuginfod.centos.org"},
      {"arch", "https://debuginfod.archlinux.org"},
      {"opensuse-tumbleweed", "https://debuginfod.opensuse.org"},
  }};
  std::ifstream file(root + "/etc/os-release");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("ID=")) continue;
    std::string id = line.substr(3);
    std::erase(id, '"');
    for (const auto& [name, url] : kServers) {
      if (id == name) return url;
    }
  }
  return "https://debuginfod.elfutils.org";
}

}  // namespace

std::string names_from(const std::string& path, const std::string& root) {
  const std::string package = package_of(path, root);
  if (package.empty() && !path.starts_with("/usr/") && !path.starts_with("/lib")) {
    return "it is stripped: built with -g it has them";
  }
  const std::string fetched = "DEBUGINFOD_URLS=" + server(root);
  if (package.empty()) return fetched;
  const char* const suffix = package == "libc6" ? "-dbg" : "-dbgsym";
  return fmt::format("apt install {}{}, or {}", package, suffix, fetched);
}

}  // namespace mtrace::symbols
