// The server's half of memlog-http.so. It uses no other part of memlog.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "surface/fleet/http_library.h"
#include "surface/serve/http.h"

namespace mtrace::serve {
namespace {

using Clock = std::chrono::steady_clock;

template <auto kFree>
struct Freed {
  template <typename Object>
  void operator()(Object* object) const {
    kFree(object);
  }
};
using TlsContext = std::unique_ptr<SSL_CTX, Freed<::SSL_CTX_free>>;

[[noreturn]] void fail_tls(const std::string& file, const char* what) {
  const char* const why = ::ERR_reason_error_string(::ERR_get_error());
  throw std::runtime_error(file + ": " + what +
                           (why != nullptr ? std::string(" (") + why + ")" : ""));
}

// Throws std::runtime_error that names the file that is no good.
TlsContext tls_context(const TlsFiles& files) {
  TlsContext out(::SSL_CTX_new(::TLS_server_method()));
  if (out == nullptr) fail_tls("no memory for TLS", "");
  SSL_CTX* const context = out.get();
  ::SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  ::SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  ::SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ::SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);  // nothing is kept of clients
  ::SSL_CTX_set_num_tickets(context, 0);
  if (::SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    fail_tls(files.certificate, "no certificate in PEM format");
  }
  if (::SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    fail_tls(files.key, "no private key in PEM format for that certificate");
  }
  if (files.client_ca.empty()) return out;
  const char* const authorities = files.client_ca.c_str();
  STACK_OF(X509_NAME)* const names = ::SSL_load_client_CA_file(authorities);
  if (names == nullptr || ::SSL_CTX_load_verify_locations(context, authorities, nullptr) != 1) {
    fail_tls(files.client_ca, "no certificates of authorities in PEM format");
  }
  ::SSL_CTX_set_client_CA_list(context, names);
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return out;
}

// What one try to read or write came to.
struct Transfer {
  ssize_t bytes;  // 0 or less: none, and the connection has ended, unless `wait` says otherwise
  short wait;     // events of poll(2) to wait for before the next try; 0: none
};

// What one address may ask: a rate of requests, by a token bucket, and a share of the connections.
// Thread-safe.
class PeerLimits {
 public:
  // `rate`: requests a second, and two seconds' worth of them at once; 0: no limit. `connections`:
  // at a time.
  PeerLimits(double rate, size_t connections) : rate_(rate), connections_(connections) {}

  enum class Entry { kWelcome, kTooFast, kTooMany };
  // A connection has begun, with a request. leave() tells the end of a welcome one. "": an address
  // without limits.
  Entry enter(const std::string& address) {
    if (address.empty()) return Entry::kWelcome;
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (peers_.size() >= kMostPeers && !peers_.contains(address)) {
      std::erase_if(peers_, [&](const auto& one) {
        return one.second.open == 0 && tokens_at(one.second, now) >= rate_;
      });
      if (peers_.size() >= kMostPeers) return Entry::kTooMany;
    }
    Peer& peer = peers_.try_emplace(address, Peer{2 * rate_, now, 0}).first->second;
    peer.tokens = tokens_at(peer, now);
    peer.when = now;
    if (rate_ != 0 && peer.tokens < 1) return Entry::kTooFast;
    if (peer.open >= connections_) return Entry::kTooMany;
    --peer.tokens;
    ++peer.open;
    return Entry::kWelcome;
  }
  void leave(const std::string& address) {
    const std::lock_guard lock(mutex_);
    if (const auto found = peers_.find(address); found != peers_.end()) --found->second.open;
  }

 private:
  static constexpr size_t kMostPeers = 4096;  // addresses that are remembered
  struct Peer {
    double tokens = 0;
    Clock::time_point when;
    size_t open = 0;
  };
  double tokens_at(const Peer& peer, Clock::time_point now) const {
    const std::chrono::duration<double> passed = now - peer.when;
    return std::min(2 * rate_, peer.tokens + passed.count() * rate_);
  }

  double rate_;
  size_t connections_;
  std::mutex mutex_;
  std::unordered_map<std::string, Peer> peers_;
};

// A connection. All of the request must arrive by one deadline and all of the answer leave by
// another: a peer that sends or takes a byte a second holds a thread no longer than one that
// does nothing.
class Connection : public httplib::Stream {
 public:
  // `tls`: nullptr: not encrypted. httplib's own TLS waits for a peer without a deadline.
  Connection(int socket, const Limits& limits, SSL_CTX* tls)
      : socket_(socket),
        encrypted_(tls != nullptr),
        left_(limits.request_bytes),
        deadline_(Clock::now() + limits.request_time) {
    if (!encrypted_) return;
    ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
    tls_.reset(::SSL_new(tls));
    if (tls_ != nullptr && ::SSL_set_fd(tls_.get(), socket) != 1) tls_.reset();
    if (tls_ != nullptr) ::SSL_set_accept_state(tls_.get());
  }

  void begin_body(size_t bytes, std::chrono::seconds time) {
    left_ = bytes;
    deadline_ = Clock::now() + time;
  }
  void begin_answer(std::chrono::seconds time) { deadline_ = Clock::now() + time; }

  // Ends the answer. Reads what the peer still sends, for a second: closing the socket before would
  // make the kernel drop what the peer has not read yet.
  void finish() {
    if (tls_ != nullptr && ::SSL_is_init_finished(tls_.get()) != 0) ::SSL_shutdown(tls_.get());
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
      if (encrypted_) {
        return encrypted([&](SSL* tls) { return ::SSL_write(tls, data, static_cast<int>(size)); });
      }
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
  // The handshake comes with the first call.
  template <typename Call>
  Transfer encrypted(Call&& call) {
    if (tls_ == nullptr) return {-1, 0};
    ::ERR_clear_error();
    const int result = call(tls_.get());
    if (result > 0) return {result, 0};
    const int error = ::SSL_get_error(tls_.get(), result);
    return {-1, error == SSL_ERROR_WANT_READ    ? short{POLLIN}
                : error == SSL_ERROR_WANT_WRITE ? short{POLLOUT}
                                                : short{0}};
  }
  // Tries until some bytes have been moved, the connection has ended (0 or less) or the deadline
  // has come. TLS has to be tried first: what it waits for is not what is asked for, and what it
  // has read already the socket does not tell.
  template <typename Try>
  ssize_t transfer(short event, Try&& once) const {
    for (short wait = encrypted_ ? short{0} : event;;) {
      if (wait != 0 && !wait_for(wait)) return -1;
      const Transfer done = once();
      if (done.bytes > 0 || done.wait == 0) return done.bytes;
      wait = done.wait;
    }
  }
  bool fill() {
    const ssize_t got = transfer(POLLIN, [&]() -> Transfer {
      if (encrypted_) {
        return encrypted([&](SSL* tls) { return ::SSL_read(tls, buffer_.data(), sizeof buffer_); });
      }
      return plain(::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT), POLLIN);
    });
    begin_ = 0;
    end_ = got > 0 ? static_cast<size_t>(got) : 0;
    return got > 0;
  }

  int socket_;
  bool encrypted_;
  std::unique_ptr<SSL, Freed<::SSL_free>> tls_;  // null: out of memory
  size_t left_;                                  // bytes that may still be read
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
    if (!tls.certificate.empty()) tls_ = tls_context(tls);
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
      Connection connection(socket, limits_, tls_.get());
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
        Connection connection(socket, limits_, tls_.get());
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
    if (tls_ != nullptr) return;
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
  TlsContext tls_;  // null: not encrypted
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
