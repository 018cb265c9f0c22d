// The client's half of memlog-http.so. It uses no other part of memlog.
#include "fleet/http_client.h"

// The layout of httplib's classes depends on these, which Debian's library was built with.
#define CPPHTTPLIB_OPENSSL_SUPPORT
#define CPPHTTPLIB_ZLIB_SUPPORT
#define CPPHTTPLIB_BROTLI_SUPPORT
#include <httplib.h>

namespace mtrace::fleet {
namespace {

constexpr time_t kConnectSeconds = 10;
constexpr time_t kAnswerSeconds = 120;

std::string reason_of(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
    case httplib::Error::ConnectionTimeout:
      return "cannot connect";
    case httplib::Error::Read:
    case httplib::Error::Write:
      return "the connection has ended";
    case httplib::Error::SSLServerVerification:
      return "its certificate is not trusted: --ca-file names one that signs it";
    default:
      return "no answer: " + httplib::to_string(error);
  }
}

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
    const httplib::Result result = client_.send(request);
    if (!result) return {0, "", reason_of(result.error())};
    return {result->status, result->body, ""};
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
