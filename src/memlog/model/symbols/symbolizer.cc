#include "model/symbols/symbolizer.h"

#include <sys/utsname.h>

#include "format/memlog.h"
#include "model/profile/writer.h"
#include "model/symbols/elf_file.h"
#include "model/symbols/perf_map.h"
#include "model/symbols/worker.h"
#include "util/text.h"

namespace mtrace::symbols {
namespace {

using profile::Frame;
using profile::Memlog;
using profile::Place;

// Far more than the largest programs need; a bound for files that lead libdw in circles.
constexpr unsigned kModuleSeconds = 120;

// What the worker sends: a byte for the finding, then for each offset the number of frames and
// each frame's two texts with their lengths.
void put(std::string& out, uint32_t number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void put(std::string& out, const std::string& text) {
  put(out, static_cast<uint32_t>(text.size()));
  out += text;
}

class Answer {
 public:
  explicit Answer(const std::string& bytes) : bytes_(bytes) {}
  uint8_t byte() { return static_cast<uint8_t>(bytes_.at(at_++)); }
  uint32_t number() {
    uint32_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return take(number()); }

 private:
  std::string take(size_t size) {
    std::string part = bytes_.substr(at_, size);
    if (part.size() != size) throw std::out_of_range("answer");
    at_ += size;
    return part;
  }
  const std::string& bytes_;
  size_t at_ = 0;
};

std::string allocator_in(const std::string& path) {
  ElfFile file = ElfFile::open(path);
  return file.valid() ? linked_allocator(file.release()) : std::string();
}

std::string symbolize(const SearchPath& where, const std::string& path, const std::string& build_id,
                      const std::vector<uint64_t>& offsets) {
  ModuleSymbols module(where, path, build_id);
  std::string out(1, static_cast<char>(module.finding()));
  put(out, module.finding() == Finding::kFound ? allocator_in(where.sysroot + path) : "");
  for (const uint64_t offset : offsets) {
    const SourceFrames frames = module.frames(offset);
    put(out, static_cast<uint32_t>(frames.size()));
    for (const SourceFrame& frame : frames) {
      put(out, frame.function);
      put(out, frame.source);
    }
  }
  return out;
}

std::string changed_note(const profile::Module& module) {
  return fmt::format("{} is not the file it was (its build-id differs): its frames have no names",
                     module.path);
}

// What of the resident memory is not malloc's may be that allocator's.
std::string uncovered_note(const Memlog& memlog, const std::string& function,
                           const std::string& path) {
  const auto live = static_cast<uint64_t>(std::max<int64_t>(memlog.header.live.bytes, 0));
  return fmt::format("{}{} of {}: linked into it, so its calls do not come to the library{}",
                     format::kNotCovered, function, path,
                     uncovered_share(memlog.header.rss.value_or(0), live));
}

void drop_note(Memlog& memlog, const std::string& text) {
  auto& notes = memlog.header.notes;
  const auto same = std::find(notes.begin(), notes.end(), text);
  if (same == notes.end()) return;
  // The meta lines hold the notes in the same order.
  auto left = same - notes.begin();
  notes.erase(same);
  for (auto line = memlog.after.begin(); line != memlog.after.end(); ++line) {
    if (line->key == format::kKeyNote && left-- == 0) {
      memlog.after.erase(line);
      return;
    }
  }
}

int knowledge(const std::vector<Frame>& frames, size_t begin, size_t end) {
  if (begin == end) return 0;
  const Frame& outer = frames[end - 1];
  return (outer.function.empty() ? 0 : 2) + (outer.source.empty() ? 0 : 1);
}

int knowledge(const SourceFrames& frames) {
  if (frames.empty()) return 0;
  return (frames.back().function.empty() ? 0 : 2) + (frames.back().source.empty() ? 0 : 1);
}

// Appends `frame` with its names, after the frames inlined into it.
void append_named(std::vector<Frame>& out, const Frame& frame, const SourceFrames& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    Frame named = frame;
    if (i + 1 < names.size()) {
      named = Frame();
      named.place = Place::kInlined;
    }
    named.function = names[i].function;
    named.source = names[i].source;
    out.push_back(std::move(named));
  }
}

// Calls visit(list) for each list of frames: once for one that several stacks share.
template <typename Visit>
void each_list(const Memlog& memlog, const Visit& visit) {
  absl::flat_hash_set<const profile::Frames*> rests;
  for (const profile::Entry& entry : memlog.entries) {
    visit(entry.frames.own());
    const profile::Frames* rest = entry.frames.rest().get();
    for (; rest != nullptr && rests.insert(rest).second; rest = rest->rest().get()) {
      visit(rest->own());
    }
  }
}

// By number of the module, each offset once. A large report has a million frames at few places.
std::vector<std::vector<uint64_t>> offsets_in_modules(const Memlog& memlog) {
  std::vector<absl::flat_hash_set<uint64_t>> seen(memlog.modules.size());
  each_list(memlog, [&](const profile::Frames::List& list) {
    for (const Frame& frame : list) {
      const bool is_elf = frame.place == Place::kModule && !memlog.modules[frame.module].python;
      if (is_elf) seen[frame.module].insert(frame.offset);
    }
  });
  std::vector<std::vector<uint64_t>> offsets;
  offsets.reserve(seen.size());
  for (const auto& places : seen) {
    std::vector<uint64_t>& list = offsets.emplace_back(places.begin(), places.end());
    std::sort(list.begin(), list.end());
  }
  return offsets;
}

bool has_bare_addresses(const Memlog& memlog) {
  bool found = false;
  each_list(memlog, [&](const profile::Frames::List& list) {
    found = found || std::any_of(list.begin(), list.end(),
                                 [](const Frame& frame) { return frame.place == Place::kAddress; });
  });
  return found;
}

// The names of code that a runtime made, by what the report says of its files.
PerfMap made_code(const Memlog& memlog) {
  uint64_t map_then = UINT64_MAX;
  std::string dump;
  uint64_t dump_then = 0;
  for (const profile::Field& line : memlog.after) {
    const std::string_view value = line.value;
    const auto bytes = util::read_unsigned(value.substr(0, value.find(' ')));
    if (!bytes) continue;
    if (line.key == format::kKeyPerfMap) map_then = *bytes;
    constexpr std::string_view kUnit = " bytes ";
    const size_t unit = value.find(kUnit);
    if (line.key == format::kKeyJitDump && unit != std::string_view::npos) {
      dump = util::unescaped(value.substr(unit + kUnit.size())).value_or("");
      dump_then = *bytes;
    }
  }
  PerfMap map = load_perf_map(memlog.header.pid, memlog.header.started, map_then);
  if (!map.empty() || dump.empty()) return map;
  return load_jit_dump(dump, memlog.header.started, dump_then);
}

std::string cache_key(const profile::Module& module) {
  return module.path + '\0' + module.build_id;
}

}  // namespace

Symbolizer::Symbolizer(SearchPath where) : where_(std::move(where)) {
  // A server that does not answer must not hold up a report; whoever set a limit knows better.
  ::setenv("DEBUGINFOD_TIMEOUT", "10", 0);
  ::setenv("DEBUGINFOD_MAXTIME", "60", 0);
}

Symbolizer::KnownModule& Symbolizer::look_up(const Memlog& memlog, const profile::Module& module,
                                             const std::vector<uint64_t>& offsets) {
  KnownModule& known = known_[cache_key(module)];
  std::vector<uint64_t> unknown;
  for (const uint64_t offset : offsets) {
    if (!known.frames.contains(offset)) unknown.push_back(offset);
  }
  if (unknown.empty()) return known;
  const bool vdso = module.path == format::kVdsoPath;
  const bool reachable =
      vdso ? !module.build_id.empty() || taken_here(memlog.header) : module.path[0] == '/';
  for (const uint64_t offset : unknown) known.expected.erase(offset);
  if (reachable) {
    unknown.insert(unknown.end(), known.expected.begin(), known.expected.end());
    known.expected.clear();
  }
  const auto bytes =
      !reachable
          ? std::nullopt
          : run_isolated([&] { return symbolize(where_, module.path, module.build_id, unknown); },
                         kModuleSeconds);
  if (!bytes || bytes->empty()) {
    for (const uint64_t offset : unknown) known.frames.try_emplace(offset);
    return known;
  }
  Answer answer(*bytes);
  known.finding = static_cast<Finding>(answer.byte());
  known.allocator = answer.text();
  for (const uint64_t offset : unknown) {
    SourceFrames& frames = known.frames[offset];
    frames.resize(answer.number());
    for (SourceFrame& frame : frames) {
      frame.function = answer.text();
      frame.source = answer.text();
    }
  }
  return known;
}

void Symbolizer::expect(const Memlog& memlog) {
  const std::vector<std::vector<uint64_t>> offsets = offsets_in_modules(memlog);
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i].empty()) continue;
    KnownModule& known = known_[cache_key(memlog.modules[i])];
    for (const uint64_t offset : offsets[i]) {
      if (!known.frames.contains(offset)) known.expected.insert(offset);
    }
  }
}

