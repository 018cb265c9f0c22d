// An ELF file that is open, and its build-id.
#pragma once

#include <string>

namespace mtrace::symbolize {

class ElfFile {
 public:
  ElfFile() = default;
  ElfFile(ElfFile&& other) noexcept;
  ElfFile& operator=(ElfFile&& other) noexcept;
  ~ElfFile();

  // The executable or shared object at `path`; not valid() if there is none, or it is no regular
  // file.
  static ElfFile open(const std::string& path);
  // Takes over a descriptor.
  static ElfFile adopt(int descriptor);
  // A copy of the image that the kernel mapped into this process.
  static ElfFile vdso();

  bool valid() const { return descriptor_ >= 0; }
  const std::string& path() const { return path_; }
  // Raw bytes; empty: none.
  const std::string& build_id() const { return build_id_; }
  // The descriptor, which now belongs to the caller.
  int release();

 private:
  void examine();
  int descriptor_ = -1;
  std::string path_;
  std::string build_id_;
};

// "/.build-id/xx/yyyy" for raw bytes.
std::string build_id_path(const std::string& build_id);

}  // namespace mtrace::symbolize
