// All of memlog-http.so, which memlog loads when it serves. It uses no other part of memlog.
#include "serve/http_server.h"

// The layout of httplib's classes depends on these, which Debian's library was built with.
#define CPPHTTPLIB_OPENSSL_SUPPORT
#define CPPHTTPLIB_ZLIB_SUPPORT
#define CPPHTTPLIB_BROTLI_SUPPORT
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <exception>

namespace mtrace::serve {
namespace {

using Clock = std::chrono::steady_clock;

// A connection. All of the request must arrive by one deadline and all of the answer leave by
// another: a peer that sends or takes a byte a second holds a thread no longer than one that
// does nothing.
class Connection : public httplib::Stream {
 public:
  Connection(int socket, const Limits& limits)
      : socket_(socket),
        left_(limits.request_bytes),
        deadline_(Clock::now() + limits.request_time) {}

  void begin_body(size_t bytes, std::chrono::seconds time) {
    left_ = bytes;
    deadline_ = Clock::now() + time;
  }
  void begin_answer(std::chrono::seconds time) { deadline_ = Clock::now() + time; }

  // Ends the answer. Reads what the peer still sends, for a second: closing the socket before would
  // make the kernel drop what the peer has not read yet.
  void finish() {
    ::shutdown(socket_, SHUT_WR);
    deadline_ = Clock::now() + std::chrono::seconds(1);
    char rest[1024];
    while (read(rest, sizeof rest) > 0) {
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
    for (;;) {
      if (!wait_for(POLLOUT)) return -1;
      const ssize_t sent = ::send(socket_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0 || (errno != EAGAIN && errno != EINTR)) return sent;
    }
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
  bool fill() {
    while (wait_for(POLLIN)) {
      const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      begin_ = 0;
      end_ = got > 0 ? static_cast<size_t>(got) : 0;
      return got > 0;
    }
    return false;
  }

  int socket_;
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

class Server : public httplib::Server {
 public:
  Server(serve::Handler handler, const Limits& limits) : limits_(limits) {
    new_task_queue = [this] { return new Workers(limits_.connections); };
    set_pre_routing_handler(
        [handler](const httplib::Request& request, httplib::Response& response) {
          if (request.method == "PUT") return HandlerResponse::Unhandled;
          fill(response, handler(request_of(request)), request.method == "HEAD");
          return HandlerResponse::Handled;
        });
    Put(".*", [handler = std::move(handler), limits](const httplib::Request& from,
                                                     httplib::Response& response,
                                                     const httplib::ContentReader& reader) {
      Request request = request_of(from);
      request.body = [&](const auto& take) { return read_body(reader, limits, take); };
      fill(response, handler(request), false);
    });
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
    if (t_welcome != Welcome::kClose) {
      Connection connection(socket, limits_);
      if (t_welcome == Welcome::kAnswer) {
        answer(connection);
      } else {
        refuse(connection);
      }
      connection.finish();
    }
    ::close(socket);
    return true;
  }
  void answer(Connection& connection) {
    bool closed = false;
    t_connection = &connection;
    process_request(connection, true, closed, [&](httplib::Request& request) {
      // Each range of an answer is a copy of it, and a request can name thousands.
      request.ranges.clear();
      connection.begin_answer(limits_.answer_time);
    });
  }
  static void refuse(Connection& connection) {
    constexpr std::string_view kBusy =
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
        "Content-Type: application/json\r\nContent-Length: 33\r\n\r\n"
        "{\"error\": \"too many connections\"}";
    connection.write(kBusy.data(), kBusy.size());
  }

  Limits limits_;
  std::atomic<bool> stopped_ = false;
};

class LoadedServer : public HttpServer {
 public:
  LoadedServer(Handler handler, const Limits& limits) : server_(std::move(handler), limits) {}
  void serve(int listening) override { server_.run(listening); }
  void stop() override { server_.end(); }

 private:
  Server server_;
};

}  // namespace
}  // namespace mtrace::serve

extern "C" __attribute__((visibility("default"))) void memlog_make_http_server(
    mtrace::serve::Handler handler, const mtrace::serve::Limits& limits,
    std::unique_ptr<mtrace::serve::HttpServer>& server) {
  server = std::make_unique<mtrace::serve::LoadedServer>(std::move(handler), limits);
}
