#include "collect/one_report.h"

#include <sys/stat.h>

namespace mtrace::collect {
namespace {

// Bytes; what is smaller is read once, not twice.
constexpr off_t kLarge = 8 << 20;

}  // namespace

void Report::each(const profile::Piece& action) {
  if (pieces_ == nullptr) return action(memlog_);
  left_out_ = {};
  pieces_->each([&](profile::Memlog& piece) {
    left_out_.add(filter_->apply(piece));
    action(piece);
  });
}

bool is_large(const std::string& path) {
  struct stat state = {};
  return path != "-" && ::stat(path.c_str(), &state) == 0 && S_ISREG(state.st_mode) &&
         state.st_size >= kLarge;
}

}  // namespace mtrace::collect
