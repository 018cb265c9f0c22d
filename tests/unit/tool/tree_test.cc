// Which frames are the standard library's, and that a tree's branches add up.
#include "analyze/tree.h"

#include <gtest/gtest.h>

#include "analyze/standard_frame.h"
#include "profile/reader.h"
#include "tool_test.h"

namespace mtrace {
namespace {

TEST(StandardFrame, IsToldByWhatIsCalled) {
  for (const char* name :
       {"std::vector<int>::push_back(int const&)", "__gnu_cxx::new_allocator<int>::allocate(long)",
        "void std::__invoke_impl<void, f(int)::{lambda()#1}>(std::__invoke_other)",
        "std::enable_if<true, int>::type std::__invoke_r<int>(int)", "std::operator<< <char>(int)",
        "std::thread::_State_impl<std::tuple<g(std::string)::{lambda(int)#1}> >::_M_run()",
        "std::ostream::operator<<(int)", "std::map<int, (anonymous namespace)::T>::at(int)",
        "(anonymous namespace)::T std::move<(anonymous namespace)::T>(int)"}) {
    EXPECT_TRUE(analyze::is_standard(name)) << name;
  }
  for (const char* name :
       {"main", "f(std::string)", "std", "operator new(unsigned long)", "mystd::f()",
        "std_like(int)", "std::string name(int)", "(anonymous namespace)::f(std::vector<int>)",
        "my::operator<<(std::ostream&, int)", "pool<std::less<int>>::get()",
        "core::ptr::drop_in_place<alloc::string::String>", "", "f<(x)1>(", "{lambda(std::q)#1}"}) {
    EXPECT_FALSE(analyze::is_standard(name)) << name;
  }
}

// In the sample no stack ends where another goes on.
void expect_sums(const analyze::TreeNode& node) {
  int64_t sum = 0;
  for (const auto& child : node.children) {
    sum += child->sum.bytes;
    expect_sums(*child);
  }
  if (!node.children.empty()) {
    EXPECT_EQ(sum, node.sum.bytes);
  }
}

// Of a real shape: each level comes to what is above it, folded or not, either way round.
TEST(Tree, EachLevelAddsUp) {
  profile::Memlog memlog =
      profile::read_path(test::source_directory() + "/tests/golden/app-4900-1.memlog");
  const analyze::Table table = analyze::Table::of(memlog);
  for (const bool inverted : {false, true}) {
    for (const double threshold : {0.0, 1.0, 50.0, 100.0}) {
      const analyze::Tree tree = analyze::make_tree(
          table, "", {analyze::Order::kBytes, inverted, threshold == 0, threshold});
      EXPECT_EQ(tree.whole, 10000);
      EXPECT_EQ(tree.root.sum.bytes, 10000);
      expect_sums(tree.root);
    }
  }
}

}  // namespace
}  // namespace mtrace
