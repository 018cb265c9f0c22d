#include "symbolize/loader_need.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <unistd.h>

#include <memory>

#include "format/loader_name.h"
#include "profile/text.h"

namespace mtrace::symbolize {

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
      if (header.e_machine != EM_X86_64 || gelf_getclass(elf.get()) != ELFCLASS64) {
        found = {"is built for another processor architecture than libmtrace.so", true};
      } else if (loader.empty()) {
        found.why = "is statically linked";
      } else if (format::is_musl_loader(loader)) {
        found = {"is linked with musl, not with glibc", true};
      } else if (!format::is_glibc_loader(loader)) {
        found = {fmt::format("asks for the loader {}, which is not glibc's",
                             profile::escaped(loader.c_str(), "")),
                 true};
      }
    }
  }
  ::close(file);
  return found;
}

}  // namespace mtrace::symbolize
