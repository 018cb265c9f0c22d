#include "symbolize/source_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <system_error>

namespace mtrace::symbolize {
namespace {

namespace fs = std::filesystem;

// A source tree has fewer; a home directory has more.
constexpr size_t kMaxListed = 200'000;
constexpr int kMaxFolderDepth = 24;

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// The ends of `path` that begin behind a slash, the longest first: "a/b.c" and "b.c" of "/a/b.c".
std::vector<std::string> ends_of(const std::string& path) {
  std::vector<std::string> ends;
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    ends.push_back(path.substr(slash + 1));
  }
  if (path.find('/') != 0) ends.insert(ends.begin(), path);
  return ends;
}

std::string below(const std::string& directory, const std::string& end) {
  return directory == "." ? end : directory + '/' + end;
}

}  // namespace

SourceFile SourceFiles::locate(const std::string& compiled) const {
  const std::string path = fs::path(compiled).lexically_normal();
  const std::vector<std::string> ends = ends_of(path);
  for (const std::string& directory : directories_) {
    for (const std::string& end : ends) {
      if (is_file(below(directory, end))) return {below(directory, end), ""};
    }
  }
  if (is_file(path)) return {path, ""};
  for (const std::string& end : ends) {
    if (end.find('/') != std::string::npos && is_file(end)) return {end, ""};
  }
  return {"", "not at " + path};
}

void SourceFiles::list_names() {
  listed_ = true;
  std::vector<std::string> roots = directories_;
  roots.emplace_back(".");
  std::set<std::string> seen;  // a root may lie below another one
  for (const std::string& root : roots) {
    std::error_code error;
    fs::recursive_directory_iterator at(root, fs::directory_options::skip_permission_denied, error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
      const std::string name = at->path().filename();
      std::error_code ignored;
      const bool directory = at->is_directory(ignored);
      if (directory && (name.starts_with('.') || at.depth() >= kMaxFolderDepth)) {
        at.disable_recursion_pending();
      }
      if (directory) continue;
      if (by_name_.size() >= kMaxListed) {
        all_listed_ = false;
        return;
      }
      const std::string path = at->path().lexically_normal();
      if (seen.insert(fs::absolute(path, ignored).lexically_normal()).second) {
        by_name_.emplace(name, path);
      }
    }
  }
}

SourceFile SourceFiles::search(const std::string& name) {
  if (!listed_) list_names();
  const auto [first, last] = by_name_.equal_range(name);
  const auto count = std::distance(first, last);
  if (count == 1 && is_file(first->second)) return {first->second, ""};
  if (count > 1) {
    return {"", fmt::format("{} files of this name, as {} and {}", count, first->second,
                            std::next(first)->second)};
  }
  return {"", all_listed_ ? "no file of this name here"
                          : "no file of this name among the first 200,000 here"};
}

const SourceFile& SourceFiles::find(const std::string& compiled, const std::string& name) {
  const auto [place, added] = known_.try_emplace({compiled, name});
  if (added) place->second = compiled.empty() ? search(name) : locate(compiled);
  return place->second;
}

}  // namespace mtrace::symbolize
