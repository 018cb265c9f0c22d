// One report as the views read it: whole, or in pieces when it is large.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "analyze/filter.h"
#include "profile/model.h"
#include "profile/pieces.h"
#include "profile/reader.h"

namespace mtrace::collect {

class Report {
 public:
  // A whole report, named and filtered.
  Report(profile::Memlog memlog, const analyze::LeftOut& left_out,
         std::optional<profile::CutShort> cut_short = std::nullopt)
      : memlog_(std::move(memlog)), left_out_(left_out), cut_short_(std::move(cut_short)) {}
  // A large report that has its names. `filter` must outlive this.
  Report(std::unique_ptr<profile::Pieces> pieces, analyze::Filter& filter)
      : pieces_(std::move(pieces)), filter_(&filter) {}

  // The memlog with all of its entries, or with none.
  const profile::Memlog& head() const { return pieces_ == nullptr ? memlog_ : pieces_->head(); }
  // Calls `action` with the entries that pass the filter, which it may take; a whole report comes
  // in one call. Throws what reading throws.
  void each(const profile::Piece& action);
  // Where the file ended if it was cut short.
  const std::optional<profile::CutShort>& cut_short() const { return cut_short_; }
  // Valid after each().
  const analyze::LeftOut& left_out() const { return left_out_; }

 private:
  profile::Memlog memlog_;
  std::unique_ptr<profile::Pieces> pieces_;  // null: the report is whole
  analyze::Filter* filter_ = nullptr;
  analyze::LeftOut left_out_;
  std::optional<profile::CutShort> cut_short_;
};

// Returns whether the text of the file at `path` is too large to hold in memory.
bool is_large(const std::string& path);

}  // namespace mtrace::collect
