#include "model/symbols/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <unistd.h>

#include "format/loader_name.h"
#include "model/symbols/worker.h"
#include "util/machine.h"
#include "util/text.h"

// Otherwise libiberty.h declares a basename() that differs from <cstring>'s.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

namespace mtrace::symbols {

ElfFile::ElfFile(ElfFile&& other) noexcept { *this = std::move(other); }

ElfFile& ElfFile::operator=(ElfFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  std::swap(build_id_, other.build_id_);
  return *this;
}

ElfFile::~ElfFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ElfFile ElfFile::open(const std::string& path) {
  ElfFile file;
  // A module's path may name a device or a pipe by now: neither is waited for.
  file.descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  file.path_ = path;
  file.examine();
  return file;
}

ElfFile ElfFile::adopt(int descriptor, std::string path) {
  ElfFile file;
  file.path_ = std::move(path);
  file.descriptor_ = descriptor;
  file.examine();
  return file;
}

ElfFile ElfFile::vdso() {
  ElfFile file;
  const unsigned long begin = ::getauxval(AT_SYSINFO_EHDR);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; begin != 0 && std::getline(maps, line);) {
    unsigned long first = 0;
    unsigned long last = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &first, &last) != 2 || first != begin) continue;
    file.descriptor_ = ::memfd_create("vdso", MFD_CLOEXEC);
    if (file.descriptor_ < 0) break;
    // The image begins with its ELF header at an address that only the kernel knows.
    const void* image = reinterpret_cast<const void*>(begin);  // NOLINT(performance-no-int-to-ptr)
    if (::write(file.descriptor_, image, last - first) != static_cast<ssize_t>(last - first)) break;
    file.examine();
    return file;
  }
  return {};
}

int ElfFile::release() { return std::exchange(descriptor_, -1); }

// Closes what is not an executable or a shared object.
void ElfFile::examine() {
  if (descriptor_ < 0) return;
  bool good = false;
  struct stat state = {};
  elf_version(EV_CURRENT);
  if (::fstat(descriptor_, &state) == 0 && S_ISREG(state.st_mode)) {
    Elf* elf = elf_begin(descriptor_, ELF_C_READ, nullptr);
    GElf_Ehdr header;
    good = elf != nullptr && gelf_getehdr(elf, &header) != nullptr &&
           (header.e_type == ET_EXEC || header.e_type == ET_DYN);
    if (good) build_id_ = build_id_of(elf);
    elf_end(elf);
  }
  if (!good) {
    ::close(descriptor_);
    descriptor_ = -1;
  }
}

std::string build_id_of(Elf* elf) {
  const void* bytes = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(elf, &bytes);
  return size > 0 ? std::string(static_cast<const char*>(bytes), static_cast<size_t>(size))
                  : std::string();
}

std::string build_id_path(const std::string& build_id) {
  const std::string hex = util::hex_bytes(build_id);
  return std::string(kBuildIds) + "/" + hex.substr(0, 2) + "/" + hex.substr(2);
}

std::optional<uint64_t> load_bias(Elf* elf, uint64_t map_address, uint64_t map_offset) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) break;
    // The loader maps whole pages: a segment may begin a little before its offset.
    const uint64_t page = segment.p_align > 1 ? segment.p_align - 1 : 0;
    if (segment.p_type != PT_LOAD || map_offset < (segment.p_offset & ~page) ||
        map_offset >= segment.p_offset + segment.p_filesz) {
      continue;
    }
    return map_address - map_offset + segment.p_offset - segment.p_vaddr;
  }
  return std::nullopt;
}

Obstacle preload_obstacle(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return {};
  elf_version(EV_CURRENT);
  Obstacle found;
  {
    const std::unique_ptr<Elf, decltype(&elf_end)> elf(elf_begin(file, ELF_C_READ, nullptr),
                                                       elf_end);
    GElf_Ehdr header;
    size_t count = 0;
    if (elf != nullptr && gelf_getehdr(elf.get(), &header) != nullptr &&
        elf_getphdrnum(elf.get(), &count) == 0) {
      std::string loader;
      for (size_t i = 0; i < count; ++i) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf.get(), static_cast<int>(i), &segment) == nullptr ||
            segment.p_type != PT_INTERP || segment.p_filesz > 4096) {
          continue;
        }
        loader.resize(segment.p_filesz);
        if (::pread(file, loader.data(), loader.size(), static_cast<off_t>(segment.p_offset)) < 0) {
          loader.clear();
        }
      }
      const bool is_32_bits = gelf_getclass(elf.get()) == ELFCLASS32;
      if (is_32_bits && (header.e_machine == EM_386 || header.e_machine == EM_X86_64)) {
        found = {fmt::format("is {}, which libmtrace.so, made for 64 bits, cannot trace",
                             header.e_machine == EM_386 ? "a 32-bit x86 program"
                                                        : "an x32 program with 32-bit pointers"),
                 true};
      } else if (header.e_machine != util::machine::kElfMachine ||
                 gelf_getclass(elf.get()) != ELFCLASS64) {
        found = {"is built for another processor architecture than libmtrace.so", true};
      } else if (loader.empty()) {
        found.why = "is statically linked";
      } else if (format::is_musl_loader(loader)) {
        found.is_musl = true;
      } else if (!format::is_glibc_loader(loader)) {
        found = {fmt::format("asks for the loader {}, which is neither glibc's nor musl's",
                             util::escaped(loader.c_str(), "")),
                 true};
      }
    }
  }
  ::close(file);
  return found;
}

