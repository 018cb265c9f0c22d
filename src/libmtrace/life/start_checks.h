// Decides which programs are not traced although the library is loaded.
#pragma once

namespace mtrace::life {

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

// ---- Whether the program's calls reach this library's malloc.

// Finds out whose malloc the program and its libraries call, for report/coverage.h. After
// find_next_functions(). `late`: memlog attach will patch the calls to lead here.
void find_entry_points(bool late);

// Writes a line to stderr if the program defines malloc, or a tool of valgrind replaces it.
void say_when_hidden();

// ---- The message at start when reports cannot go where they should.

// Writes a line to stderr when reports cannot be written where they should be: why, and where they
// go; not if the parent has (life/environment.h). `envp`: this process's environment.
void say_when_output_fails(char* const* envp);

}  // namespace mtrace::life
