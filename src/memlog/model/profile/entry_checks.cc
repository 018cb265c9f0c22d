#include "model/profile/entry_checks.h"

#include <fmt/format.h>

#include "model/profile/line.h"
#include "model/profile/regions.h"
#include "model/profile/sampling_error.h"

namespace mtrace::profile {
namespace {

// Where an entry tells what it did, that must come to what it left behind.
void check_activity(const Entry& entry) {
  const Activity& did = entry.activity;
  if (did.allocations == 0 && did.allocated_bytes == 0 && did.frees == 0 && did.freed_bytes == 0) {
    return;
  }
  if (did.allocations - did.frees != static_cast<uint64_t>(entry.blocks) ||
      did.allocated_bytes - did.freed_bytes != static_cast<uint64_t>(entry.bytes)) {
    throw LineError{"allocs=, frees= and their bytes do not come to the entry's blocks and bytes"};
  }
}

void check_lifetime(const Entry& entry) {
  const Lifetime& life = entry.activity.lifetime;
  if (life == Lifetime{}) return;
  if (entry.activity.frees == 0) throw LineError{"a lifetime without frees="};
  if (life.least > life.mean || life.mean > life.most) {
    throw LineError{"lifetime-min=, lifetime-mean= and lifetime-max= are not in this order"};
  }
}

}  // namespace

void EntryChecks::add(Entry& entry, const Header& header) {
  check_activity(entry);
  check_lifetime(entry);
  check_peak(entry, header);
  check_order(entry);
  check_sum(entry);
  ++entries_;
  if (header.sampled && entry.heap()) variance_ += set_errors(entry, *header.sampled);
}

void EntryChecks::check_delta(const Header& header) const {
  if (sum_ == header.delta) return;
  throw LineError{
      fmt::format("delta: the entries sum up to {:+} bytes {:+} blocks", sum_.bytes, sum_.blocks)};
}

void EntryChecks::check_live(const Header& header) const {
  if (header.allocated && header.freed &&
      (header.allocated->bytes - header.freed->bytes != header.live.bytes ||
       header.allocated->blocks - header.freed->blocks != header.live.blocks)) {
    throw LineError{"allocated: less freed: is not live:"};
  }
}

void EntryChecks::conclude(Header& header) const {
  name_regions(header);
  if (!header.sampled) return;
  header.delta_error = standard_error(variance_);
  header.live_error =
      standard_error(variance_of(static_cast<uint64_t>(header.live.bytes),
                                 static_cast<uint64_t>(header.live.blocks), *header.sampled));
}

// The shares add up to the peak at most, give or take what the file says that they are off by.
void EntryChecks::check_peak(const Entry& entry, const Header& header) {
  if (!entry.heap() || !header.peak || entry.peak == 0) return;
  // Both numbers fit 63 bits.
  const uint64_t most = header.peak->bytes + header.peak_error.value_or(0);
  if (entry.peak > most) throw LineError{"peak= is more than the peak of the process"};
  if (__builtin_add_overflow(shares_, entry.peak, &shares_) || shares_ > most) {
    throw LineError{"the entries' peak= add up to more than the peak of the process"};
  }
}

void EntryChecks::check_order(const Entry& entry) {
  if (entries_ != 0 && last_kind_ == entry.kind && last_bytes_ < entry.bytes) {
    throw LineError{"the entry is larger than the one before it"};
  }
  last_kind_ = entry.kind;
  last_bytes_ = entry.bytes;
}

void EntryChecks::check_sum(const Entry& entry) {
  if (!entry.heap()) return;
  if (__builtin_add_overflow(sum_.bytes, entry.bytes, &sum_.bytes) ||
      __builtin_add_overflow(sum_.blocks, entry.blocks, &sum_.blocks)) {
    throw LineError{"the sum of the entries does not fit 64 bits"};
  }
}

}  // namespace mtrace::profile
