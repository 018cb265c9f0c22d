#include "modules/object.h"

#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

#include <algorithm>

#include "base/probe.h"
#include "base/process.h"
#include "format/memlog.h"
#include "modules/c_library.h"

namespace mtrace::modules {
namespace {

constexpr unsigned kMaxHeaders = 64;

// Looks for the build-id in the notes at [start, start + size), which are inside `bounds`.
// Copied piece by piece: this is also called for objects that may go away meanwhile.
void find_build_id(Object* object, uintptr_t start, size_t size, size_t align) {
  const size_t pad = align == 8 ? 8 : 4;
  if (!object->bounds.contains(start, size)) return;
  auto padded = [pad](size_t n) { return (n + pad - 1) & ~(pad - 1); };
  for (size_t at = 0; size - at >= sizeof(Elf64_Nhdr);) {
    Elf64_Nhdr note;
    if (!base::read_memory(start + at, &note, sizeof note)) return;
    const size_t name = at + sizeof note;
    const size_t bytes = name + padded(note.n_namesz);
    const size_t next = bytes + padded(note.n_descsz);
    if (next > size || bytes + note.n_descsz > size) return;
    char owner[4];
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof owner && note.n_descsz > 0 &&
        note.n_descsz <= sizeof(Module::build_id) &&
        base::read_memory(start + name, owner, sizeof owner) &&
        memcmp(owner, "GNU", sizeof owner) == 0) {
      object->build_id = start + bytes;
      object->build_id_size = note.n_descsz;
      return;
    }
    at = next;
  }
}

// The program headers of an object.
class Headers {
 public:
  uintptr_t table;
  unsigned count;

  bool read(unsigned index, Elf64_Phdr* header) {
    return memory_.read(table + index * sizeof *header, header, sizeof *header);
  }

 private:
  ProbedMemory memory_;
};

// Whether these are the program headers of `object`: a segment holds its range, and the
// call-frame table is where the loader says.
bool describe(Headers& headers, const Object& object) {
  bool holds = false;
  bool agrees = object.eh_frame_hdr == 0;
  Elf64_Phdr segment;
  for (unsigned i = 0; i < headers.count && headers.read(i, &segment); ++i) {
    const uintptr_t start = object.base + segment.p_vaddr;
    if (segment.p_type == PT_LOAD) {
      holds |= object.start < start + segment.p_memsz && start < object.end;
    } else if (segment.p_type == PT_GNU_EH_FRAME) {
      agrees |= start == object.eh_frame_hdr;
    }
  }
  return holds && agrees;
}

bool elf_header_at(uintptr_t address, Headers* headers) {
  Elf64_Ehdr header;
  if (!base::read_memory(address, &header, sizeof header) ||
      memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return false;
  }
  headers->table = address + header.e_phoff;
  headers->count = std::min(unsigned{header.e_phnum}, kMaxHeaders);
  return true;
}

// Those of the main program, as the kernel says.
void take_programs(Headers* headers) {
  headers->table = getauxval(AT_PHDR);
  headers->count =
      headers->table == 0 ? 0 : std::min(static_cast<unsigned>(getauxval(AT_PHNUM)), kMaxHeaders);
}

// Of an object whose segments leave holes the loader reports one segment, so the ELF header may be
// elsewhere: at the load bias, or, of the main program, where the kernel says.
bool find_headers(const Object& object, Headers* headers) {
  if (elf_header_at(object.start, headers) && describe(*headers, object)) return true;
  if (elf_header_at(object.base, headers) && describe(*headers, object)) return true;
  take_programs(headers);
  return describe(*headers, object);
}

// The object of the list with the highest load bias up to `limit`; false: none.
struct Listed {
  uintptr_t map;
  uintptr_t base;
};
bool find_listed(uintptr_t limit, Listed* found) {
  constexpr unsigned kMost = 1 << 14;
  uintptr_t words[4];  // l_addr, l_name, l_ld, l_next
  static_assert(offsetof(link_map, l_next) == 3 * sizeof *words);
  found->map = 0;
  auto at = reinterpret_cast<uintptr_t>(loader_state().r_map);
  for (unsigned i = 0; at != 0 && i < kMost; ++i, at = words[3]) {
    if (!base::read_memory(at, words, sizeof words)) return false;
    if (words[0] > limit || (found->map != 0 && words[0] < found->base)) continue;
    *found = {at, words[0]};
  }
  return found->map != 0;
}

// Whether one of the segments holds the address. As from _dl_find_object, the range is that of all
// segments or, if these leave holes, of the one.
bool find_segment(Headers& headers, uintptr_t base, uintptr_t address, FoundObject* found) {
  bool holds = false;
  bool whole = true;
  uintptr_t low = UINTPTR_MAX;
  uintptr_t high = 0;
  Elf64_Phdr segment;
  found->eh_frame_hdr = 0;
  for (unsigned i = 0; i < headers.count && headers.read(i, &segment); ++i) {
    const uintptr_t start = base + segment.p_vaddr;
    const uintptr_t end = start + segment.p_memsz;
    if (segment.p_type == PT_GNU_EH_FRAME) found->eh_frame_hdr = start;
    if (segment.p_type != PT_LOAD) continue;
    whole &= high == 0 || base::page_start(start) <= base::whole_pages(high);
    if (start < low) low = base::page_start(start);
    high = end;
    if (address < start || address >= end) continue;
    holds = true;
    found->start = start;
    found->end = end;
  }
  if (whole && low <= address && address < high) {
    holds = true;
    found->start = low;
    found->end = high;
  }
  return holds;
}

bool is_vdso(const char* name) {
  return strchr(name, '/') == nullptr && strncmp(name, "linux-", 6) == 0;
}

// Path of the main program, where /proc cannot be read.
void executed_path(char* path) {
  const auto* executed = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (executed != nullptr && executed[0] == '/' && strlen(executed) < kMaxPath) {
    memcpy(path, executed, strlen(executed) + 1);
  }
}

// Leaves the path "" where it is unknown. The loader's name of the main program is empty, that of
// the vdso has no slash.
void look_for_path(const Object& object, PathScratch* scratch) {
  char* const name = scratch->name;
  char* const path = scratch->path;
  path[0] = '\0';
  if (object.name == 0 || !base::read_string(object.name, name, sizeof scratch->name)) return;
  if (name[0] == '\0') {
    if (base::program_path(path, kMaxPath) == 0) executed_path(path);
    return;
  }
  if (is_vdso(name)) {
    memcpy(path, format::kVdsoPath, sizeof format::kVdsoPath);
    return;
  }
  size_t length = name[0] == '/' ? 0 : base::working_directory(path, kMaxPath);
  const char* relative = name;
  if (length != 0) {
    if (length > 1) path[length++] = '/';
    while (strncmp(relative, "./", 2) == 0) relative += 2;
  }
  const size_t size = strlen(relative) + 1;
  if (size <= kMaxPath - length) {
    memcpy(path + length, relative, size);
  } else {
    path[0] = '\0';
  }
}

}  // namespace

