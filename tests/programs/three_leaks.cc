// Three leaks in template-heavy code, among the noise of a pool and an arena that only recycle:
//   shop::Graph::link       nodes that own each other by shared_ptr
//   shop::Cache::remember   a cache that never evicts
//   shop::Sessions::open    sessions that are never erased
// Arguments: rounds, and requests a round. After each round it asks for a report. With "wait" as
// the third argument it then prints "ready" and waits for the end of standard input.
#include <array>
#include <deque>
#include <functional>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "mtrace.h"

namespace shop {

template <typename Value>
struct Node {
  Value value;
  std::vector<std::shared_ptr<Node>> peers;
};

template <typename Value>
class Graph {
 public:
  // Leaks both nodes: each keeps the other.
  void link(const Value& a, const Value& b) {
    auto one = std::make_shared<Node<Value>>(Node<Value>{a, {}});
    auto other = std::make_shared<Node<Value>>(Node<Value>{b, {}});
    one->peers.push_back(other);
    other->peers.push_back(one);
  }
};

template <typename Key, typename Value>
class Cache {
 public:
  // Leaks: nothing is ever evicted.
  void remember(const Key& key, size_t size) { entries_.emplace(key, Value(size)); }

 private:
  std::map<Key, Value> entries_;
};

struct Session {
  std::string user;
  std::vector<std::string> history;
  std::array<char, 400> state = {};
};

class Sessions {
 public:
  // Leaks: a session that ends stays in the table.
  void open(int id) {
    auto session = std::make_unique<Session>();
    session->user = "a user with a rather long name";
    session->history.push_back("the first page that the user looked at");
    sessions_[id] = std::move(session);
  }

 private:
  std::unordered_map<int, std::unique_ptr<Session>> sessions_;
};

// Hands out slabs again that came back.
template <typename Slab>
class Pool {
 public:
  std::unique_ptr<Slab> take() {
    if (free_.empty()) return std::make_unique<Slab>();
    std::unique_ptr<Slab> slab = std::move(free_.back());
    free_.pop_back();
    return slab;
  }
  void give(std::unique_ptr<Slab> slab) { free_.push_back(std::move(slab)); }

 private:
  std::vector<std::unique_ptr<Slab>> free_;
};

// Grows for one request and is emptied after it.
class Arena {
 public:
  void* take(size_t size) { return pieces_.emplace_back(new char[size]).get(); }
  void reset() { pieces_.clear(); }

 private:
  std::list<std::unique_ptr<char[]>> pieces_;
};

class Shop {
 public:
  void request(int id) {
    const std::function<void(int)> steps[] = {
        [this](int number) { graph_.link({static_cast<char>(number)}, {}); },
        [this](int number) { cache_.remember(std::to_string(number), 100); },
        [this](int number) { sessions_.open(number); },
    };
    for (const auto& step : steps) step(id);
    noise(id);
  }

 private:
  void noise(int id) {
    std::deque<std::unique_ptr<std::array<char, 4096>>> taken;
    for (int i = 0; i < 4 + id % 5; ++i) taken.push_back(pool_.take());
    for (int i = 0; i < 6; ++i) arena_.take(static_cast<size_t>(200 + 100 * (id % 7)));
    for (auto& slab : taken) pool_.give(std::move(slab));
    if (id % 3 == 0) arena_.reset();
  }

  Graph<std::array<char, 64>> graph_;
  Cache<std::string, std::vector<std::optional<double>>> cache_;
  Sessions sessions_;
  Pool<std::array<char, 4096>> pool_;
  Arena arena_;
};

}  // namespace shop

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::stoi(argv[1]) : 8;
  const int requests = argc > 2 ? std::stoi(argv[2]) : 50;
  auto shop = std::make_unique<shop::Shop>();
  int id = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < requests; ++i) shop->request(++id);
    mtrace_report();
  }
  if (argc > 3) {
    std::cout << "ready" << std::endl;
    for (int c = 0; (c = std::cin.get()) != EOF;) {
      if (c == '\n') shop->request(++id);
    }
  }
  std::cout << "done" << std::endl;
  std::_Exit(0);  // as a service that is stopped: the destructors of main do not run
}
