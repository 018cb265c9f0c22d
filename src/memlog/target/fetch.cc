#include "target/fetch.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>

#include "format/memlog.h"
#include "profile/input.h"
#include "profile/path.h"
#include "profile/reader.h"
#include "profile/report_file.h"
#include "profile/writer.h"
#include "symbolize/symbolizer.h"

namespace mtrace::target {
namespace {

bool is_same_file(const std::string& a, const std::string& b) {
  struct stat first = {};
  struct stat second = {};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

// Returns an unused name in the working directory: two containers may have processes of the same
// name.
std::string free_name(const std::string& name) {
  constexpr int kMost = 1000;
  std::string candidate = name;
  for (int i = 2; ::access(candidate.c_str(), F_OK) == 0; ++i) {
    if (i > kMost)
      throw std::runtime_error(name + " and all its numbered variants exist here already");
    candidate = fmt::format("{}.{}", i, name);
  }
  return candidate;
}

// The library knows the name that it gave the report. The resolver may have compressed it since.
std::string present_name(const std::string& root, const std::string& path) {
  const std::string compressed = path + format::kCompressedSuffix;
  const bool only_compressed = ::access((root + path).c_str(), F_OK) != 0 &&
                               ::access((root + compressed).c_str(), F_OK) == 0;
  return only_compressed ? compressed : path;
}

}  // namespace

std::string fetch_report(pid_t pid, const std::string& path) {
  const std::string root = fmt::format("/proc/{}/root", pid);
  const std::string here = present_name(root, path);
  if (is_same_file(here, root + here) || ::access((root + here).c_str(), F_OK) != 0) return here;
  const profile::Text report = profile::read_text(root + here);
  profile::Memlog memlog = profile::read(here, report.text);
  symbolize::Symbolizer({root, {}}).resolve(memlog);
  std::string copy = free_name(profile::base_name(here));
  profile::write_report(copy, profile::write(memlog), report.compressed);
  return copy;
}

}  // namespace mtrace::target
