#include "local_server.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "host_test.h"

namespace mtrace::test {
namespace {

// Connected stream socket, -1 when nobody listens.
int connect_to(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) throw std::runtime_error("path too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    return descriptor;
  }
  close(descriptor);
  return -1;
}

}  // namespace

void wait_for_server(const std::string& path) {
  wait_until("a server at " + path, [&] {
    const int descriptor = connect_to(path);
    if (descriptor >= 0) close(descriptor);
    return descriptor >= 0;
  });
}

// One HTTP/1.0 request; the whole answer.
std::string get(const std::string& socket_path, const std::string& target) {
  const int descriptor = connect_to(socket_path);
  if (descriptor < 0) return "";
  const std::string request = "GET " + target + " HTTP/1.0\r\nHost: test\r\n\r\n";
  std::string answer;
  if (write(descriptor, request.data(), request.size()) == static_cast<ssize_t>(request.size())) {
    char buffer[16384];
    ssize_t size;
    while ((size = read(descriptor, buffer, sizeof(buffer))) > 0) {
      answer.append(buffer, static_cast<size_t>(size));
    }
  }
  close(descriptor);
  return answer;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  const std::string id = std::to_string(pid);
  std::istringstream words(read_file("/proc/" + id + "/task/" + id + "/children"));
  for (pid_t child; words >> child;) children.push_back(child);
  return children;
}

void write_nginx_files(const std::string& directory, bool daemon) {
  fs::create_directories(directory + "/root");
  fs::create_directories(directory + "/logs");
  fs::permissions(directory, fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec);
  write_file(directory + "/root/index.html", "<p>hello</p>\n");
  write_file(directory + "/root/large.txt", std::string(300'000, 'x'));
  // Workers keep the user that started them, so that they may write where the test says.
  const std::string user = geteuid() == 0 ? "user root root;\n" : "";
  write_file(directory + "/nginx.conf",
             user + "daemon " + (daemon ? "on" : "off") + ";\nworker_processes 2;\npid " +
                 directory + "/nginx.pid;\nerror_log " + directory +
                 "/logs/error.log;\nevents { worker_connections 64; }\nhttp {\n"
                 "  log_format worker $pid; access_log " +
                 directory +
                 "/logs/access.log worker;\n"
                 "  gzip on; gzip_types text/plain; gzip_http_version 1.0;\n"
                 "  client_body_temp_path " +
                 directory + "/b; proxy_temp_path " + directory + "/p; fastcgi_temp_path " +
                 directory + "/f; uwsgi_temp_path " + directory + "/u; scgi_temp_path " +
                 directory +
                 "/s;\n"
                 "  server { listen unix:" +
                 directory + "/nginx; root " + directory +
                 "/root;\n"
                 "    location /again { rewrite ^/again(.*)$ /index.html?x=$1 last; }\n"
                 "    location /status { return 200 'fine $request_uri'; }\n  }\n}\n");
}

std::vector<std::string> redis_server(const std::string& directory) {
  return joined({"/usr/bin/redis-server", "--port", "0", "--save", "", "--appendonly", "no"},
                {"--unixsocket", directory + "/redis", "--dir", directory, "--logfile",
                 directory + "/redis.log"});
}

std::string redis(const std::string& directory, std::vector<std::string> arguments) {
  Command command;
  command.env = plain_environment(directory);
  command.argv = joined({"/usr/bin/redis-cli", "-s", directory + "/redis"}, arguments);
  return run(command).out;
}

void load_redis(const std::string& directory, int number) {
  const std::string key = "key" + std::to_string(number % 100);
  const std::string value(static_cast<size_t>(number % 3000), 'v');
  EXPECT_EQ(redis(directory, {"set", key, value}), "OK\n");
  EXPECT_EQ(redis(directory, {"get", key}), value + "\n");
  EXPECT_EQ(
      redis(directory, {"eval", "local t = {} for i = 1, 500 do t[i] = i * i end return #t", "0"}),
      "500\n");
}

const char kPythonServer[] = R"TEXT(
import hashlib, http.server, json, socketserver, sys, threading
kept = {}
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.0'
    def do_GET(self):
        table = {str(i): self.path * (i % 50) for i in range(300)}
        kept[len(kept) % 100] = table
        body = (self.path + ' ' + hashlib.md5(json.dumps(table).encode()).hexdigest()).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
    def address_string(self): return 'here'
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    def get_request(self):
        request, address = super().get_request()
        return request, ('here', 0)
server = Server(sys.argv[1], Handler)
threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown())).start()
server.serve_forever()
)TEXT";

Load::Load(const std::function<void()>& load)
    : thread_([this, load] {
        for (; !stop_; ++count_) load();
      }) {}

void Load::wait_for(int more) const {
  const int before = count_;
  wait_until("load", [&] { return count_ >= before + more; });
}

void Load::end() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void load_nginx(const std::string& directory, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    EXPECT_TRUE(get(directory + "/nginx", "/").ends_with("<p>hello</p>\n"));
    EXPECT_TRUE(
        get(directory + "/nginx", "/status?" + std::to_string(i)).ends_with(std::to_string(i)));
    EXPECT_TRUE(get(directory + "/nginx", "/missing").find(" 404 ") != std::string::npos);
    EXPECT_TRUE(get(directory + "/nginx", "/again/" + std::to_string(i)).ends_with("</p>\n"));
    EXPECT_GT(get(directory + "/nginx", "/large.txt").size(), 300'000u);
  }
}

}  // namespace mtrace::test
