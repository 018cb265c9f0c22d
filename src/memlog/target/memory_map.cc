#include "target/memory_map.h"

#include <charconv>
#include <string_view>

#include "profile/text.h"
#include "target/proc_files.h"

namespace mtrace::target {
namespace {

bool take_number(std::string_view& text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// "7f12-7f34 rw-p 0000 08:01 123   /path"; false: another line of smaps.
bool take_region(std::string_view line, Region& region) {
  constexpr size_t kModes = 5;
  if (!take_number(line, region.begin) || !line.starts_with('-')) return false;
  line.remove_prefix(1);
  if (!take_number(line, region.end) || line.size() < 1 + kModes) return false;
  region.readable = line[1] == 'r';
  region.writable = line[2] == 'w';
  region.shared = line[4] == 's';
  line.remove_prefix(1 + kModes);
  constexpr int kFieldsBefore = 3;  // offset, device, inode
  for (int i = 0; i < kFieldsBefore; ++i) {
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos) return true;
    line.remove_prefix(blank + 1);
  }
  const size_t path = line.find_first_not_of(' ');
  if (path != std::string_view::npos) region.path = line.substr(path);
  return true;
}

}  // namespace

std::vector<Region> memory_map(pid_t pid, bool flags) {
  const std::string text = read_proc(proc_path(pid, flags ? "smaps" : "maps")).value_or("");
  std::vector<Region> found;
  for (const std::string_view line : profile::split(text, '\n')) {
    Region region;
    if (take_region(line, region)) {
      found.push_back(std::move(region));
    } else if (line.starts_with("VmFlags:") && !found.empty()) {
      found.back().wiped_by_fork = line.find(" wf") != std::string_view::npos;
    }
  }
  return found;
}

}  // namespace mtrace::target
