// What the tests of memlog share: running a command inside this process, memlogs by hand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "directories.h"
#include "expect.h"
#include "files.h"
#include "shell.h"

namespace mtrace::test {

struct Outcome {
  int status;
  std::string out;
  std::string err;
};

// Runs `memlog words...` in this process; `terminal`: as if to one.
Outcome memlog(const std::vector<std::string>& words, bool terminal = false);

// Why the library cannot start the memlog under test, null when it can.
#ifdef __SANITIZE_ADDRESS__
constexpr const char* kNoMemlogFromTheLibrary =
    "the library starts memlog with little address space, of which AddressSanitizer takes "
    "terabytes";
#else
constexpr const char* kNoMemlogFromTheLibrary = nullptr;
#endif

// The compiler that this was built with.
std::string compiler();

// A memlog with one entry of 64 bytes whose frames are `frames`, lines without their leading tab.
std::string small_memlog(const std::vector<std::string>& frames, const std::string& after = "",
                         int64_t seq = 1);

}  // namespace mtrace::test
