// The message at start when reports cannot go where they should.
#pragma once

namespace mtrace::hook {

// Writes a line to stderr when reports cannot be written where they should be: why, and where they
// go; not if the parent has (life/relatives.h). `envp`: this process's environment.
void say_when_elsewhere(char* const* envp);

}  // namespace mtrace::hook
