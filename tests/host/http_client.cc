#include "http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <stdexcept>

#include "shell.h"

namespace mtrace::test {

HttpConnection::HttpConnection(int port, const char* from)
    : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  // Who waits for a server tries often.
  const auto fail = [this](const std::string& what) {
    const int error = errno;
    close(socket_);
    throw std::runtime_error(what + std::strerror(error));
  };
  sockaddr_in own = {};
  own.sin_family = AF_INET;
  if (from != nullptr && (inet_pton(AF_INET, from, &own.sin_addr) != 1 ||
                          bind(socket_, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0)) {
    fail("bind: ");
  }
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) fail("connect: ");
}

HttpConnection::~HttpConnection() { close(socket_); }

bool HttpConnection::send(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t sent = ::send(socket_, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += static_cast<size_t>(sent);
  }
  return true;
}

std::string HttpConnection::read_until(const std::string& end) {
  char buffer[16384];
  for (;;) {
    const size_t at = end.empty() ? std::string::npos : got_.find(end);
    if (at != std::string::npos) {
      std::string out = got_.substr(0, at + end.size());
      got_.erase(0, at + end.size());
      return out;
    }
    const ssize_t size = recv(socket_, buffer, sizeof buffer, 0);
    if (size <= 0) return std::move(got_);
    got_.append(buffer, static_cast<size_t>(size));
  }
}

HttpAnswer parse_answer(const std::string& text) {
  HttpAnswer answer;
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos) return answer;
  std::istringstream head(text.substr(0, end));
  std::string line;
  std::getline(head, line);
  answer.status = std::stoi(line.substr(line.find(' ') + 1));
  while (std::getline(head, line)) {
    if (line.ends_with('\r')) line.pop_back();
    std::string name = line.substr(0, line.find(':'));
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    answer.headers[name] = line.substr(line.find(':') + 2);
  }
  answer.body = text.substr(end + 4);
  return answer;
}

int socket_at_free_port(int& port) {
  const int one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (bind(one, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
      getsockname(one, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    const int error = errno;
    close(one);
    throw std::runtime_error(std::string("bind: ") + std::strerror(error));
  }
  port = ntohs(at.sin_port);
  return one;
}

int free_port() {
  int port = 0;
  close(socket_at_free_port(port));
  return port;
}

HttpAnswer http(int port, const std::string& method, const std::string& target,
                std::map<std::string, std::string> headers) {
  headers.emplace("Host", "127.0.0.1:" + std::to_string(port));
  std::string request = method + " " + target + " HTTP/1.1\r\n";
  for (const auto& [name, value] : headers) request += name + ": " + value + "\r\n";
  HttpConnection connection(port);
  connection.send(request + "\r\n");
  return parse_answer(connection.read_all());
}

void make_certificate(const std::string& directory, const std::string& name,
                      const std::string& address) {
  shell(
      "cd {0} && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
      "-subj /CN={1} -addext subjectAltName=IP:{2} -keyout {1}.key -out {1}.pem "
      "2>/dev/null && chmod 600 {1}.key",
      directory, name, address);
}

}  // namespace mtrace::test
