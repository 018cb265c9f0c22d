// A small service: worker threads take requests from a queue and keep sessions and a cache. One
// kind of request leaks on purpose. Commands come on standard input, one a line:
//   run KIND COUNT   COUNT requests of the kind (login, search, upload, export, logout), and waits
//   quit
// After each command it prints "done".
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace service {

struct Request {
  std::string kind;
  int id = 0;
};

struct Session {
  int id;
  std::string user;
  std::vector<std::string> history;
};

// Sessions by id; login makes one, logout ends one.
class Sessions {
 public:
  void open(int id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto session = std::make_unique<Session>();
    session->id = id;
    session->user = "user-" + std::to_string(id) + "@example.org";
    sessions_[id] = std::move(session);
  }
  void close(int id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    sessions_.erase(id);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<int, std::unique_ptr<Session>> sessions_;
};

// The last results of searches; the oldest goes when it is full.
class Cache {
 public:
  void put(const std::string& key, std::string value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (values_.emplace(key, std::move(value)).second) order_.push_back(key);
    while (order_.size() > kCapacity) {
      values_.erase(order_.front());
      order_.pop_front();
    }
  }

 private:
  static constexpr size_t kCapacity = 64;
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
  std::deque<std::string> order_;
};

struct Thumbnail {
  int width = 64;
  int height = 64;
  unsigned char* pixels = nullptr;
};

class Service {
 public:
  explicit Service(int workers) {
    for (int i = 0; i < workers; ++i) workers_.emplace_back([this] { work(); });
  }
  ~Service() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  // Hands out the requests and waits until all are answered.
  void run(const std::string& kind, int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (int id = 0; id < count; ++id) queue_.push_back({kind, id});
    pending_ += count;
    wake_.notify_all();
    idle_.wait(lock, [this] { return pending_ == 0; });
  }

 private:
  void work() {
    for (;;) {
      Request request;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
        if (queue_.empty()) return;
        request = std::move(queue_.front());
        queue_.pop_front();
      }
      handle(request);
      const std::lock_guard<std::mutex> lock(mutex_);
      if (--pending_ == 0) idle_.notify_one();
    }
  }

  void handle(const Request& request) {
    if (request.kind == "login") sessions_.open(request.id);
    if (request.kind == "logout") sessions_.close(request.id);
    if (request.kind == "search") search(request);
    if (request.kind == "upload") upload(request);
    if (request.kind == "export") export_all(request);
  }

  void search(const Request& request) {
    std::vector<std::string> words;
    for (int i = 0; i < 20; ++i) words.push_back("word-" + std::to_string(request.id * i % 7));
    std::string result;
    for (const std::string& word : words) result += word + " ";
    cache_.put("query-" + std::to_string(request.id % 32), result);
  }

  // The planted leak: the thumbnail of an upload is made and forgotten.
  __attribute__((noinline)) Thumbnail make_thumbnail(const std::vector<unsigned char>& image) {
    Thumbnail thumbnail;
    const size_t size = static_cast<size_t>(thumbnail.width * thumbnail.height);
    thumbnail.pixels = new unsigned char[size];  // LEAK
    for (size_t i = 0; i < size; ++i) thumbnail.pixels[i] = image[i * image.size() / size];
    return thumbnail;
  }

  void upload(const Request& request) {
    std::vector<unsigned char> image(100'000, static_cast<unsigned char>(request.id));
    const Thumbnail thumbnail = make_thumbnail(image);
    checksum_ += thumbnail.pixels[0];
  }

  void export_all(const Request& request) {
    std::ostringstream text;
    for (int i = 0; i < 100; ++i) text << request.id << ',' << i << '\n';
    checksum_ += static_cast<unsigned>(text.str().size());
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<Request> queue_;
  int pending_ = 0;
  bool stopping_ = false;
  std::atomic<unsigned> checksum_ = 0;
  Sessions sessions_;
  Cache cache_;
  std::vector<std::thread> workers_;
};

}  // namespace service

int main() {
  service::Service service(4);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string command;
    std::string kind;
    int count = 0;
    words >> command >> kind >> count;
    if (command == "quit") break;
    if (command == "run") service.run(kind, count);
    std::cout << "done" << std::endl;
  }
  return 0;
}
