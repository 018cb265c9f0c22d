// TLS for the HTTP server, by OpenSSL. Only http_server.cc includes it, so that only memlog-http.so
// needs OpenSSL.
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/types.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "surface/serve/http_server.h"

namespace mtrace::serve {

// What one try to read or write came to.
struct Transfer {
  ssize_t bytes;  // 0 or less: none, and the connection has ended, unless `wait` says otherwise
  short wait;     // events of poll(2) to wait for before the next try; 0: none
};

// Certificate, key and the authorities of clients. For many sessions at once.
class TlsContext {
 public:
  // Throws std::runtime_error that names the file that is no good.
  explicit TlsContext(const TlsFiles& files) : context_(::SSL_CTX_new(::TLS_server_method())) {
    if (context_ == nullptr) fail("no memory for TLS", "");
    SSL_CTX* const context = context_.get();
    ::SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    ::SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    ::SSL_CTX_set_mode(context,
                       SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    ::SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);  // nothing is kept of clients
    ::SSL_CTX_set_num_tickets(context, 0);
    if (::SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
      fail(files.certificate, "no certificate in PEM format");
    }
    if (::SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
      fail(files.key, "no private key in PEM format for that certificate");
    }
    if (!files.client_ca.empty()) ask_clients(files.client_ca);
  }
  SSL_CTX* get() const { return context_.get(); }

 private:
  void ask_clients(const std::string& authorities) {
    STACK_OF(X509_NAME)* const names = ::SSL_load_client_CA_file(authorities.c_str());
    if (names == nullptr ||
        ::SSL_CTX_load_verify_locations(context_.get(), authorities.c_str(), nullptr) != 1) {
      fail(authorities, "no certificates of authorities in PEM format");
    }
    ::SSL_CTX_set_client_CA_list(context_.get(), names);
    ::SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                         nullptr);
  }
  [[noreturn]] static void fail(const std::string& file, const char* what) {
    const char* const why = ::ERR_reason_error_string(::ERR_get_error());
    throw std::runtime_error(file + ": " + what +
                             (why != nullptr ? std::string(" (") + why + ")" : ""));
  }

  struct Free {
    void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  };
  std::unique_ptr<SSL_CTX, Free> context_;
};

// One connection, whose socket does not block. By one thread at a time.
class TlsSession {
 public:
  TlsSession(const TlsContext& context, int socket) : session_(::SSL_new(context.get())) {
    if (session_ == nullptr || ::SSL_set_fd(session_.get(), socket) != 1) session_.reset();
    if (session_ != nullptr) ::SSL_set_accept_state(session_.get());
  }
  // The handshake comes with the first of them.
  Transfer read(char* to, size_t size) {
    return done([&](SSL* session) { return ::SSL_read(session, to, static_cast<int>(size)); });
  }
  Transfer write(const char* data, size_t size) {
    return done([&](SSL* session) { return ::SSL_write(session, data, static_cast<int>(size)); });
  }
  // Tells the peer that the answer is whole.
  void end() {
    if (session_ != nullptr && ::SSL_is_init_finished(session_.get()))
      ::SSL_shutdown(session_.get());
  }

 private:
  template <typename Call>
  Transfer done(Call call) {
    if (session_ == nullptr) return {-1, 0};
    ::ERR_clear_error();
    const int result = call(session_.get());
    if (result > 0) return {result, 0};
    switch (::SSL_get_error(session_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return {-1, POLLIN};
      case SSL_ERROR_WANT_WRITE:
        return {-1, POLLOUT};
      default:
        return {-1, 0};
    }
  }

  struct Free {
    void operator()(SSL* session) const { ::SSL_free(session); }
  };
  std::unique_ptr<SSL, Free> session_;
};

}  // namespace mtrace::serve
