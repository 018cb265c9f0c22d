// Decides which programs are not traced although the library is loaded.
#pragma once

namespace mtrace::hook {

// The program is the memlog tool.
bool is_memlog();
// Why this program is not traced; nullptr: it is. After read_options() and report::learn_host().
const char* why_dormant();

// Returns a sentence without subject that names the sanitizer whose allocator the program has;
// nullptr: none. Such a program is not traced: the stacks would show the sanitizer's internals, and
// hooks in between could show in its findings. After find_next_functions().
const char* sanitizer();
// Writes a line to stderr if sanitizer() has found one.
void say_when_aside();

}  // namespace mtrace::hook