namespace {

void read_segments(Elf* elf, const GElf_Ehdr& header, size_t segments, uint64_t bias,
                   LoadedFile& file) {
  file.all.begin = UINT64_MAX;
  for (size_t i = 0; i < segments; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) break;
    const Extent extent = {bias + segment.p_vaddr, bias + segment.p_vaddr + segment.p_memsz};
    if (segment.p_type == PT_GNU_EH_FRAME) file.eh_frame_header = extent.begin;
    if (segment.p_type == PT_NOTE) file.marks.push_back({extent, segment.p_offset});
    if (segment.p_type != PT_LOAD) continue;
    file.all.begin = std::min(file.all.begin, extent.begin);
    file.all.end = std::max(file.all.end, extent.end);
    if ((segment.p_flags & PF_X) != 0) file.code.push_back(extent);
    file.segments.push_back({{extent.begin, extent.begin + segment.p_filesz}, segment.p_offset});
    const uint64_t headers = header.e_phoff + segments * header.e_phentsize;
    if (segment.p_offset == 0 && headers <= segment.p_filesz) {
      file.marks.push_back({{extent.begin, extent.begin + headers}, 0});
    }
  }
}

void read_functions(Elf* elf, uint64_t bias, LoadedFile& file) {
  any_dynamic_symbol(elf, [&](const GElf_Sym& symbol, const char* name) {
    const uint64_t begin = bias + symbol.st_value;
    if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC) {
      file.functions.push_back({name, {begin, begin + symbol.st_size}});
    }
    return false;
  });
}

// Calls bias_of(elf), which may give none.
template <typename BiasOf>
std::optional<LoadedFile> read_file(int descriptor, BiasOf&& bias_of) {
  elf_version(EV_CURRENT);
  const std::unique_ptr<Elf, decltype(&elf_end)> elf(elf_begin(descriptor, ELF_C_READ, nullptr),
                                                     elf_end);
  GElf_Ehdr header;
  size_t segments = 0;
  if (elf == nullptr || elf_kind(elf.get()) != ELF_K_ELF ||
      gelf_getehdr(elf.get(), &header) == nullptr ||
      header.e_machine != util::machine::kElfMachine || gelf_getclass(elf.get()) != ELFCLASS64 ||
      elf_getphdrnum(elf.get(), &segments) != 0) {
    return std::nullopt;
  }
  const std::optional<uint64_t> bias = bias_of(elf.get());
  if (!bias) return std::nullopt;
  LoadedFile file;
  file.bias = *bias;
  read_segments(elf.get(), header, segments, *bias, file);
  read_functions(elf.get(), *bias, file);
  return file;
}

}  // namespace

std::optional<LoadedFile> loaded_file(int descriptor, uint64_t map_address, uint64_t map_offset) {
  return read_file(descriptor, [&](Elf* elf) { return load_bias(elf, map_address, map_offset); });
}

std::optional<LoadedFile> loaded_file_at(int descriptor, uint64_t bias) {
  return read_file(descriptor, [&](Elf*) { return std::optional(bias); });
}
namespace {

constexpr unsigned kAllocatorSeconds = 20;

// The functions by which programs call them. jemalloc's have the prefix that it was built with.
bool is_of_allocator(std::string_view name) {
  constexpr std::array<std::string_view, 8> kNames = {
      "_rjem_malloc", "je_malloc",      "tc_malloc", "TCMallocInternalMalloc",
      "mi_malloc",    "mi_heap_malloc", "rpmalloc",  "sn_malloc"};
  return name.ends_with("mallocx") || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// Programs name their loader; shared libraries do not.
bool is_program(Elf* elf) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return false;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) != nullptr && header.p_type == PT_INTERP) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string linked_allocator(int descriptor) {
  const OpenElf elf = open_elf(descriptor);
  if (elf == nullptr) return {};
  // Of several the shortest: malloc rather than mallocx.
  std::string found;
  any_symbol(elf.get(), SHT_SYMTAB, [&](const GElf_Sym& symbol, std::string_view name) {
    const bool better = found.empty() || name.size() < found.size();
    if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC && is_of_allocator(name) && better) found = name;
    return false;
  });
  if (found.empty() || is_program(elf.get())) return found;
  const bool exported = any_dynamic_symbol(
      elf.get(), [&](const GElf_Sym&, std::string_view name) { return is_of_allocator(name); });
  return exported ? std::string() : found;
}

