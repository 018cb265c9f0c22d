// Servers that the tests start, on sockets in a directory of the test's own.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace mtrace::test {

// Until somebody listens at the path of a Unix socket.
void wait_for_server(const std::string& path);
// One HTTP/1.0 request; the whole answer, "" when nobody listens.
std::string get(const std::string& socket_path, const std::string& target);

std::vector<pid_t> children_of(pid_t pid);

// Configuration and content of an nginx with two workers in `directory`, where its socket is
// called "nginx".
void write_nginx_files(const std::string& directory, bool daemon);
// Requests of each kind that it answers, and what it answers to them.
void load_nginx(const std::string& directory, int rounds);

}  // namespace mtrace::test
