// The server's half of memlog-http.so. It uses no other part of memlog.
#include "surface/serve/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <exception>
#include <optional>

#include "surface/fleet/http_library.h"
#include "surface/serve/peer_limits.h"
#include "surface/serve/tls.h"

namespace mtrace::serve {
namespace {

using Clock = std::chrono::steady_clock;

// A connection. All of the request must arrive by one deadline and all of the answer leave by
// another: a peer that sends or takes a byte a second holds a thread no longer than one that
// does nothing.
class Connection : public httplib::Stream {
 public:
  // `tls`: nullptr: not encrypted.
  Connection(int socket, const Limits& limits, const TlsContext* tls)
      : socket_(socket),
        left_(limits.request_bytes),
        deadline_(Clock::now() + limits.request_time) {
    if (tls == nullptr) return;
    ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
    tls_.emplace(*tls, socket);
  }

  void begin_body(size_t bytes, std::chrono::seconds time) {
    left_ = bytes;
    deadline_ = Clock::now() + time;
  }
  void begin_answer(std::chrono::seconds time) { deadline_ = Clock::now() + time; }

  // Ends the answer. Reads what the peer still sends, for a second: closing the socket before would
  // make the kernel drop what the peer has not read yet.
  void finish() {
    if (tls_) tls_->end();
    ::shutdown(socket_, SHUT_WR);
    deadline_ = Clock::now() + std::chrono::seconds(1);
    char rest[1024];
    // No more than a request may have.
    for (ssize_t got = 1; got > 0 && left_ > 0 && wait_for(POLLIN);) {
      got = ::recv(socket_, rest, std::min(sizeof rest, left_), MSG_DONTWAIT);
      left_ -= static_cast<size_t>(std::max<ssize_t>(got, 0));
    }
  }

  bool is_readable() const override { return begin_ < end_ || wait_for(POLLIN); }
  bool is_writable() const override { return wait_for(POLLOUT); }
  ssize_t read(char* to, size_t size) override {
    if (begin_ == end_ && !fill()) return -1;
    const size_t count = std::min({size, end_ - begin_, left_});
    if (count == 0) return -1;
    std::copy_n(buffer_.data() + begin_, count, to);
    begin_ += count;
    left_ -= count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* data, size_t size) override {
    return transfer(POLLOUT, [&]() -> Transfer {
      if (tls_) return tls_->write(data, size);
      return plain(::send(socket_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT), POLLOUT);
    });
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  bool wait_for(short events) const {
    for (;;) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
      pollfd one = {socket_, events, 0};
      const int ready = ::poll(&one, 1, std::max(0, static_cast<int>(left.count())));
      if (ready >= 0 || errno != EINTR) return ready > 0 && left.count() > 0;
    }
  }
  static Transfer plain(ssize_t bytes, short event) {
    return {bytes, bytes < 0 && (errno == EAGAIN || errno == EINTR) ? event : short{0}};
  }
  // Tries until some bytes have been moved, the connection has ended (0 or less) or the deadline
  // has come. TLS has to be tried first: what it waits for is not what is asked for, and what it
  // has read already the socket does not tell.
  template <typename Try>
  ssize_t transfer(short event, Try&& once) const {
    for (short wait = tls_ ? short{0} : event;;) {
      if (wait != 0 && !wait_for(wait)) return -1;
      const Transfer done = once();
      if (done.bytes > 0 || done.wait == 0) return done.bytes;
      wait = done.wait;
    }
  }
  bool fill() {
    const ssize_t got = transfer(POLLIN, [&]() -> Transfer {
      if (tls_) return tls_->read(buffer_.data(), buffer_.size());
      return plain(::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT), POLLIN);
    });
    begin_ = 0;
    end_ = got > 0 ? static_cast<size_t>(got) : 0;
    return got > 0;
  }

