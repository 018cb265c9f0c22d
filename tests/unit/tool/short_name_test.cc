#include <gtest/gtest.h>

#include "view/analyze/function_name.h"

namespace mtrace::analyze {
namespace {

TEST(ShortName, LeavesOutDefaultArguments) {
  EXPECT_EQ(short_name("make(std::vector<unsigned char, std::allocator<unsigned char> > const&)"),
            "make(std::vector<unsigned char> const&)");
  EXPECT_EQ(short_name("std::__cxx11::basic_string<char, std::char_traits<char>, "
                       "std::allocator<char> >::_M_create(unsigned long&, unsigned long)"),
            "std::string::_M_create(unsigned long&, unsigned long)");
  EXPECT_EQ(short_name("std::map<int, std::unique_ptr<A<(B)1>, std::default_delete<A<(B)1> > >, "
                       "std::less<int>, std::allocator<std::pair<int const, std::unique_ptr<A<(B)"
                       "1>, std::default_delete<A<(B)1> > > > > >::clear()"),
            "std::map<int, std::unique_ptr<A<(B)1>>>::clear()");
}

TEST(ShortName, LeavesOthersAlone) {
  for (const char* name :
       {"main", "pool<int, my::allocator<int>>::get", "operator new(unsigned long)",
        "std::allocator<char>::allocate(unsigned long)", "f(std::allocator<int> const&)",
        "core::ptr::drop_in_place<alloc::string::String>", ", std::less<", ""}) {
    EXPECT_EQ(short_name(name), name);
  }
}

TEST(ShortName, DoesNotTouchOperatorsWithBrackets) {
  const char* name =
      "std::operator<< <std::char_traits<char> >(std::basic_ostream<char, "
      "std::char_traits<char> >&, char const*)";
  EXPECT_EQ(short_name(name), name);
}

}  // namespace
}  // namespace mtrace::analyze
