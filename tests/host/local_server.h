// Servers that the tests start, on sockets in a directory of the test's own.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
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

// The command of a redis-server whose socket in `directory` is called "redis", and the output of
// redis-cli for it.
std::vector<std::string> redis_server(const std::string& directory);
std::string redis(const std::string& directory, std::vector<std::string> arguments);
// Writes, reads and computes something, the same for the same number, and what it answers.
void load_redis(const std::string& directory, int number);

// A server in Python with a thread for each request, which ends with its standard input: argument
// 1 is its socket. Of a table that it makes for a request it answers the target and a hash; it
// keeps the last hundred.
extern const char kPythonServer[];

// Calls `load` over and over in a thread of its own.
class Load {
 public:
  explicit Load(const std::function<void()>& load);
  ~Load() { end(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // How often it has been called, at least.
  int count() const { return count_; }
  // Until it has been called so often from now on.
  void wait_for(int more) const;
  // Lets the last call come to its end.
  void end();

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int> count_ = 0;
  std::thread thread_;
};

}  // namespace mtrace::test
