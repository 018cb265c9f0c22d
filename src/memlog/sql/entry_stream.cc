#include "sql/entry_stream.h"

#include <algorithm>

#include "profile/text.h"

namespace mtrace::sql {

void EntryStream::begin(const Constraints& constraints) {
  reports_ = constraints.range("report");
  processes_ = constraints.range("process");
  stack_ = constraints.text("stack");
  index_ = static_cast<size_t>(std::max<int64_t>(reports_.least, 1) - 1);
  report_ = nullptr;
}

const EntryRow* EntryStream::next() {
  for (;;) {
    if (report_ != nullptr && at_ < count()) {
      const size_t at = stack_ ? found_[at_] : at_;
      row_.entry = &report_->entries()[at];
      row_.number = at + 1;
      ++at_;
      const uint64_t id = row_.entry->stack;
      row_.stack = id == 0 ? "" : stack_text(id);
      return &row_;
    }
    if (!next_report()) return nullptr;
  }
}

bool EntryStream::next_report() {
  report_ = nullptr;
  for (; report_ == nullptr && index_ < data_.sources.reports().size(); ++index_) {
    data_.check();
    row_.report = index_ + 1;
    row_.process = data_.sources.reports()[index_].process + 1;
    if (!reports_.holds(static_cast<int64_t>(row_.report))) return false;
    if (!processes_.holds(static_cast<int64_t>(row_.process))) continue;
    report_ = data_.sources.report(index_);
    at_ = 0;
    data_.stacks.learn(report_->memlog());
    const auto id = stack_ ? profile::read_stack_id(*stack_) : std::nullopt;
    if (stack_) found_ = id ? report_->of_stack(*id) : std::vector<size_t>();
  }
  return report_ != nullptr;
}

}  // namespace mtrace::sql
