// See unwind/epilogue.h.
#pragma once

#include "unwind/epilogue.h"

namespace mtrace::unwind {

// Not read: code for this processor keeps a frame pointer.
inline bool read_epilogue(const unsigned char*, const unsigned char*, Epilogue*) { return false; }

}  // namespace mtrace::unwind