std::string uncovered_share(uint64_t resident, uint64_t live) {
  if (resident <= live) return {};
  const uint64_t other = resident - live;
  return fmt::format("; of {} resident bytes {} ({:.1f}%) are not malloc's", resident, other,
                     100.0 * static_cast<double>(other) / static_cast<double>(resident));
}

std::string linked_allocator_of(int descriptor) {
  if (descriptor < 0) return {};
  const auto found =
      run_isolated([&] { return linked_allocator(descriptor); }, kAllocatorSeconds, descriptor);
  ::close(descriptor);
  return found.value_or("");
}

namespace {

struct Free {
  void operator()(char* text) const { std::free(text); }
};

}  // namespace

std::string demangle(const char* name) {
  // glibc's name for its own calls of a public function: people know the public one.
  if (std::strncmp(name, "__GI_", 5) == 0 && name[5] != '\0') name += 5;
  // Only what begins like a mangled name: the demangler would also take plain C names apart.
  if (std::strncmp(name, "_Z", 2) != 0 && std::strncmp(name, "_R", 2) != 0) return name;
  const std::unique_ptr<char, Free> plain(
      cplus_demangle(name, DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI));
  return plain == nullptr || *plain == '\0' ? name : plain.get();
}

namespace {

std::optional<GElf_Sym> find_exported(Elf* elf, const std::string& wanted) {
  std::optional<GElf_Sym> found;
  any_dynamic_symbol(elf, [&](const GElf_Sym& symbol, const char* name) {
    if (wanted == name) found = symbol;
    return found.has_value();
  });
  return found;
}

}  // namespace

std::optional<uint64_t> exported_address(int descriptor, const std::string& name,
                                         uint64_t map_address, uint64_t map_offset,
                                         uint64_t* size) {
  const OpenElf elf = open_elf(descriptor, ELF_C_READ);
  if (elf == nullptr) return std::nullopt;
  const auto symbol = find_exported(elf.get(), name);
  const auto bias = load_bias(elf.get(), map_address, map_offset);
  if (!symbol || !bias) return std::nullopt;
  *size = symbol->st_size;
  return *bias + symbol->st_value;
}

namespace {

// Appends the words of a note, or of what it holds from `offset` on.
void append_words(std::string_view bytes, std::vector<uint64_t>& words) {
  const size_t count = bytes.size() / sizeof words[0];
  const size_t before = words.size();
  words.resize(before + count);
  std::memcpy(words.data() + before, bytes.data(), count * sizeof words[0]);
}

// Reads the notes of a core file in their order: those of a thread follow its NT_PRSTATUS.
class Notes {
 public:
  explicit Notes(CoreContents& core) : core_(core) {}

  void take(uint32_t type, std::string_view name, std::string_view bytes) {
    if (name == "CORE" && type == NT_PRSTATUS) return take_thread(bytes);
    if (name == "CORE" && type == NT_PRPSINFO) return take_process(bytes);
    if (name == "CORE" && type == NT_FILE) return take_files(bytes);
    if (core_.threads.empty()) return;
    ThreadRegisters& thread = core_.threads.back();
    const bool vectors = (name == "CORE" && type == NT_FPREGSET) ||
                         (name == "LINUX" && type == util::machine::kVectorSet);
    if (vectors) append_words(bytes, thread.words);
    if (name == "LINUX" && type == util::machine::kThreadPointerSet &&
        bytes.size() >= sizeof thread.thread_pointer) {
      std::memcpy(&thread.thread_pointer, bytes.data(), sizeof thread.thread_pointer);
    }
  }

 private:
  void take_thread(std::string_view bytes) {
    elf_prstatus status = {};
    if (bytes.size() < sizeof status) return;
    std::memcpy(&status, bytes.data(), sizeof status);
    user_regs_struct registers = {};
    static_assert(sizeof registers == sizeof status.pr_reg);
    std::memcpy(&registers, &status.pr_reg, sizeof registers);
    ThreadRegisters thread;
    thread.tid = status.pr_pid;
    thread.stack_pointer = util::machine::stack_pointer(registers);
    thread.thread_pointer = util::machine::thread_pointer(registers);
    append_words(bytes.substr(offsetof(elf_prstatus, pr_reg), sizeof status.pr_reg), thread.words);
    core_.threads.push_back(std::move(thread));
  }

