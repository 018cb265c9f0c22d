#include "collect/one_report.h"

#include "profile/input.h"

namespace mtrace::collect {
namespace {

// Bytes of text; what is smaller is read once, not twice.
constexpr size_t kLarge = 8 << 20;

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
  if (path == "-") return false;
  const auto input = profile::Input::of_file(path);
  return input && input->expected_size() >= kLarge;
}

}  // namespace mtrace::collect
