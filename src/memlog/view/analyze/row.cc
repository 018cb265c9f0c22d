#include "view/analyze/row.h"

#include "format/memlog.h"
#include "model/profile/line.h"
#include "util/text.h"

namespace mtrace::analyze {
namespace {

void add_lifetimes(Lifetimes& sum, const Lifetimes& more) {
  if (more.frees == 0) return;
  sum.least = sum.frees == 0 ? more.least : std::min(sum.least, more.least);
  sum.most = std::max(sum.most, more.most);
  sum.frees += more.frees;  // no more than Row::frees, which is looked after
  sum.sum += more.sum;
}

// Equal names are one text, so most calls are compared by their address.
void add_call(profile::Name& sum, const profile::Name& more) {
  if (sum == more || more.empty()) return;
  if (sum.empty()) {
    sum = more;
    return;
  }
  const auto known = util::split(sum.text(), ',');
  std::string all = sum.text();
  for (const std::string_view one : util::split(more.text(), ',')) {
    if (std::find(known.begin(), known.end(), one) == known.end()) all.append(1, ',').append(one);
  }
  sum = profile::Name(all);
}

double square(uint64_t number) { return static_cast<double>(number) * static_cast<double>(number); }

}  // namespace

uint64_t error_of(const Row& row) {
  return static_cast<uint64_t>(std::llround(std::sqrt(row.variance)));
}
uint64_t live_error_of(const Row& row) {
  return static_cast<uint64_t>(std::llround(std::sqrt(row.live_variance)));
}

Row stack_of(const profile::Entry& entry) {
  Row row;
  row.kind = entry.kind;
  row.call = entry.call;
  row.stack = entry.stack;
  row.frames = entry.frames;
  row.cut = entry.cut;
  if (entry.cut) {
    for (const profile::Frame& frame : entry.frames) {
      row.depth += frame.place != profile::Place::kInlined;
    }
  }
  return row;
}

std::vector<profile::Field> further_of(std::string_view fields) {
  std::vector<profile::Field> out;
  for (const std::string_view field : util::split(fields, '\t')) {
    const size_t equals = field.find('=');
    const std::string_view key = field.substr(0, equals);
    if (profile::knows_field(key)) continue;
    out.push_back({std::string(key), std::string(field.substr(equals + 1))});
  }
  return out;
}

std::vector<profile::Field> form_of(std::string_view fields) {
  std::vector<profile::Field> form = further_of(fields);
  std::erase_if(form, [](const profile::Field& field) {
    return field.key != format::kFieldProtection && field.key != format::kFieldFlags &&
           field.key != format::kFieldSaturated;
  });
  return form;
}

Row row_of(const profile::Entry& entry, bool times) {
  Row row = stack_of(entry);
  row.bytes = entry.bytes;
  row.variance = square(entry.error);
  row.live_variance = square(entry.live_error);
  row.blocks = entry.blocks;
  if (entry.tells_live) row.live = entry.live;
  const profile::Activity& did = entry.activity;
  row.allocations = did.allocations;
  row.allocated_bytes = did.allocated_bytes;
  row.frees = did.frees;
  row.freed_bytes = did.freed_bytes;
  row.temporary = did.temporary;
  row.short_lived = did.short_lived;
  if (times || !(did.lifetime == profile::Lifetime{})) {
    const auto sum = static_cast<unsigned __int128>(did.lifetime.mean) * did.frees;
    row.lifetimes = {did.frees, did.lifetime.least, did.lifetime.most, sum};
  }
  row.age = entry.age;
  row.slack = entry.slack;
  row.peak = entry.peak;
  if (entry.further) row.further = further_of(entry.fields);
  return row;
}

void add(Numbers& sum, const Numbers& more, Combine how) {
  add_lifetimes(sum.lifetimes, more.lifetimes);
  sum.variance += more.variance;
  add_to(sum.bytes, more.bytes);
  add_to(sum.blocks, more.blocks);
  add_to(sum.allocations, more.allocations);
  add_to(sum.allocated_bytes, more.allocated_bytes);
  add_to(sum.frees, more.frees);
  add_to(sum.freed_bytes, more.freed_bytes);
  add_to(sum.temporary, more.temporary);
  add_to(sum.short_lived, more.short_lived);
  if (how == Combine::kLater) {
    sum.live = more.live;
    sum.live_variance = more.live_variance;
    sum.age = more.age;
    sum.slack = more.slack;
    sum.peak = more.peak;
    return;
  }
  if (more.live) {
    if (!sum.live) sum.live = 0;
    add_to(*sum.live, *more.live);
    sum.live_variance += more.live_variance;
  }
  if (more.before) {
    if (!sum.before) sum.before = 0;
    add_to(*sum.before, *more.before);
  }
  sum.age = std::max(sum.age, more.age);
  add_to(sum.slack, more.slack);
  add_to(sum.peak, more.peak);
}

void add(Row& sum, const Row& more, Combine how) {
  add_call(sum.call, more.call);
  add(static_cast<Numbers&>(sum), more, how);
}

uint64_t block_size(const Row& row) {
  if (row.allocations != 0) return row.allocated_bytes / row.allocations;
  if (row.frees != 0) return row.freed_bytes / row.frees;
  // Where a report does not tell what was allocated and freed, the change is of one sign.
  if (row.blocks == 0 || (row.bytes < 0) != (row.blocks < 0)) return 0;
  return static_cast<uint64_t>(row.bytes / row.blocks);
}

int64_t quantity(const Row& row, Order order) {
  const auto number = [](uint64_t value) {
    return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
  };
  switch (order) {
    case Order::kBytes:
      return row.bytes;
    case Order::kBlocks:
      return row.blocks;
    case Order::kLive:
      return number(row.live.value_or(0));
    case Order::kAllocations:
      return number(row.allocations);
    case Order::kTemporary:
      return number(row.temporary);
    case Order::kLifetime:
      return number(row.lifetimes.mean());
    case Order::kSlack:
      return number(row.slack);
    case Order::kPeak:
      return number(row.peak);
    case Order::kAge:
      return number(row.age);
    case Order::kSize:
      return number(block_size(row));
    case Order::kFailed:
      return row.kind == format::kKindFailed ? row.blocks : 0;
    case Order::kStack:
      break;
  }
  return 0;
}

bool leaves_out_zero(Order order) {
  constexpr Order kOthers[] = {Order::kBytes, Order::kBlocks, Order::kLive, Order::kAllocations,
                               Order::kStack};
  return std::find(std::begin(kOthers), std::end(kOthers), order) == std::end(kOthers);
}

void sort(std::vector<Row>& rows, Order order) {
  const auto before = [order](const Row& a, const Row& b) {
    if (a.kind != b.kind) return a.kind < b.kind;
    const int64_t a_has = quantity(a, order);
    const int64_t b_has = quantity(b, order);
    return a_has != b_has ? a_has > b_has : a.stack < b.stack;
  };
  // As a report has them, mostly.
  if (std::is_sorted(rows.begin(), rows.end(), before)) return;
  // A row is large: it is moved once.
  std::vector<Row*> places;
  places.reserve(rows.size());
  for (Row& row : rows) places.push_back(&row);
  std::stable_sort(places.begin(), places.end(),
                   [&](const Row* a, const Row* b) { return before(*a, *b); });
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (Row* row : places) sorted.push_back(std::move(*row));
  rows = std::move(sorted);
}

size_t drop_empty(std::vector<Row>& rows, Order order) {
  return std::erase_if(rows, [order](const Row& row) {
    if (quantity(row, order) != 0) return false;
    return leaves_out_zero(order) || (row.bytes == 0 && row.blocks == 0);
  });
}

int64_t gross_growth(const std::vector<Row>& rows) {
  int64_t sum = 0;
  for (const Row& row : rows) {
    if (row.kind.empty() && row.bytes > 0 && __builtin_add_overflow(sum, row.bytes, &sum)) {
      return INT64_MAX;
    }
  }
  return sum;
}

}  // namespace mtrace::analyze