void Symbolizer::note_allocators(Memlog& memlog, const std::vector<KnownModule*>& known) {
  bool program = false;
  for (size_t i = 0; i < known.size(); ++i) {
    const std::string& path = memlog.modules[i].path;
    program |= known[i] != nullptr && path == memlog.header.program;
    if (known[i] == nullptr || known[i]->allocator.empty()) continue;
    profile::add_note(memlog, uncovered_note(memlog, known[i]->allocator, path));
  }
  // A program all of whose memory is its own allocator's stands in no frame.
  const std::string& path = memlog.header.program;
  if (program || path.empty() || path[0] != '/' || !taken_here(memlog.header)) return;
  const auto [found, is_new] = programs_.try_emplace(path);
  if (is_new) found->second = linked_allocator_of(ElfFile::open(where_.sysroot + path).release());
  if (!found->second.empty()) {
    profile::add_note(memlog, uncovered_note(memlog, found->second, path));
  }
}

bool Symbolizer::is_needed(const Memlog& memlog) {
  return memlog.header.resolved != profile::Resolved::kYes || memlog.entries.empty();
}

void Symbolizer::resolve(Memlog& memlog) {
  const std::vector<std::vector<uint64_t>> offsets = offsets_in_modules(memlog);
  std::vector<KnownModule*> known(memlog.modules.size());
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i].empty()) continue;
    // Looked up first, pointed to afterwards: the table moves while it grows.
    look_up(memlog, memlog.modules[i], offsets[i]);
  }
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i].empty()) continue;
    known[i] = &known_.at(cache_key(memlog.modules[i]));
    const std::string note = changed_note(memlog.modules[i]);
    if (known[i]->finding == Finding::kChanged) {
      profile::add_note(memlog, note);
    } else if (known[i]->finding == Finding::kFound) {
      drop_note(memlog, note);
    }
  }
  note_allocators(memlog, known);
  const PerfMap perf_map =
      has_bare_addresses(memlog) && taken_here(memlog.header) ? made_code(memlog) : PerfMap();

  size_t frames = 0;
  size_t named = 0;
  const auto name = [&](const profile::Frames::List& before) {
    std::optional<profile::Frames::List> after(std::in_place);
    after->reserve(before.size());
    size_t begin = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      const Frame& frame = before[i];
      if (frame.place == Place::kInlined) continue;
      SourceFrames jit;
      const SourceFrames* names = &jit;
      if (frame.place == Place::kModule && known[frame.module] != nullptr) {
        names = &known[frame.module]->frames.at(frame.offset);
      } else if (frame.place == Place::kAddress) {
        // The library may have had a name from the runtime, as a compiler mangles it.
        const std::string* const name = perf_map.find(frame.offset);
        jit.push_back({name != nullptr ? *name : demangle(frame.function.text().c_str()), "", ""});
      }
      const int had = knowledge(before, begin, i + 1);
      if (knowledge(*names) > 0 && knowledge(*names) >= had) {
        append_named(*after, frame, *names);
      } else {
        after->insert(after->end(), before.begin() + static_cast<ptrdiff_t>(begin),
                      before.begin() + static_cast<ptrdiff_t>(i) + 1);
      }
      begin = i + 1;
      ++frames;
      named += !after->back().function.empty();
    }
    return after;
  };
  profile::FramesChange change;
  for (profile::Entry& entry : memlog.entries) entry.frames = change(entry.frames, name);
  profile::set_resolved(memlog, named == frames ? profile::Resolved::kYes
                                : named == 0    ? profile::Resolved::kNo
                                                : profile::Resolved::kPartly);
}

std::string this_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string this_host() {
  utsname names = {};
  return ::uname(&names) == 0 ? names.nodename : "";
}

bool taken_here(const profile::Header& header) {
  return !header.boot_id.empty() && header.boot_id == this_boot_id() && header.host == this_host();
}

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

namespace {

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

using profile::Module;

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
