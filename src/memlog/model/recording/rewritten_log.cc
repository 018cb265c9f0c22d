#include "model/recording/rewritten_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mtrace::events {

void RewrittenLog::begin() {
  constexpr uint64_t kMillisecond = 1'000'000;
  const std::string left_out =
      wish_.cull == 0 ? "" : fmt::format("blocks that live shorter than {} ms", wish_.cull);
  writer_ = std::make_unique<LogWriter>(
      *log_, left_out, [this](std::string content) { file_.append(std::move(content)); });
  if (wish_.most_bytes != 0) writer_->keep_state();
  if (wish_.cull == 0) return;
  CullWish wish;
  wish.lifetime = wish_.cull * kMillisecond;
  culler_ = std::make_unique<Culler>(std::move(wish), *writer_);
}

void RewrittenLog::rewrite(std::string content) {
  if (log_ == nullptr) {
    auto contents = std::make_unique<MadeContents>();
    contents_ = contents.get();
    contents_->add(std::move(content));
    log_ = std::make_unique<EventLog>(std::move(contents));
    return begin();
  }
  contents_->add(std::move(content));
  for (Event event; log_->next(event);) {
    culler_ != nullptr ? culler_->put(event) : writer_->put(event);
  }
  writer_->flush();
  if (wish_.most_bytes != 0) look_at_size();
}

void RewrittenLog::look_at_size() {
  file_.finish();
  // What lives may take more than a file should: then a file has as much again of what happens.
  if (file_.size() < std::max(wish_.most_bytes / wish_.files, 2 * begun_with_)) return;
  if (!file_.make_next()) return;
  writer_->begin_file([&] {
    file_.finish();
    file_.begin_next(wish_.files - 1);
  });
  file_.finish();
  begun_with_ = file_.size();
}

void RewrittenLog::take(std::string content) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.size() < kMostWaiting; });
  waiting_.push_back(std::move(content));
  changed_.notify_all();
}

void RewrittenLog::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !waiting_.empty() || ends_; });
    if (waiting_.empty()) break;
    std::string content = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    changed_.notify_all();
    rewrite(std::move(content));
  }
  if (culler_ != nullptr) culler_->finish();
}

void RewrittenLog::finish() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace mtrace::events
