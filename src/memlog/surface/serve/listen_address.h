// The address that memlog serve listens at.
#pragma once

#include <sys/types.h>

#include <string>

#include "util/file.h"

namespace mtrace::serve {

struct ListenAddress {
  std::string path;  // of a Unix socket; empty: TCP
  std::string host;  // an IP address, without brackets
  int port = 0;      // 0: any free one
  bool tls = false;  // the connection is encrypted

  bool is_unix() const { return !path.empty(); }
  // Whether only this machine reaches it.
  bool is_local() const;
  // Returns "http://127.0.0.1:7040", "https://..." or "unix:PATH".
  std::string text() const;
};

// Reads "127.0.0.1:7040", "[::1]:7040", "localhost:7040" or "unix:PATH". Throws std::runtime_error
// that says what an address looks like.
ListenAddress read_address(const std::string& text);

// A listening socket. A Unix socket has mode 0600, replaces one that nobody listens at any more,
// and is removed by the destructor.
class Listener {
 public:
  // Sets `address.port` to the port that it got. Throws std::runtime_error.
  explicit Listener(ListenAddress address);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const ListenAddress& address() const { return address_; }
  int descriptor() const { return socket_.get(); }

 private:
  void open_unix();
  void open_tcp();

  ListenAddress address_;
  util::Descriptor socket_;
  ino_t inode_ = 0;  // of the Unix socket; 0: none was made
};

}  // namespace mtrace::serve
