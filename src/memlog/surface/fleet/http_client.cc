// The client's half of memlog-http.so. It uses no other part of memlog.
#include "surface/fleet/http_client.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "surface/fleet/http_library.h"

namespace mtrace::fleet {
namespace {

constexpr time_t kConnectSeconds = 10;
constexpr time_t kAnswerSeconds = 120;

bool is_end(httplib::Error error) {
  return error == httplib::Error::Read || error == httplib::Error::Write;
}

std::string reason_of(httplib::Error error) {
  if (is_end(error)) return "the connection has ended";
  switch (error) {
    case httplib::Error::Connection:
    case httplib::Error::ConnectionTimeout:
      return "cannot connect";
    case httplib::Error::SSLServerVerification:
      return "its certificate is not trusted: --ca-file names one that signs it";
    default:
      return "no answer: " + httplib::to_string(error);
  }
}

// While it lives, a server that has closed the connection ends no more than the request: httplib
// and OpenSSL write without MSG_NOSIGNAL.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &mask_);
  }
  ~NoSigpipe() {
    constexpr timespec kNow = {};
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &kNow);
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t mask_;
  bool was_pending_;
};

class LoadedClient : public HttpClient {
 public:
  explicit LoadedClient(const HttpServerAddress& server)
      : client_(server.origin), path_(server.path) {
    client_.set_connection_timeout(kConnectSeconds);
    client_.set_read_timeout(kAnswerSeconds);
    client_.set_write_timeout(kAnswerSeconds);
    client_.set_keep_alive(true);
    client_.set_url_encode(false);
    if (!server.ca_file.empty()) client_.set_ca_cert_path(server.ca_file);
  }

  HttpAnswer ask(const std::string& method, const std::string& target, const HttpHeaders& headers,
                 std::string_view body) override {
    httplib::Request request;
    request.method = method;
    request.path = path_ + target;
    for (const auto& [name, value] : headers) request.set_header(name, value);
    request.body = body;
    const NoSigpipe guard;
    const httplib::Result result = client_.send(request);
    if (!result) {
      return {.failure = reason_of(result.error()),
              .ended = is_end(result.error()),
              .untrusted = result.error() == httplib::Error::SSLServerVerification};
    }
    return {.status = result->status, .body = result->body};
  }

 private:
  httplib::Client client_;
  std::string path_;
};

}  // namespace
}  // namespace mtrace::fleet

extern "C" __attribute__((visibility("default"))) void memlog_make_http_client(
    const mtrace::fleet::HttpServerAddress& server,
    std::unique_ptr<mtrace::fleet::HttpClient>& client) {
  client = std::make_unique<mtrace::fleet::LoadedClient>(server);
}
