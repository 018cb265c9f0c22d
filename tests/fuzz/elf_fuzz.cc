// Damaged ELF and DWARF: what memlog resolve does with the file of a module, here without the
// process of its own in which it does it. The last 16 bytes of an input are two addresses to look
// up, in addition to some fixed ones.
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "model/symbols/elf_file.h"
#include "model/symbols/module_symbols.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mtrace::symbols;
  static const int file = memfd_create("module", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    return 0;

  const ElfFile opened = ElfFile::open(path);
  if (!opened.valid()) return 0;
  const SearchPath nowhere = {};
  ModuleSymbols module(nowhere, path, "");
  uint64_t addresses[] = {0, ~uint64_t{0}, 0x430, 0x433, 0x43a, 0x440, 0x453, 0x459, 0x45f, 0, 0};
  if (size >= 16) memcpy(addresses + 9, data + size - 16, 16);
  for (const uint64_t address : addresses) module.frames(address);
  return 0;
}
