// One report as views read it: whole, or a piece at a time when it is large.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "analyze/filter.h"
#include "profile/model.h"
#include "profile/pieces.h"

namespace mtrace::collect {

class Report {
 public:
  // A whole one, named and filtered.
  Report(profile::Memlog memlog, const analyze::LeftOut& left_out)
      : memlog_(std::move(memlog)), left_out_(left_out) {}
  // One that has its names. `filter` must live on.
  Report(std::unique_ptr<profile::Pieces> pieces, analyze::Filter& filter)
      : pieces_(std::move(pieces)), filter_(&filter) {}

  // The entries are all there, or none is.
  const profile::Memlog& head() const { return pieces_ == nullptr ? memlog_ : pieces_->head(); }
  // Gives `action` the entries that the filter wants, which it may take; those of a whole report at
  // once. Throws what reading throws.
  void each(const profile::Piece& action);
  // After each().
  const analyze::LeftOut& left_out() const { return left_out_; }

 private:
  profile::Memlog memlog_;
  std::unique_ptr<profile::Pieces> pieces_;  // none: it is whole
  analyze::Filter* filter_ = nullptr;
  analyze::LeftOut left_out_;
};

// Whether the file at `path` is better not held in memory.
bool is_large(const std::string& path);

}  // namespace mtrace::collect