  void take_process(std::string_view bytes) {
    elf_prpsinfo info = {};
    if (bytes.size() < sizeof info) return;
    std::memcpy(&info, bytes.data(), sizeof info);
    core_.pid = info.pr_pid;
  }

  // The number of files, the unit of their offsets, three words for each file, then their names.
  void take_files(std::string_view bytes) {
    std::vector<uint64_t> words;
    append_words(bytes, words);
    constexpr size_t kHead = 2;
    constexpr size_t kEach = 3;
    if (words.size() < kHead || words[0] > (words.size() - kHead) / kEach) return;
    std::string_view names = bytes.substr((kHead + words[0] * kEach) * sizeof words[0]);
    for (uint64_t i = 0; i < words[0]; ++i) {
      const uint64_t* file = &words[kHead + i * kEach];
      const size_t end = names.find('\0');
      if (end == std::string_view::npos) return;
      core_.files.push_back(
          {file[0], file[1], file[2] * words[1], std::string(names.substr(0, end))});
      names.remove_prefix(end + 1);
    }
  }

  CoreContents& core_;
};

void take_notes(Elf* elf, const GElf_Phdr& header, Notes& notes) {
  Elf_Data* data = elf_getdata_rawchunk(elf, static_cast<int64_t>(header.p_offset), header.p_filesz,
                                        header.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
  if (data == nullptr) return;
  GElf_Nhdr note;
  size_t name_at = 0;
  size_t bytes_at = 0;
  const char* all = static_cast<const char*>(data->d_buf);
  for (size_t at = 0; (at = gelf_getnote(data, at, &note, &name_at, &bytes_at)) != 0;) {
    std::string_view name(all + name_at, note.n_namesz);
    name = name.substr(0, name.find('\0'));
    notes.take(note.n_type, name, {all + bytes_at, note.n_descsz});
  }
}

void take_segment(const GElf_Phdr& header, CoreContents& core) {
  if (header.p_memsz == 0 || header.p_memsz > UINT64_MAX - header.p_vaddr) return;
  core.segments.push_back({header.p_vaddr, header.p_vaddr + header.p_memsz, header.p_offset,
                           std::min(header.p_filesz, header.p_memsz), (header.p_flags & PF_R) != 0,
                           (header.p_flags & PF_W) != 0, (header.p_flags & PF_X) != 0});
}

template <typename Part>
void sort_parts(std::vector<Part>& parts) {
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.begin < b.begin; });
  uint64_t end = 0;
  std::erase_if(parts, [&](const Part& part) {
    if (part.begin < end || part.end <= part.begin) return true;
    end = part.end;
    return false;
  });
}

void check_end(int descriptor, uint64_t end, const std::string& name) {
  struct stat state = {};
  if (::fstat(descriptor, &state) != 0 || static_cast<uint64_t>(state.st_size) >= end) return;
  throw CoreError(
      fmt::format("{}: truncated: {} of {} bytes; dump core again with ulimit -c unlimited and "
                  "room on the disk",
                  name, state.st_size, end));
}

}  // namespace

CoreContents read_core(int descriptor, const std::string& name) {
  elf_version(EV_CURRENT);
  const OpenElf elf(elf_begin(descriptor, ELF_C_READ, nullptr));
  GElf_Ehdr header;
  if (elf == nullptr || gelf_getehdr(elf.get(), &header) == nullptr || header.e_type != ET_CORE) {
    throw CoreError(name + ": not a core file");
  }
  if (header.e_machine != util::machine::kElfMachine) {
    throw CoreError(name + ": a core file of another processor architecture than this machine's");
  }
  size_t count = 0;
  if (elf_getphdrnum(elf.get(), &count) != 0) count = 0;
  CoreContents core;
  Notes notes(core);
  uint64_t end = 0;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf.get(), static_cast<int>(i), &segment) == nullptr) continue;
    if (segment.p_filesz <= UINT64_MAX - segment.p_offset) {
      end = std::max(end, segment.p_offset + segment.p_filesz);
    }
    if (segment.p_type == PT_NOTE) take_notes(elf.get(), segment, notes);
    if (segment.p_type == PT_LOAD) take_segment(segment, core);
  }
  check_end(descriptor, end, name);
  if (core.threads.empty()) throw CoreError(name + ": has no registers of threads (NT_PRSTATUS)");
  sort_parts(core.segments);
  sort_parts(core.files);
  return core;
}

}  // namespace mtrace::symbols
