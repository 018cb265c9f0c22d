// Names of functions: what is called, without the types around it; in short, for people; and which
// code a stack is, whatever build it is from.
#pragma once

#include "model/profile/model.h"
#include "util/prelude.h"

namespace mtrace::analyze {

// Takes the demangled name of a function apart: what is called, without the types around it.

// Returns the qualified name without return type, template arguments, parameters, ABI tags, the
// anonymous namespace and the suffix of a compiler's clone: "std::vector::push_back" for
// "void std::vector<int>::push_back(int&&) [clone .cold]". Instances of one template have the same
// name. A Rust name "<T as U>::f" becomes "T::f". Returns a text that is no such name unchanged.
std::string called_name(std::string_view function);

// Like called_name(), for display: short template arguments stay, long ones become "<...>", and a
// lambda's call operator is the lambda: "Cache<...>::insert", "run::{lambda#1}".
std::string brief_name(std::string_view function);

// Which code a stack is, whatever build it is from.

// Returns a hash over the functions of the frames, innermost first, without template arguments and
// parameters: equal in all builds in which the same functions call each other. A frame without a
// name counts as its module. The hash is FNV-1a, 64 bits; 0: there are no frames.
uint64_t function_id(const profile::Frames& frames, const std::vector<profile::Module>& modules);

// Shortens C++ names to what people write.

// Removes the standard library's default template arguments (allocator, char_traits, less, hash,
// equal_to, default_delete) and its inline ABI namespace, and writes std::string where that
// remains. Returns other names unchanged. For display only: two functions may get the same name.
std::string short_name(std::string name);

// What the blocks of a stack are, as the functions tell that allocate them.

// Returns "std::vector<int>", "node of std::list<Session>", "Session (make_shared)", from the
// template arguments of the standard library's functions in the frames up to `last`, innermost
// first; empty: they do not tell.
std::string block_type(const profile::Frames& frames, size_t last);

// Returns what a block is that begins with an object of this class.
std::string class_type(const std::string& name);

}  // namespace mtrace::analyze
