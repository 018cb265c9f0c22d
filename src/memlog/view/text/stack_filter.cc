#include "view/text/stack_filter.h"

#include <algorithm>

namespace mtrace::text {

std::string StackFilter::set(const std::string& expression) {
  std::unique_ptr<re2::RE2> pattern;
  if (!expression.empty()) {
    re2::RE2::Options options;
    options.set_case_sensitive(false);
    options.set_log_errors(false);
    pattern = std::make_unique<re2::RE2>(expression, options);
    if (!pattern->ok()) return pattern->error();
  }
  expression_ = expression;
  pattern_ = std::move(pattern);
  return {};
}

void StackFilter::apply(std::vector<ledger::WatchRow>& rows, const StackNames& names) const {
  if (pattern_ == nullptr) return;
  std::erase_if(rows, [&](const ledger::WatchRow& row) {
    const std::vector<std::string> frames = names.all_frames(*row.stack);
    return std::none_of(frames.begin(), frames.end(), [&](const std::string& frame) {
      return re2::RE2::PartialMatch(frame, *pattern_);
    });
  });
}

}  // namespace mtrace::text
