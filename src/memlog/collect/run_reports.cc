#include "collect/run_reports.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <tuple>

#include "collect/catalog.h"
#include "format/memlog.h"
#include "profile/error.h"

namespace mtrace::collect {
namespace {

constexpr char kLastPlace[] = "/tmp";

std::string normal(const std::string& directory) {
  std::error_code error;
  std::string path = std::filesystem::absolute(directory, error).lexically_normal();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// The library names a directory as MTRACE_OUTPUT does, with percent signs doubled.
std::string undoubled(std::string text) {
  for (size_t at = 0; (at = text.find("%%", at)) != std::string::npos; ++at) text.erase(at, 1);
  return text;
}

std::vector<Listed> memlogs_in(const std::string& directory) {
  try {
    return list_memlogs(directory);
  } catch (const profile::FileError&) {
    return {};
  }
}

}  // namespace

std::string just_before_now() {
  using std::chrono::microseconds;
  const auto time = std::chrono::system_clock::now() - std::chrono::milliseconds(100);
  const auto since = std::chrono::duration_cast<microseconds>(time.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                     fmt::gmtime(static_cast<std::time_t>(since / 1000000)), since % 1000000);
}

RunReports reports_of_run(const std::string& directory, pid_t pid, const std::string& begun) {
  const char* temporary = std::getenv("TMPDIR");
  const std::string wanted = normal(directory);
  RunReports out;
  std::vector<Listed> own;
  std::set<std::string> seen;
  for (const std::string& place :
       {directory, std::string(temporary != nullptr ? temporary : ""), std::string(kLastPlace)}) {
    if (place.empty() || !seen.insert(normal(place)).second) continue;
    const bool instead = seen.size() > 1;
    for (Listed& listed : memlogs_in(place)) {
      const bool mine = listed.pid == pid;
      if (listed.started < begun) continue;
      if (instead && (listed.refused_by.empty() ||
                      (!mine && normal(undoubled(listed.refused_by)) != wanted))) {
        continue;
      }
      if (instead) {
        ++out.elsewhere;
        out.elsewhere_directory = place;
      }
      if (mine) {
        own.push_back(std::move(listed));
      } else {
        ++out.others;
      }
    }
  }
  std::sort(own.begin(), own.end(), [](const auto& a, const auto& b) {
    return std::tie(a.started, a.seq) < std::tie(b.started, b.seq);
  });
  for (const Listed& listed : own) {
    if (listed.started == own.back().started) out.files.push_back(listed.path);
  }
  return out;
}

bool lacks_names(const std::string& path) {
  constexpr std::streamoff kPart = 65536;  // more than what stands before or behind the entries
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  const auto part = [&](std::streamoff from) {
    std::string text(static_cast<size_t>(std::min(kPart, size)), '\0');
    file.seekg(from);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    return text;
  };
  if (size <= 0) return false;
  const std::string head = part(0);
  const std::string tail = part(std::max<std::streamoff>(size - kPart, 0));
  // Frames are the only lines that begin with a tab.
  return head.find("\n\t") != std::string::npos &&
         tail.find(fmt::format("\n# {}: no\n", format::kKeyResolved)) != std::string::npos;
}

}  // namespace mtrace::collect
