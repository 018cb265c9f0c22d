// memlog-http.so, the part of memlog that uses cpp-httplib and OpenSSL. It is loaded when it is
// needed: with these libraries every command would take twice as long to start.
#pragma once

namespace mtrace::fleet {

// Loads the module, which stays loaded, and returns its function of that name. `what` it makes is
// named in the error. Throws std::runtime_error when the module is not installed or a library that
// it needs is missing.
void* http_module_function(const char* name, const char* what);

}  // namespace mtrace::fleet
