// An open ELF file and its build-id.
#pragma once

#include <libelf.h>

#include <string>

namespace mtrace::symbolize {

class ElfFile {
 public:
  ElfFile() = default;
  ElfFile(ElfFile&& other) noexcept;
  ElfFile& operator=(ElfFile&& other) noexcept;
  ~ElfFile();

  // Opens the executable or shared object at `path`. The result is not valid() when there is none,
  // or it is no regular file.
  static ElfFile open(const std::string& path);
  // Takes over a descriptor.
  static ElfFile adopt(int descriptor);
  // Opens a copy of the vDSO that the kernel mapped into this process.
  static ElfFile vdso();

  bool valid() const { return descriptor_ >= 0; }
  const std::string& path() const { return path_; }
  // Raw bytes; empty: none.
  const std::string& build_id() const { return build_id_; }
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

// Returns "/.build-id/xx/yyyy" for a raw build-id.
std::string build_id_path(const std::string& build_id);

}  // namespace mtrace::symbolize
