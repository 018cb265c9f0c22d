// Under libmtrace.so the second test fails: mtrace_gtest.h names the stack.
#include <gtest/gtest.h>
#include <mtrace_gtest.h>

#include <cstdlib>
#include <cstring>

namespace {

char* copy_name(const char* name) { return strdup(name); }

TEST(Names, Frees) {
  char* name = copy_name("Grace Hopper");
  EXPECT_STREQ(name, "Grace Hopper");
  free(name);
}

TEST(Names, Leaks) { EXPECT_STREQ(copy_name("Grace Hopper"), "Grace Hopper"); }

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  mtrace_fail_leaking_tests();
  return RUN_ALL_TESTS();
}
