// The protocol between memlog and the library that it has loaded into a running process. memlog
// calls the exported functions in a thread of the process while all others are stopped. It then
// writes the words that they ask for itself: some lie in memory that the process may only read.
#pragma once

#include <cstdint>

namespace mtrace::format {

inline constexpr char kAttachSymbol[] = "mtrace_attach";
inline constexpr char kDetachSymbol[] = "mtrace_detach";

// A word of the process: its address, its current value and its new one.
struct Patch {
  uint64_t address;
  uint64_t before;
  uint64_t after;
};

inline constexpr uint64_t kMostPatches = 65536;

struct AttachAnswer {
  uint64_t patches;  // address of Patch[count], valid until the next call
  uint64_t count;
  char reason[256];  // why nothing was done; empty: success
};

// extern "C" void mtrace_attach(const char* options, mtrace::format::AttachAnswer* answer);
//   options: "MTRACE_DEPTH=20" and so on, each ended by a zero byte, the last by two.
// extern "C" void mtrace_detach(mtrace::format::AttachAnswer* answer);
inline constexpr uint64_t kMostAttachOptions = 16384;  // bytes

}  // namespace mtrace::format
