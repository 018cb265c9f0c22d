// What is called, read off demangled names.
#include "view/analyze/function_name.h"

#include <gtest/gtest.h>

namespace mtrace::analyze {
namespace {

struct Name {
  const char* full;
  const char* called;
  const char* brief;
};

class FunctionName : public testing::TestWithParam<Name> {};

TEST_P(FunctionName, IsWhatIsCalled) {
  EXPECT_EQ(called_name(GetParam().full), GetParam().called);
  EXPECT_EQ(brief_name(GetParam().full), GetParam().brief);
}

INSTANTIATE_TEST_SUITE_P(
    All, FunctionName,
    testing::Values(
        Name{"main", "main", "main"},
        Name{"operator new(unsigned long)", "operator new", "operator new"},
        Name{"operator new[](unsigned long, std::nothrow_t const&)", "operator new[]",
             "operator new[]"},
        Name{"std::vector<Session, std::allocator<Session> >::push_back(Session const&)",
             "std::vector::push_back", "std::vector<Session>::push_back"},
        Name{"Cache<std::string, std::vector<int> >::insert(std::string const&)", "Cache::insert",
             "Cache<...>::insert"},
        // Return types.
        Name{"void std::__invoke_impl<void, f(int)::{lambda()#1}>(std::__invoke_other)",
             "std::__invoke_impl", "std::__invoke_impl<...>"},
        Name{"decltype(auto) std::apply<f(int)::{lambda()#1}, std::tuple<> >(f(int)::{lambda()#1}&&"
             ", std::tuple<>&&)",
             "std::apply", "std::apply<...>"},
        Name{"decltype ({parm#1}.g()) app::call<T>(T&)", "app::call", "app::call<T>"},
        Name{"std::enable_if<true, int>::type app::run<int>(int)", "app::run", "app::run<int>"},
        Name{"(anonymous namespace)::T std::move<(anonymous namespace)::T>(int)", "std::move",
             "std::move<...>"},
        Name{"std::string make(int)", "make", "make"},
        // Lambdas, local classes, the anonymous namespace.
        Name{"shop::Shop::request(int)::{lambda(int)#2}::operator()(int) const",
             "shop::Shop::request::{lambda(int)#2}::operator()", "shop::Shop::request::{lambda#2}"},
        Name{"(anonymous namespace)::keep(std::string)", "keep", "keep"},
        Name{"f(std::vector<int>) const::Local::g()", "f::Local::g", "f::Local::g"},
        // Operators.
        Name{"std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)",
             "std::operator<<", "std::operator<<<...>"},
        Name{"my::operator<<(std::ostream&, int)", "my::operator<<", "my::operator<<"},
        Name{"my::Value::operator->() const", "my::Value::operator->", "my::Value::operator->"},
        Name{"my::Value::operator bool() const", "my::Value::operator bool",
             "my::Value::operator bool"},
        Name{"my_operator(int)", "my_operator", "my_operator"},
        // ABI tags, clones, thunks, comparisons in template arguments.
        Name{"app::Text::str[abi:cxx11]() const", "app::Text::str", "app::Text::str"},
        Name{"load(int) [clone .cold]", "load", "load"}, Name{"load.part.0", "load", "load"},
        Name{"non-virtual thunk to app::Plugin::run()", "app::Plugin::run", "app::Plugin::run"},
        Name{"A<(B)1, (1>0)>::f()", "A::f", "A<(B)1, (1>0)>::f"},
        // Rust, Go, JIT compilers.
        Name{"<alloc::vec::Vec<T> as core::iter::FromIterator<T>>::from_iter",
             "alloc::vec::Vec::from_iter", "alloc::vec::Vec<T>::from_iter"},
        Name{"app::main::{{closure}}", "app::main::{{closure}}", "app::main::{{closure}}"},
        Name{"main.(*Server).serve", "main.(*Server).serve", "main.(*Server).serve"},
        Name{"LazyCompile:~handler /app/server.js:10", "LazyCompile:~handler /app/server.js:10",
             "LazyCompile:~handler /app/server.js:10"},
        // What is no name stays.
        Name{"", "", ""}, Name{"f<(x)1>(", "f<(x)1>(", "f<(x)1>("}, Name{">", ">", ">"},
        Name{"f<", "f<", "f<"}, Name{"(", "(", "("},
        Name{"void (*f(int))(char)", "void (*f(int))(char)", "void (*f(int))(char)"}));

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
