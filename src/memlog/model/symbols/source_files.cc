#include "model/symbols/source_files.h"

#include "model/symbols/worker.h"

namespace mtrace::symbols {
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
namespace {

using profile::Frame;
using profile::Module;
using profile::Place;

constexpr unsigned kSourcePathsSeconds = 120;

std::string key_of(const Module& module) { return module.path + '\0' + module.build_id; }

std::string base_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The paths at each of `addresses`: a line each, parted by tabs. A path with either passes for
// none.
std::string paths_text(const SearchPath& where, const Module& module,
                       const std::vector<uint64_t>& addresses) {
  ModuleSymbols symbols(where, module.path, module.build_id);
  std::string out;
  for (const uint64_t address : addresses) {
    for (const SourceFrame& frame : symbols.frames(address)) {
      const bool plain = frame.path.text().find_first_of("\t\n") == std::string::npos;
      out += (plain ? frame.path.text() : "") + '\t';
    }
    out += '\n';
  }
  return out;
}

}  // namespace

std::pair<std::string, uint64_t> split_source(const std::string& source) {
  const size_t colon = source.rfind(':');
  uint64_t line = 0;
  if (colon != std::string::npos) {
    const char* end = source.data() + source.size();
    const auto [stop, error] = std::from_chars(source.data() + colon + 1, end, line);
    if (error == std::errc() && stop == end) return {source.substr(0, colon), line};
  }
  return {source, 0};
}

void SourcePaths::learn(const std::vector<Module>& modules,
                        const std::vector<const profile::Frames*>& stacks) {
  std::map<profile::ModuleIndex, std::set<uint64_t>> wanted;
  for (const profile::Frames* stack : stacks) {
    bool named = false;
    for (const Frame& frame : *stack) {
      named |= !frame.source.empty();
      if (frame.place == Place::kInlined) continue;
      if (named && frame.place == Place::kModule && !modules[frame.module].python &&
          !known_.contains({key_of(modules[frame.module]), frame.offset})) {
        wanted[frame.module].insert(frame.offset);
      }
      named = false;
    }
  }
  for (const auto& [index, set] : wanted) {
    const Module& module = modules[index];
    const std::vector<uint64_t> addresses(set.begin(), set.end());
    for (const uint64_t address : addresses) known_.try_emplace({key_of(module), address});
    if (module.path.empty() || module.path[0] != '/') continue;
    const auto text =
        run_isolated([&] { return paths_text(where_, module, addresses); }, kSourcePathsSeconds);
    if (!text) continue;
    size_t at = 0;
    for (const uint64_t address : addresses) {
      Paths& paths = known_[{key_of(module), address}];
      while (at < text->size() && (*text)[at] != '\n') {
        const size_t end = text->find('\t', at);
        if (end == std::string::npos) return;
        paths.push_back(text->substr(at, end - at));
        at = end + 1;
      }
      ++at;
    }
  }
}

std::string SourcePaths::find(const std::vector<Module>& modules, const profile::Frames& stack,
                              size_t at) const {
  const std::string file = split_source(stack[at].source).first;
  // An inlined frame is at the address of what it is inlined into.
  size_t outer = at;
  while (outer < stack.size() && stack[outer].place == Place::kInlined) ++outer;
  if (file.empty() || outer == stack.size() || stack[outer].place != Place::kModule) return {};
  if (modules[stack[outer].module].python) return modules[stack[outer].module].path;
  const auto known = known_.find({key_of(modules[stack[outer].module]), stack[outer].offset});
  if (known == known_.end()) return {};
  const Paths& paths = known->second;
  const size_t place = paths.size() - 1 - (outer - at);
  if (place < paths.size() && base_of(paths[place]) == file) return paths[place];
  const auto same = std::find_if(paths.begin(), paths.end(),
                                 [&](const std::string& path) { return base_of(path) == file; });
  return same == paths.end() ? "" : *same;
}

}  // namespace mtrace::symbols
