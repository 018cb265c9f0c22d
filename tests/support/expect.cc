#include "expect.h"

#include <algorithm>
#include <cstdlib>

namespace mtrace::test {

testing::AssertionResult has(const char* text_name, const char* /*part_name*/,
                             std::string_view text, std::string_view part) {
  if (text.find(part) != text.npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << text_name << " lacks \"" << part << "\":\n" << text;
}

testing::AssertionResult lacks(const char* text_name, const char* /*part_name*/,
                               std::string_view text, std::string_view part) {
  if (text.find(part) == text.npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << text_name << " has \"" << part << "\":\n" << text;
}

Result expect_exit(Result result, int code, std::source_location where) {
  if (!result.exited(code)) {
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
        << result.how() << " in place of exit " << code << '\n'
        << result.out << result.err;
  }
  return result;
}

int longer() {
  const char* const given = std::getenv("LONGER");
  return given == nullptr ? 1 : std::max(1, std::atoi(given));
}

}  // namespace mtrace::test
