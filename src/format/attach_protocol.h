// The protocol between memlog and the library that it has loaded into a running process. memlog
// calls the exported functions in a thread of the process while all others are stopped. memlog
// itself then writes the words that the functions list, because some lie in read-only memory.
#pragma once

#include <cstdint>

namespace mtrace::format {

inline constexpr char kAttachSymbol[] = "mtrace_attach";
inline constexpr char kDetachSymbol[] = "mtrace_detach";
inline constexpr char kTwinSymbol[] = "mtrace_twin";
// A thread in this function holds no lock: it waits for memlog to examine the process at its end.
inline constexpr char kHoldSymbol[] = "mtrace_hold_exit";
// This function only calls the program's main, and then the one above.
inline constexpr char kMainSymbol[] = "mtrace_held_main";

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
struct TwinAnswer {
  int64_t pid;  // of the copy; 0: not requested; below 0: a negative errno
  // The library's state in each thread, from the thread pointer on. Its pointer to the last block
  // is not a pointer of the program.
  int64_t thread_state;
  uint64_t thread_state_size;  // bytes
  uint64_t late;               // 1: loaded by memlog attach; the ledger's header tells, too
};

// extern "C" void mtrace_twin(int64_t gone, uint64_t make, mtrace::format::TwinAnswer* answer);
//   Collects the copy `gone` that has ended (0: none), then, with `make`, forks a copy of the
//   process that only ends. The program gets no SIGCHLD, and its wait() does not see the copy.
inline constexpr uint64_t kMostAttachOptions = 16384;  // bytes

}  // namespace mtrace::format