  int socket_;
  std::optional<TlsSession> tls_;
  size_t left_;  // bytes that may still be read
  Clock::time_point deadline_;
  std::array<char, 4096> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

enum class Welcome { kAnswer, kRefuse, kClose };
thread_local Welcome t_welcome = Welcome::kAnswer;  // of the job that the thread runs
thread_local Connection* t_connection = nullptr;    // that the thread answers

// A thread for each connection that may be open, and a few that tell further ones to come later.
// When these are busy, too, the caller's thread closes the connection at once.
class Workers : public httplib::TaskQueue {
 public:
  explicit Workers(size_t most) : most_(most), pool_(most + kRefusing) {}
  void enqueue(std::function<void()> job) override {
    const size_t busy = busy_.fetch_add(1);
    if (busy >= most_ + kRefusing) return run(job, Welcome::kClose);
    const Welcome welcome = busy < most_ ? Welcome::kAnswer : Welcome::kRefuse;
    pool_.enqueue([this, welcome, job = std::move(job)] { run(job, welcome); });
  }
  void shutdown() override { pool_.shutdown(); }

 private:
  static constexpr size_t kRefusing = 4;
  void run(const std::function<void()>& job, Welcome welcome) {
    t_welcome = welcome;
    job();
    --busy_;
  }

  size_t most_;
  std::atomic<size_t> busy_ = 0;
  httplib::ThreadPool pool_;
};

Request request_of(const httplib::Request& from) {
  Request request;
  request.method = from.method;
  request.path = from.path;
  request.query.insert(from.params.begin(), from.params.end());
  for (const auto& [name, value] : from.headers) {
    std::string lower = name;
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    request.headers[lower] = value;
  }
  return request;
}

// Reads the body of the request that this thread answers.
int read_body(const httplib::ContentReader& reader, const Limits& limits,
              const std::function<void(std::string_view)>& take) {
  size_t left = limits.body_bytes;
  bool large = false;
  std::exception_ptr failure;
  // A body that ends before its length says so here, too.
  t_connection->begin_body(left + limits.request_bytes, limits.body_time);
  const bool whole = reader([&](const char* data, size_t size) {
    large = size > left;
    if (large) return false;
    left -= size;
    try {
      take({data, size});
    } catch (...) {
      failure = std::current_exception();  // must not pass through the library
    }
    return failure == nullptr;
  });
  t_connection->begin_answer(limits.answer_time);
  if (failure) std::rethrow_exception(failure);
  return large ? 413 : whole ? 0 : 400;
}

void fill(httplib::Response& to, Response from, bool head) {
  to.status = from.status;
  for (const auto& [name, value] : from.headers) to.set_header(name, value);
  if (!from.next || head) return to.set_content(from.body, from.type);
  to.set_chunked_content_provider(from.type,
                                  [next = std::move(from.next)](size_t, httplib::DataSink& sink) {
                                    const std::string part = next();
                                    if (!part.empty()) return sink.write(part.data(), part.size());
                                    sink.done();
                                    return true;
                                  });
}

// The IP address at the other end; empty: a Unix socket's.
std::string peer_of(int socket) {
  sockaddr_storage name = {};
  socklen_t size = sizeof name;
  char text[INET6_ADDRSTRLEN];
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0) return "";
  if (name.ss_family == AF_INET) {
    return ::inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in&>(name).sin_addr, text, sizeof text);
  }
  if (name.ss_family != AF_INET6) return "";
  // Whoever has one address of version 6 has as many as 64 bits can tell apart.
  in6_addr network = reinterpret_cast<sockaddr_in6&>(name).sin6_addr;
  if (!IN6_IS_ADDR_V4MAPPED(&network)) std::fill(network.s6_addr + 8, network.s6_addr + 16, 0);
  return ::inet_ntop(AF_INET6, &network, text, sizeof text);
}

class Server : public httplib::Server {
 public:
  Server(serve::Handler handler, const Limits& limits, const TlsFiles& tls)
      // No address can take all connections.
      : limits_(limits), peers_(limits.rate, limits.connections - limits.connections / 2) {
    if (!tls.certificate.empty()) tls_.emplace(tls);
    new_task_queue = [this] { return new Workers(limits_.connections); };
    set_pre_routing_handler(
        [handler](const httplib::Request& request, httplib::Response& response) {
          if (request.method == "PUT" || request.method == "POST") {
            return HandlerResponse::Unhandled;
          }
          fill(response, handler(request_of(request)), request.method == "HEAD");
          return HandlerResponse::Handled;
        });
    const auto with_body = [handler = std::move(handler), limits](
                               const httplib::Request& from, httplib::Response& response,
                               const httplib::ContentReader& reader) {
      Request request = request_of(from);
      request.body = [&](const auto& take) { return read_body(reader, limits, take); };
      fill(response, handler(request), false);
    };
    Put(".*", with_body);
    Post(".*", with_body);
  }

