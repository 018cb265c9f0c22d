// What one address may ask of the server: a rate of requests, by a token bucket, and a share of the
// connections.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>

namespace mtrace::serve {

// Thread-safe. Remembers at most kMostPeers addresses: when there are more, those without a
// connection that are far from the limit are forgotten, and if there is none, further ones count as
// one.
class PeerLimits {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kMostPeers = 4096;

  // `rate`: requests a second, and two seconds' worth of them at once; 0: no limit. `connections`:
  // at a time.
  PeerLimits(double rate, size_t connections) : rate_(rate), connections_(connections) {}

  enum class Entry { kWelcome, kTooFast, kTooMany };
  // A connection has begun, with a request. Of a welcome one leave() tells the end. "": an address
  // without limits.
  Entry enter(const std::string& address, Clock::time_point now = Clock::now()) {
    if (address.empty()) return Entry::kWelcome;
    const std::lock_guard lock(mutex_);
    Peer& peer = find_or_add(address, now);
    peer.tokens = tokens_at(peer, now);
    peer.when = now;
    if (rate_ != 0 && peer.tokens < 1) return Entry::kTooFast;
    if (peer.open >= connections_) return Entry::kTooMany;
    --peer.tokens;
    ++peer.open;
    return Entry::kWelcome;
  }
  void leave(const std::string& address) {
    if (address.empty()) return;
    const std::lock_guard lock(mutex_);
    const auto found = peers_.find(address);
    Peer& peer = found != peers_.end() ? found->second : peers_[kOthers];
    if (peer.open != 0) --peer.open;
  }

 private:
  struct Peer {
    double tokens = 0;
    Clock::time_point when;
    size_t open = 0;
  };
  double tokens_at(const Peer& peer, Clock::time_point now) const {
    const std::chrono::duration<double> passed = now - peer.when;
    return std::min(2 * rate_, peer.tokens + passed.count() * rate_);
  }
  Peer& find_or_add(const std::string& address, Clock::time_point now) {
    const auto found = peers_.find(address);
    if (found != peers_.end()) return found->second;
    if (peers_.size() >= kMostPeers) {
      std::erase_if(peers_, [&](const auto& one) {
        return one.second.open == 0 && tokens_at(one.second, now) >= rate_;
      });
    }
    const char* name = peers_.size() < kMostPeers ? address.c_str() : kOthers;
    return peers_.try_emplace(name, Peer{2 * rate_, now, 0}).first->second;
  }

  static constexpr char kOthers[] = "others";
  double rate_;
  size_t connections_;
  std::mutex mutex_;
  std::unordered_map<std::string, Peer> peers_;
};

}  // namespace mtrace::serve