bool find_object_in_list(uintptr_t address, FoundObject* found) {
  constexpr unsigned kMostAround = 3;  // one in a hole of another, and the program at address 0
  Listed listed;
  uintptr_t limit = address;
  for (unsigned i = 0; i < kMostAround && find_listed(limit, &listed); ++i) {
    Headers headers;
    found->map = reinterpret_cast<const link_map*>(listed.map);
    if (!elf_header_at(listed.base, &headers)) {
      headers.count = 0;
      if (found->map == loader_state().r_map) take_programs(&headers);
    }
    if (find_segment(headers, listed.base, address, found)) return true;
    if (listed.base == 0) return false;
    limit = listed.base - 1;
  }
  return false;
}

bool find_object(uintptr_t address, FoundObject* found) {
  const auto lookup = libc().find_object;
  if (lookup == nullptr) return find_object_in_list(address, found);
  dl_find_object object;
  if (lookup(reinterpret_cast<void*>(address), &object) != 0) return false;
  *found = {reinterpret_cast<uintptr_t>(object.dlfo_map_start),
            reinterpret_cast<uintptr_t>(object.dlfo_map_end),
            reinterpret_cast<uintptr_t>(object.dlfo_eh_frame), object.dlfo_link_map};
  return true;
}

bool locate_object(uintptr_t address, Object* object) {
  FoundObject found;
  if (!find_object(address, &found)) return false;
  // The list that backs this answer keeps the link map for as long as the object is loaded.
  object->start = found.start;
  object->end = found.end;
  object->eh_frame_hdr = found.eh_frame_hdr;
  object->base = found.map == nullptr ? 0 : found.map->l_addr;
  object->name = found.map == nullptr ? 0 : reinterpret_cast<uintptr_t>(found.map->l_name);
  return address >= object->start && address < object->end;
}

bool is_loader(const Object& object) { return object.base == getauxval(AT_BASE); }

void inspect_object(Object* object) {
  object->bounds = cfi::Bounds{};
  object->build_id = 0;
  object->build_id_size = 0;
  Headers headers;
  if (!find_headers(*object, &headers)) return;
  Elf64_Phdr segment;
  uintptr_t low = object->start;
  uintptr_t high = object->end;
  for (unsigned i = 0; i < headers.count; ++i) {
    if (!headers.read(i, &segment)) break;
    if (segment.p_type != PT_LOAD) continue;
    const uintptr_t start = object->base + segment.p_vaddr;
    const uintptr_t end = start + segment.p_memsz;
    // File-backed bytes only: notes and call-frame information are never in .bss.
    const uintptr_t file_end = start + segment.p_filesz;
    if (end < start || file_end < start) continue;
    if (start < low) low = start;
    if (end > high) high = end;
    // A file cut short after it was mapped has pages that fault: probes the first and the last.
    if ((segment.p_flags & PF_R) != 0 && segment.p_filesz > 0 && base::readable(start, 1) &&
        base::readable(file_end - 1, 1)) {
      object->bounds.add(start, file_end);
    }
  }
  object->start = low;
  object->end = high;
  for (unsigned i = 0; i < headers.count && object->build_id_size == 0; ++i) {
    if (!headers.read(i, &segment)) break;
    if (segment.p_type != PT_NOTE) continue;
    find_build_id(object, object->base + segment.p_vaddr, segment.p_filesz, segment.p_align);
  }
}

void find_path(const Object& object, PathScratch* scratch) {
  look_for_path(object, scratch);
  // A frame in a report needs a name; by its build-id the file may still be found.
  if (scratch->path[0] == '\0') memcpy(scratch->path, "?", 2);
}

bool same_name(const char* name, const char* path) {
  if (name[0] == '\0' || is_vdso(name)) return true;  // never unloaded
  while (strncmp(name, "./", 2) == 0) name += 2;
  const size_t length = strlen(name);
  const size_t known = strlen(path);
  return length <= known && strcmp(path + known - length, name) == 0;
}

}  // namespace mtrace::modules
