// The trigger signal, and the functions by which the program could change it.
#pragma once

namespace mtrace::hook {

// Installs the handler if the program has not set or inherited another action. `active`: it
// writes reports; otherwise it only keeps the signal from ending a program that is not traced.
// `signal` 0: none.
void install_trigger(int signal, bool active);

}  // namespace mtrace::hook
