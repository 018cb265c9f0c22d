#include "process/inspect/loader_list.h"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <string>

#include "process/inspect/proc_files.h"

namespace mtrace::process {
namespace {

// The memory may change during the read or hold anything. These limits end every loop.
constexpr size_t kMostHeaders = 1000;
constexpr size_t kMostEntries = 1000;
constexpr size_t kMostObjects = 100'000;
constexpr int kMostNamespaces = 64;

template <typename T>
bool read(const TargetMemory& memory, uint64_t address, T& value) {
  return address != 0 && memory.read(address, &value, sizeof value);
}

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// The program's load bias, from its own headers: the address in PT_PHDR against the actual one.
struct Program {
  uint64_t bias = 0;
  uint64_t dynamic = 0;
};
Program program_of(const TargetMemory& memory, const StartFacts& facts) {
  Program program;
  for (uint64_t i = 0; i < facts.header_count && i < kMostHeaders; ++i) {
    Elf64_Phdr header;
    if (!read(memory, facts.program_headers + i * sizeof header, header)) return {};
    if (header.p_type == PT_PHDR) program.bias = facts.program_headers - header.p_vaddr;
    if (header.p_type == PT_DYNAMIC) program.dynamic = header.p_vaddr;
  }
  if (program.dynamic != 0) program.dynamic += program.bias;
  return program;
}

bool add_list(const TargetMemory& memory, const link_map* first, bool in_first,
              std::vector<ListedObject>& objects) {
  for (uint64_t at = address_of(first); at != 0;) {
    link_map object;
    if (objects.size() == kMostObjects || !read(memory, at, object)) return false;
    objects.push_back({object.l_addr, address_of(object.l_ld), in_first});
    at = address_of(object.l_next);
  }
  return true;
}

}  // namespace

std::optional<StartFacts> start_facts(pid_t pid) {
  const std::string vector = read_proc(proc_path(pid, "auxv")).value_or("");
  StartFacts facts;
  bool any = false;
  for (size_t at = 0; vector.size() - at >= sizeof(Elf64_auxv_t); at += sizeof(Elf64_auxv_t)) {
    Elf64_auxv_t entry;
    std::memcpy(&entry, vector.data() + at, sizeof entry);
    if (entry.a_type == AT_NULL) break;
    any = true;
    if (entry.a_type == AT_PHDR) facts.program_headers = entry.a_un.a_val;
    if (entry.a_type == AT_PHNUM) facts.header_count = entry.a_un.a_val;
    if (entry.a_type == AT_BASE) facts.loader = entry.a_un.a_val;
  }
  return any ? std::optional(facts) : std::nullopt;
}

uint64_t debug_address(const TargetMemory& memory, const StartFacts& facts) {
  const uint64_t dynamic = program_of(memory, facts).dynamic;
  for (uint64_t i = 0; dynamic != 0 && i < kMostEntries; ++i) {
    Elf64_Dyn entry;
    if (!read(memory, dynamic + i * sizeof entry, entry) || entry.d_tag == DT_NULL) return 0;
    if (entry.d_tag == DT_DEBUG) return entry.d_un.d_val;
  }
  return 0;
}

// `r_next` exists from version 2 on. The version is 2 while there is more than one namespace.
std::vector<ListedObject> listed_objects(const TargetMemory& memory, uint64_t r_debug) {
  std::vector<ListedObject> objects;
  for (int space = 0; r_debug != 0 && space < kMostNamespaces; ++space) {
    struct r_debug head;
    if (!read(memory, r_debug, head) || !add_list(memory, head.r_map, space == 0, objects)) {
      return {};
    }
    uint64_t next = 0;
    if (head.r_version >= 2 && !read(memory, r_debug + sizeof head, next)) return {};
    r_debug = next;
  }
  return objects;
}

}  // namespace mtrace::process
