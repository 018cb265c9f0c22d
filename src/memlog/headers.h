// The precompiled header of memlog (see the Makefile). Only headers of libraries; no file depends
// on it.

#pragma once

#include <re2/re2.h>

#include "util/prelude.h"

// libfmt has it; without this, each source that formats anything compiles it again. clang++ gives
// it another name than g++, which compiled libfmt.
#ifndef __clang__
extern template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view,
                                                   fmt::format_args, fmt::detail::locale_ref);
#endif
