// What tests say of texts and of ended processes.
#pragma once

#include <gtest/gtest.h>

#include <source_location>
#include <string_view>

#include "process.h"

// The text has this part, or does not have it. Prints the text if that is not so.
#define EXPECT_HAS(text, part) EXPECT_PRED_FORMAT2(::mtrace::test::has, text, part)
#define EXPECT_LACKS(text, part) EXPECT_PRED_FORMAT2(::mtrace::test::lacks, text, part)

namespace mtrace::test {

testing::AssertionResult has(const char* text_name, const char* part_name, std::string_view text,
                             std::string_view part);
testing::AssertionResult lacks(const char* text_name, const char* part_name, std::string_view text,
                               std::string_view part);

// Returns `result`. The test fails, and shows what the process wrote, unless it ended with this
// status.
Result expect_exit(Result result, int code = 0,
                   std::source_location where = std::source_location::current());

// How many times as long as in `make check` a test runs that can run longer: $LONGER, 1 unless set.
int longer();

}  // namespace mtrace::test