  void run(int listening) {
    svr_sock_ = listening;
    if (stopped_) ::shutdown(listening, SHUT_RDWR);
    listen_after_bind();
  }
  // shutdown() wakes accept(), and listen_after_bind() then closes the socket.
  void end() {
    stopped_ = true;
    const int listening = svr_sock_;
    if (listening >= 0) ::shutdown(listening, SHUT_RDWR);
  }

 private:
  bool process_and_close_socket(socket_t socket) override {
    if (t_welcome == Welcome::kRefuse) {
      Connection connection(socket, limits_, tls_ ? &*tls_ : nullptr);
      refuse(connection, "503 Service Unavailable", "too many connections");
      connection.finish();
    } else if (t_welcome == Welcome::kAnswer) {
      answer_peer(socket, peer_of(socket));
    }
    ::close(socket);
    return true;
  }
  void answer_peer(int socket, const std::string& peer) {
    switch (peers_.enter(peer)) {
      case PeerLimits::Entry::kWelcome: {
        Connection connection(socket, limits_, tls_ ? &*tls_ : nullptr);
        answer(connection);
        connection.finish();
        return peers_.leave(peer);
      }
      case PeerLimits::Entry::kTooFast:
        return turn_away(socket, "429 Too Many Requests", "too many requests a second");
      case PeerLimits::Entry::kTooMany:
        return turn_away(socket, "503 Service Unavailable", "too many connections of this address");
    }
  }
  // Without waiting for the peer, which may be one that wants to be waited for: it has the answer
  // unless it has sent nothing yet, or encrypts.
  void turn_away(int socket, const char* status, const std::string& why) const {
    if (tls_) return;
    const std::string answer = refusal(status, why);
    ::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::shutdown(socket, SHUT_WR);
    char rest[4096];
    for (int i = 0; i < 16 && ::recv(socket, rest, sizeof rest, MSG_DONTWAIT) > 0; ++i) {
    }
  }
  void answer(Connection& connection) {
    bool closed = false;
    t_connection = &connection;
    process_request(connection, true, closed, [&](httplib::Request& request) {
      // Each range of an answer is a copy of it, and a request can name thousands.
      request.ranges.clear();
      // The library prefers brotli, at its highest quality: seconds for a megabyte.
      const auto accepted = request.headers.find("Accept-Encoding");
      if (accepted != request.headers.end() && accepted->second.find("gzip") != std::string::npos) {
        accepted->second = "gzip";
      }
      connection.begin_answer(limits_.answer_time);
    });
  }
  // Without reading what is asked for.
  static void refuse(Connection& connection, const char* status, const std::string& why) {
    const std::string answer = refusal(status, why);
    connection.write(answer.data(), answer.size());
  }
  static std::string refusal(const char* status, const std::string& why) {
    const std::string body = "{\"error\": \"" + why + "\"}";
    return std::string("HTTP/1.1 ") + status +
           "\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: application/json\r\n"
           "Content-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  Limits limits_;
  PeerLimits peers_;
  std::optional<TlsContext> tls_;
  std::atomic<bool> stopped_ = false;
};

class LoadedServer : public HttpServer {
 public:
  LoadedServer(Handler handler, const Limits& limits, const TlsFiles& tls)
      : server_(std::move(handler), limits, tls) {}
  void serve(int listening) override { server_.run(listening); }
  void stop() override { server_.end(); }

 private:
  Server server_;
};

}  // namespace
}  // namespace mtrace::serve

extern "C" __attribute__((visibility("default"))) void memlog_make_http_server(
    mtrace::serve::Handler handler, const mtrace::serve::Limits& limits,
    const mtrace::serve::TlsFiles& tls, std::unique_ptr<mtrace::serve::HttpServer>& server) {
  server = std::make_unique<mtrace::serve::LoadedServer>(std::move(handler), limits, tls);
}
