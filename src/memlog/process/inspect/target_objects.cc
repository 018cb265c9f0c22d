#include "process/inspect/target_objects.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include "model/symbols/elf_file.h"
#include "process/inspect/process.h"

namespace mtrace::process {
namespace {

std::vector<Mapping> mappings_of(pid_t pid) {
  auto mappings = file_mappings(pid);
  if (!mappings) {
    throw AttachError(errno == EACCES || errno == EPERM ? why_forbidden(pid)
                                                        : std::strerror(errno));
  }
  if (mappings->empty()) throw AttachError("is part of the kernel, or has just ended");
  return std::move(*mappings);
}

bool is_loader_name(std::string_view name) {
  return name.starts_with("ld-linux") || name.starts_with("ld-2") || name == "ld.so";
}

// Returns whether it must be detected that a thread is inside this object.
bool is_needed(std::string_view name) {
  return name == "libc.so.6" || is_loader_name(name) || name.find("malloc") != std::string::npos;
}

// Returns the segment of the file that contains the address.
const symbols::FilePart* segment_at(const symbols::LoadedFile& file, uint64_t address) {
  for (const symbols::FilePart& segment : file.segments) {
    const uint64_t end = (segment.memory.end + kPageBytes - 1) & ~(kPageBytes - 1);
    if (address >= segment.memory.begin && address < end) return &segment;
  }
  return nullptr;
}

// Ignores the kernel's own breakpoints (uprobes): it steps over them.
bool same_but_breakpoints(const std::string& memory, const std::string& file) {
  constexpr char kBreakpoint = '\xcc';
  if (memory.size() != file.size()) return false;
  for (size_t i = 0; i < file.size(); ++i) {
    if (memory[i] != file[i] && memory[i] != kBreakpoint) return false;
  }
  return true;
}

}  // namespace

std::string mapped_name(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.find(" (deleted)"));
}

uint64_t TargetObject::function(std::string_view wanted) const {
  for (const symbols::ExportedFunction& function : file.functions) {
    if (function.name == wanted) return function.code.begin;
  }
  return 0;
}

TargetObjects::TargetObjects(pid_t pid) : mappings_(mappings_of(pid)), memory_(pid) {
  const auto facts = start_facts(pid);
  if (!facts) throw AttachError("has just ended");
  read_list(pid, *facts);
  for (const ListedObject& listed : list_) add_listed(pid, listed, facts->loader);
  const bool has_loader = std::any_of(objects_.begin(), objects_.end(),
                                      [](const TargetObject& object) { return object.is_loader; });
  if (!has_loader && facts->loader != 0) {
    add_listed(pid, {facts->loader, facts->loader, true}, facts->loader);
  }
  add_unlisted(pid);
}

// Finds the list through the program's DT_DEBUG or, where the loader was run as a program, through
// the loader's own symbol.
void TargetObjects::read_list(pid_t pid, const StartFacts& facts) {
  const uint64_t inside = facts.loader != 0 ? facts.loader : facts.program_headers;
  has_loader_ = facts.loader != 0;
  r_debug_ = debug_address(memory_, facts);
  const Mapping* mapping = mapping_at(inside);
  if (r_debug_ == 0 && mapping != nullptr) {
    const util::Descriptor file(open_mapped(pid, *mapping));
    uint64_t size = 0;
    const auto address =
        symbols::exported_address(file.get(), "_r_debug", mapping->begin, mapping->offset, &size);
    r_debug_ = address.value_or(0);
    has_loader_ |= address.has_value();
  }
  list_ = listed_objects(memory_, r_debug_);
}

const Mapping* TargetObjects::mapping_at(uint64_t address) const {
  for (const Mapping& mapping : mappings_) {
    if (address >= mapping.begin && address < mapping.end) return &mapping;
  }
  return nullptr;
}

void TargetObjects::add_listed(pid_t pid, const ListedObject& listed, uint64_t loader) {
  const Mapping* mapping = mapping_at(listed.dynamic);
  if (mapping == nullptr) mapping = mapping_at(listed.bias);
  if (mapping == nullptr) return;  // the vDSO
  TargetObject object;
  object.name = mapped_name(mapping->path);
  object.inode = mapping->inode;
  object.descriptor = util::Descriptor(open_mapped(pid, *mapping));
  object.listed = true;
  object.in_first = listed.in_first;
  object.is_loader =
      loader != 0 ? listed.bias == loader && listed.in_first : is_loader_name(object.name);
  auto file = object.descriptor.get() < 0
                  ? std::nullopt
                  : symbols::loaded_file_at(object.descriptor.get(), listed.bias);
  if (!file) {
    if (!object.is_loader && !is_needed(object.name)) return;
    throw AttachError(
        fmt::format("runs {}, whose file cannot be read (deleted or replaced since? root can read "
                    "it)",
                    mapping->path));
  }
  object.file = std::move(*file);
  objects_.push_back(std::move(object));
}

// Adds code that was not mapped by the loader: stacks may lead through it.
void TargetObjects::add_unlisted(pid_t pid) {
  for (const Mapping& mapping : mappings_) {
    const bool known =
        std::any_of(objects_.begin(), objects_.end(), [&](const TargetObject& object) {
          return object.inode == mapping.inode && mapping.begin < object.file.all.end &&
                 mapping.end > object.file.all.begin;
        });
    if (!mapping.executable || known) continue;
    TargetObject object;
    object.name = mapped_name(mapping.path);
    object.inode = mapping.inode;
    object.descriptor = util::Descriptor(open_mapped(pid, mapping));
    if (object.descriptor.get() < 0) continue;
    auto file = symbols::loaded_file(object.descriptor.get(), mapping.begin, mapping.offset);
    if (!file) continue;
    object.file = std::move(*file);
    objects_.push_back(std::move(object));
  }
}

