#include "cli/search_path.h"

#include <fmt/format.h>
#include <sys/stat.h>

namespace mtrace::cli {
namespace {

void check_directory(const char* option, const std::string& path) {
  struct stat state = {};
  if (::stat(path.c_str(), &state) != 0 || !S_ISDIR(state.st_mode)) {
    throw UsageError(fmt::format("{} {}: not a directory", option, path));
  }
  // libdwfl is told directories as one text with colons between them.
  if (path.find(':') != std::string::npos) {
    throw UsageError(fmt::format("{} {}: the path must not contain a colon", option, path));
  }
}

}  // namespace

symbolize::SearchPath search_path(const Arguments& arguments) {
  symbolize::SearchPath where;
  where.sysroot = arguments.value("--sysroot");
  while (where.sysroot.ends_with('/')) where.sysroot.pop_back();
  if (arguments.has("--sysroot")) check_directory("--sysroot", arguments.value("--sysroot"));
  where.symbols = arguments.values("--symbols");
  for (const std::string& directory : where.symbols) check_directory("--symbols", directory);
  return where;
}

}  // namespace mtrace::cli
