// The object files in memory by which runtimes describe generated code to GDB.
#pragma once

#include <elf.h>

#include <cstdint>

namespace mtrace::unwind {

// One such file: ELF, 64 bits, little-endian. The runtime may free it or write over it at any
// moment: every read is a copy by the kernel, which cannot fault, and every loop is bounded.
// Async-signal-safe.
class JitSymfile {
 public:
  struct Function {
    uintptr_t begin;
    uint32_t bytes;
    uintptr_t name;       // address inside the file, ended by a zero
    uint64_t name_bytes;  // upper bound: to the end of the file's names
  };

  // `address`, `bytes`: the place of the file. Anything but such a file has no functions.
  JitSymfile(uintptr_t address, uint64_t bytes);

  // The next function that has a size, a name and a place in memory. False: there are no more.
  bool next(Function* function);

 private:
  static constexpr uint32_t kMostSymbols = 1u << 16;

  bool read(uint64_t offset, void* to, uint64_t size) const;
  bool section(uint32_t number, Elf64_Shdr* header) const;
  bool find_symbols();
  // In a relocatable file a symbol's value is a distance from its section.
  bool place(const Elf64_Sym& symbol, uintptr_t* begin);

  const uintptr_t address_;
  const uint64_t bytes_;
  Elf64_Ehdr header_ = {};
  Elf64_Shdr symbols_ = {};
  Elf64_Shdr names_ = {};
  Elf64_Shdr last_ = {};  // the section that place() has read
  uint32_t last_number_ = 0;
  uint32_t at_ = 0;
  uint32_t count_ = 0;  // of symbols
};

}  // namespace mtrace::unwind
