#include "target/mappings.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cstdio>
#include <set>
#include <string_view>
#include <utility>

#include "profile/text.h"
#include "target/proc_files.h"

namespace mtrace::target {
namespace {

// Decodes \ooo, by which the kernel writes newlines (in some versions also backslashes) in a path.
std::string without_octal(const std::string& path) {
  std::string out;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path.compare(i, 4, "\\012") == 0) {
      out += '\n';
      i += 3;
    } else {
      out += path[i];
    }
  }
  return out;
}

// "7f12-7f34 rw-p 0000 08:01 123   /path"; false: another line of smaps.
bool read_mapping(const std::string& line, Mapping& mapping) {
  char access[8];
  char device[32];
  unsigned long long begin = 0;
  unsigned long long end = 0;
  unsigned long long offset = 0;
  unsigned long long inode = 0;
  int path = 0;
  if (std::sscanf(line.c_str(), "%llx-%llx %7s %llx %31s %llu %n", &begin, &end, access, &offset,
                  device, &inode, &path) < 6) {
    return false;
  }
  mapping.begin = begin;
  mapping.end = end;
  mapping.offset = offset;
  mapping.readable = access[0] == 'r';
  mapping.writable = access[1] == 'w';
  mapping.executable = access[2] == 'x';
  mapping.shared = access[3] == 's';
  if (path > 0 && static_cast<size_t>(path) < line.size()) {
    mapping.path = without_octal(line.substr(static_cast<size_t>(path)));
  }
  if (inode != 0) mapping.inode = fmt::format("{} {}", device, inode);
  return true;
}

// "Rss:     1234 kB", "VmFlags: rd wr".
void read_detail(std::string_view line, Mapping& mapping) {
  if (line.starts_with("VmFlags:")) {
    const auto has = [&](const char* flag) { return line.find(flag) != std::string_view::npos; };
    mapping.wiped_by_fork = has(" wf");
    mapping.awaits_pages = has(" um") || has(" ui");  // missing pages; those not in page tables
    mapping.huge_tlb = has(" ht");
    return;
  }
  constexpr std::pair<std::string_view, uint64_t Mapping::*> kNumbers[] = {
      {"Rss", &Mapping::resident},         {"Private_Dirty", &Mapping::dirty},
      {"Shared_Dirty", &Mapping::dirty},   {"AnonHugePages", &Mapping::huge},
      {"ShmemPmdMapped", &Mapping::huge},  {"FilePmdMapped", &Mapping::huge},
      {"Private_Hugetlb", &Mapping::huge}, {"Swap", &Mapping::swapped}};
  const std::string_view key = line.substr(0, line.find(':'));
  for (const auto& [name, number] : kNumbers) {
    if (key == name) mapping.*number += status_bytes(line, name);
  }
}

}  // namespace

std::optional<std::vector<Mapping>> memory_map(pid_t pid, Detail detail) {
  const auto maps = read_proc(proc_path(pid, detail == Detail::kSmaps ? "smaps" : "maps"));
  if (!maps) return std::nullopt;
  std::vector<Mapping> found;
  for (const std::string_view line : profile::split(*maps, '\n')) {
    Mapping mapping;
    if (read_mapping(std::string(line), mapping)) {
      found.push_back(std::move(mapping));
    } else if (!found.empty()) {
      read_detail(line, found.back());
    }
  }
  return found;
}

std::optional<std::vector<Mapping>> file_mappings(pid_t pid) {
  auto files = memory_map(pid);
  if (!files) return std::nullopt;
  std::erase_if(
      *files, [](const Mapping& mapping) { return mapping.inode.empty() || mapping.path.empty(); });
  return files;
}

std::optional<std::vector<Mapping>> mapped_files(pid_t pid) {
  auto files = file_mappings(pid);
  if (!files) return std::nullopt;
  std::set<std::string> seen;
  std::erase_if(*files, [&](const Mapping& mapping) { return !seen.insert(mapping.inode).second; });
  return files;
}

int open_mapped(pid_t pid, const Mapping& mapping) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const std::string link =
      fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, mapping.begin, mapping.end);
  const int file = ::open(link.c_str(), kFlags);
  if (file >= 0) return file;
  return ::open((fmt::format("/proc/{}/root", pid) + mapping.path).c_str(), kFlags);
}

}  // namespace mtrace::target
