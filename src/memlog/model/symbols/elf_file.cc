#include "model/symbols/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <utility>

#include "format/loader_name.h"
#include "util/machine.h"
#include "util/text.h"

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

}  // namespace mtrace::symbols
