// What the tests are precompiled with (see tests.mk): headers of libraries only.

#pragma once

// clang-format off: before all else, as memlog has it
#include "../src/memlog/headers.h"
// clang-format on

#include <gtest/gtest.h>
