// ELF files: an open one and its build-id, its symbols, its layout in a process that has mapped it;
// core files.
#pragma once

#include <gelf.h>
#include <libelf.h>
#include <sys/types.h>

#include "util/prelude.h"

namespace mtrace::symbols {

class ElfFile {
 public:
  ElfFile() = default;
  ElfFile(ElfFile&& other) noexcept;
  ElfFile& operator=(ElfFile&& other) noexcept;
  ~ElfFile();

  // Opens the executable or shared object at `path`. The result is not valid() when there is none,
  // or it is no regular file.
  static ElfFile open(const std::string& path);
  // Takes over a descriptor, of the file at `path` if that is known.
  static ElfFile adopt(int descriptor, std::string path = "");
  // Opens a copy of the vDSO that the kernel mapped into this process.
  static ElfFile vdso();

  bool valid() const { return descriptor_ >= 0; }
  const std::string& path() const { return path_; }
  // Raw bytes; empty: none.
  const std::string& build_id() const { return build_id_; }
  int descriptor() const { return descriptor_; }
  // Returns the descriptor, which the caller now owns.
  int release();

 private:
  void examine();
  int descriptor_ = -1;
  std::string path_;
  std::string build_id_;
};

// Where Debian and others install separate debug files.
inline constexpr char kSystemDebug[] = "/usr/lib/debug";

// Returns the raw build-id of an open file; empty: none.
std::string build_id_of(Elf* elf);

// Where files have names by their build-ids.
inline constexpr char kBuildIds[] = "/.build-id";

// Returns "/.build-id/xx/yyyy" for a raw build-id.
std::string build_id_path(const std::string& build_id);

// An ELF file that libelf has open.

struct EndElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};
using OpenElf = std::unique_ptr<Elf, EndElf>;

// Opens the file behind the descriptor, which stays the caller's. Null: it is no ELF file.
inline OpenElf open_elf(int descriptor, Elf_Cmd how = ELF_C_READ_MMAP) {
  elf_version(EV_CURRENT);
  OpenElf elf(elf_begin(descriptor, how, nullptr));
  if (elf != nullptr && elf_kind(elf.get()) != ELF_K_ELF) elf.reset();
  return elf;
}

// The symbols of an ELF file: of its symbol table, or the dynamic ones.

// Calls visit(symbol, name) for each symbol that the file defines in its tables of a type
// (SHT_DYNSYM or SHT_SYMTAB), until one call returns true. Returns whether one did.
template <typename Visit>
bool any_symbol(Elf* elf, GElf_Word type, Visit&& visit) {
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != type) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    const size_t entry = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
    if (data == nullptr || entry == 0) continue;
    for (size_t i = 0; i < data->d_size / entry; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
      const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
      if (symbol.st_shndx != SHN_UNDEF && name != nullptr && visit(symbol, name)) return true;
    }
  }
  return false;
}

template <typename Visit>
bool any_dynamic_symbol(Elf* elf, Visit&& visit) {
  return any_symbol(elf, SHT_DYNSYM, visit);
}

// Computes the load bias of a mapped ELF file.

// Returns the number to add to addresses in the file, given that its offset `map_offset` is mapped
// at `map_address`. Returns nothing when the file has no segment there.
std::optional<uint64_t> load_bias(Elf* elf, uint64_t map_address, uint64_t map_offset);

// Tells whether the dynamic loader will load a preloaded library into a program.

struct Obstacle {
  // What prevents it, as a sentence without subject or period: "is statically linked". Empty:
  // nothing does, or the file is no ELF file.
  std::string why;
  bool foreign = false;  // the program's loader would take the library for its own, and fail or
                         // complain
  bool is_musl = false;  // nothing prevents it, but the program is linked with musl
};
Obstacle preload_obstacle(const std::string& path);

struct Extent {
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct ExportedFunction {
  std::string name;
  Extent code;
};

// A part of the file and its addresses in memory.
struct FilePart {
  Extent memory;
  uint64_t offset = 0;  // in the file
};

struct LoadedFile {
  uint64_t bias = 0;               // what is added to the file's addresses
  Extent all;                      // from the first segment to the end of the last
  std::vector<Extent> code;        // executable segments
  std::vector<FilePart> segments;  // without the parts that are only zeroed
  std::vector<FilePart> marks;     // headers and notes, which tell the file from others
  uint64_t eh_frame_header = 0;    // address; 0: none
  std::vector<ExportedFunction> functions;
};

// Reads the file behind `descriptor`, whose offset `map_offset` is mapped at `map_address`. Returns
// nothing when it is no ELF file for this processor, or has no segment there.
std::optional<LoadedFile> loaded_file(int descriptor, uint64_t map_address, uint64_t map_offset);
// Like loaded_file(), for a file loaded with `bias` added to its addresses.
std::optional<LoadedFile> loaded_file_at(int descriptor, uint64_t bias);

// Finds allocators that are linked into a file, by its symbol table: calls inside the file go past
// libmtrace.so.

// Returns a function of an allocator that the ELF file behind `descriptor` contains, such as
// "_rjem_malloc"; empty: none that is known, or the file has no symbol table. A function that a
// shared library exports does not count: calls by its name are led to libmtrace.so. Untrusted
// files: call it through linked_allocator_of().
std::string linked_allocator(int descriptor);

// The same in a child process (worker.h). Takes the descriptor over; empty also when it is -1.
std::string linked_allocator_of(int descriptor);

// Returns how much of the resident memory may be such an allocator's, because it is not malloc's:
// "; of 50 resident bytes 40 (80.0%) are not malloc's"; empty: no memory.
std::string uncovered_share(uint64_t resident, uint64_t live);

// Demangles C++ (Itanium ABI) and Rust (legacy and v0) names, with parameters. Turns glibc's
// internal aliases (__GI_puts) into the public name. Returns every other name unchanged, also one
// that only looks mangled.
std::string demangle(const char* name);

// Returns the address of the exported symbol `name` in a process that has mapped offset
// `map_offset` of the file behind `descriptor` at `map_address`. Stores the symbol's size in bytes
// in `size`. Returns nothing when the file is no ELF file, exports no such symbol, or has no
// segment there.
std::optional<uint64_t> exported_address(int descriptor, const std::string& name,
                                         uint64_t map_address, uint64_t map_offset, uint64_t* size);

// What a core file says about its process: memory, mapped files, threads.

// The registers of a thread at one moment, of a running process or in a core file.

struct ThreadRegisters {
  pid_t tid = 0;
  uint64_t stack_pointer = 0;
  uint64_t thread_pointer = 0;  // fs base
  std::vector<uint64_t> words;  // of all registers, the vector registers among them
};

// The file is no core file that can be used. The text is "FILE: what is wrong, and what to do".
class CoreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A part of the address space with one kind of access.
struct CoreSegment {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t offset = 0;  // in the core file
  uint64_t stored = 0;  // bytes of it in the core file, from the beginning on
  bool readable = false;
  bool writable = false;
  bool executable = false;
};

struct CoreMappedFile {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t offset = 0;  // in the mapped file, bytes
  std::string path;     // as the process named it
};

struct CoreContents {
  pid_t pid = 0;
  std::vector<CoreSegment> segments;  // by address, without overlap
  std::vector<CoreMappedFile> files;  // by address
  std::vector<ThreadRegisters> threads;
};

// Reads the headers and notes of the core file behind `descriptor`, written by the kernel or by
// gdb. `name` is for messages. Throws CoreError, also when the file is cut off.
CoreContents read_core(int descriptor, const std::string& name);

}  // namespace mtrace::symbols