bool TargetObjects::maps(std::string_view part) const {
  return std::any_of(mappings_.begin(), mappings_.end(), [&](const Mapping& mapping) {
    return mapped_name(mapping.path).find(part) != std::string::npos;
  });
}

std::string TargetObjects::file_bytes(const TargetObject& object, uint64_t address,
                                      size_t size) const {
  const symbols::FilePart* segment = segment_at(object.file, address);
  if (segment == nullptr) return {};
  std::string bytes(size, '\0');
  const uint64_t offset = segment->offset + (address - segment->memory.begin);
  const ssize_t done =
      ::pread(object.descriptor.get(), bytes.data(), size, static_cast<off_t>(offset));
  return done == static_cast<ssize_t>(size) ? bytes : std::string();
}

bool TargetObjects::is_code(const TargetObject& object, Range range) const {
  const symbols::FilePart* segment = segment_at(object.file, range.begin);
  if (segment == nullptr) return false;
  for (uint64_t at = range.begin; at < range.end;) {
    const Mapping* mapping = mapping_at(at);
    if (mapping == nullptr || mapping->inode != object.inode || !mapping->readable ||
        mapping->writable || !mapping->executable ||
        mapping->offset + (at - mapping->begin) != segment->offset + (at - segment->memory.begin)) {
      return false;
    }
    at = mapping->end;
  }
  return true;
}

void TargetObjects::require_same_file(const TargetObject& object) const {
  for (const symbols::FilePart& mark : object.file.marks) {
    std::string memory(mark.memory.end - mark.memory.begin, '\0');
    if (!memory_.read(mark.memory.begin, memory.data(), memory.size()) ||
        memory != file_bytes(object, mark.memory.begin, memory.size())) {
      throw AttachError(fmt::format(
          "has other headers at 0x{:x}, where its loader lists {}, than the file: was the file "
          "replaced since?",
          mark.memory.begin, object.name));
    }
  }
}

uint64_t TargetObjects::callable(const TargetObject& object, std::string_view wanted) const {
  for (const symbols::ExportedFunction& function : object.file.functions) {
    if (function.name != wanted) continue;
    const Range range = {function.code.begin, function.code.end};
    if (!is_code(object, range)) {
      throw AttachError(fmt::format("has no executable {} of {} where its loader lists it (0x{:x})",
                                    wanted, object.name, range.begin));
    }
    std::string memory(range.end - range.begin, '\0');
    if (!memory_.read(range.begin, memory.data(), memory.size()) ||
        !same_but_breakpoints(memory, file_bytes(object, range.begin, memory.size()))) {
      throw AttachError(
          fmt::format("has modified {} of {} in memory (0x{:x}): memlog does not call it", wanted,
                      object.name, range.begin));
    }
    return range.begin;
  }
  return 0;
}

TargetMemory::TargetMemory(pid_t pid, std::nothrow_t)
    : file_(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDWR | O_CLOEXEC)),
      error_(file_ < 0 ? errno : 0) {}

TargetMemory::TargetMemory(pid_t pid) : TargetMemory(pid, std::nothrow) {
  if (error_ == 0) return;
  throw AttachError(error_ == EACCES || error_ == EPERM
                        ? why_forbidden(pid)
                        : fmt::format("cannot be traced: {}", std::strerror(error_)));
}

TargetMemory::~TargetMemory() {
  if (file_ >= 0) ::close(file_);
}

bool TargetMemory::read(uint64_t address, void* data, size_t size) const {
  return is_all(::pread(file_, data, size, static_cast<off_t>(address)), size);
}

bool TargetMemory::write(uint64_t address, const void* data, size_t size) const {
  return is_all(::pwrite(file_, data, size, static_cast<off_t>(address)), size);
}

bool TargetMemory::is_all(ssize_t done, size_t size) const {
  if (done == static_cast<ssize_t>(size)) return true;
  if (error_ != 0) errno = error_;
  if (done >= 0) errno = done == 0 ? ESRCH : EFAULT;
  return false;
}

const std::string* PageCache::page(uint64_t begin) {
  const auto [entry, fresh] = pages_.try_emplace(begin);
  if (!fresh) return entry->second.empty() ? nullptr : &entry->second;
  std::string bytes(kPage, '\0');
  if (!memory_.read(begin, bytes.data(), bytes.size())) return nullptr;
  entry->second = std::move(bytes);
  return &entry->second;
}

bool PageCache::read_word(uint64_t address, uint64_t* word) {
  char bytes[sizeof *word];
  const uint64_t begin = address & ~(kPage - 1);
  const uint64_t offset = address - begin;
  const size_t first = std::min<size_t>(sizeof bytes, kPage - offset);
  const std::string* from = page(begin);
  if (from == nullptr) return false;
  std::memcpy(bytes, from->data() + offset, first);
  if (first < sizeof bytes) {
    from = page(begin + kPage);
    if (from == nullptr) return false;
    std::memcpy(bytes + first, from->data(), sizeof bytes - first);
  }
  std::memcpy(word, bytes, sizeof bytes);
  return true;
}

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
