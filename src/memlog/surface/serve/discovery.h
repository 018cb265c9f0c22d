// How memlog collect --discover finds memlog serve --announce on the local network: a datagram to a
// multicast group asks, and each server that hears it answers whoever asked. Nothing else is sent.
#pragma once

#include "util/file.h"
#include "util/prelude.h"

namespace mtrace::serve {

// Of the administratively scoped addresses (RFC 2365): routers do not pass them on, and datagrams
// have a time to live of 1.
inline constexpr char kDiscoveryGroup[] = "239.255.77.76";
inline constexpr int kDiscoveryPort = 7041;  // UDP

struct Announcement {
  std::string host;  // the IPv4 address that answered
  int port = 0;
  bool tls = false;
  std::string version;
  std::string name;  // of the machine, as it says

  std::string url() const;
  // Returns the answer, without the host.
  std::string text() const;
};

// Reads what text() returns. Nothing: it is none, or has anything but printable words.
std::optional<Announcement> read_announcement(std::string_view text, const std::string& host);

// Whether the address is an IPv4 address of one interface, not of all.
bool can_announce(const std::string& host);

// Answers while it lives, a few times a second at most.
class Announcer {
 public:
  // `own.host`: an address of this machine, on whose interface it listens. Throws util::FileError.
  explicit Announcer(const Announcement& own);
  ~Announcer();
  Announcer(const Announcer&) = delete;
  Announcer& operator=(const Announcer&) = delete;

 private:
  void work();

  std::string answer_;
  util::Descriptor asked_;
  util::Descriptor answering_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

// Asks on every interface with an IPv4 address, and waits so long for answers. Each server once, by
// address and port. Throws util::FileError.
std::vector<Announcement> discover(std::chrono::milliseconds wait);

}  // namespace mtrace::serve
