// What is said at the start of where reports go.
#pragma once

namespace mtrace::hook {

// One line on stderr when reports cannot be written where they should be: why, and where they go.
// Nothing when the parent has said it (life/relatives.h). `envp`: this process's environment.
void say_when_elsewhere(char* const* envp);

}  // namespace mtrace::hook
