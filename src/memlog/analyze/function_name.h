// Takes the demangled name of a function apart: what is called, without the types around it.
#pragma once

#include <string>
#include <string_view>

namespace mtrace::analyze {

// Returns the qualified name without return type, template arguments, parameters, ABI tags, the
// anonymous namespace and the suffix of a compiler's clone: "std::vector::push_back" for
// "void std::vector<int>::push_back(int&&) [clone .cold]". Instances of one template have the same
// name. A Rust name "<T as U>::f" becomes "T::f". Returns a text that is no such name unchanged.
std::string called_name(std::string_view function);

// Like called_name(), for display: short template arguments stay, long ones become "<...>", and a
// lambda's call operator is the lambda: "Cache<...>::insert", "run::{lambda#1}".
std::string brief_name(std::string_view function);

}  // namespace mtrace::analyze
