// What code says of frames without call-frame information.
//
//   ends_with_call()  whether the kLongestCall bytes at `code` end with a call instruction
//   read_epilogue()   whether the bytes [code, end) begin with instructions that give the frame
//                     back and leave the function
//   frame_size()      bytes by which the function has lowered the stack pointer, from the code
//                     [begin, code) before the place where it is; 0: not known
//   kInstruction      bytes that each instruction is a multiple of
//   kReturnIsBelowSp  whether the caller's stack pointer is right behind the return address
#pragma once

#include <cstdint>

namespace mtrace::unwind {

// Where a function that is about to return has its return address, and its caller's frame pointer
// and stack pointer: distances in bytes.
struct Epilogue {
  static constexpr int32_t kUnchanged = INT32_MIN;

  bool by_fp;  // from the frame pointer, not from the stack pointer
  int32_t fp;  // to the saved frame pointer; kUnchanged: not saved
  int32_t pc;  // to the return address
  int32_t sp;  // what the caller's stack pointer is
};

}  // namespace mtrace::unwind

#ifdef __x86_64__
#include "unwind/x86_64/code.h"
#else
#include "unwind/aarch64/code.h"
#endif
