// What the tests are precompiled with (see tests.mk): headers of libraries only.

#pragma once

#include "../src/memlog/headers.h"

#include <gtest/gtest.h>
