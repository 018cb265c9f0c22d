#include "events/culled_log.h"

#include <fmt/format.h>

#include <utility>

namespace mtrace::events {

void CulledLog::take(std::string content) {
  constexpr uint64_t kMillisecond = 1'000'000;
  if (log_ == nullptr) {
    auto contents = std::make_unique<MadeContents>();
    contents_ = contents.get();
    contents_->add(std::move(content));
    log_ = std::make_unique<EventLog>(std::move(contents));
    writer_ = std::make_unique<LogWriter>(
        *log_, fmt::format("blocks that live shorter than {} ms", lifetime_), append_);
    CullWish wish;
    wish.lifetime = lifetime_ * kMillisecond;
    culler_ = std::make_unique<Culler>(std::move(wish), *writer_);
    return;
  }
  contents_->add(std::move(content));
  for (Event event; log_->next(event);) culler_->put(event);
  writer_->flush();
}

void CulledLog::finish() { culler_->finish(); }

}  // namespace mtrace::events
