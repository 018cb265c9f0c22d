// What a core file says about its process: memory, mapped files, threads.
#pragma once

#include <sys/types.h>

#include "util/prelude.h"

namespace mtrace::symbols {

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
