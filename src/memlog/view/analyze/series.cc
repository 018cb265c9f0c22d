#include "view/analyze/series.h"

#include "util/text.h"
#include "view/analyze/row.h"

namespace mtrace::analyze {
namespace {

// `times`: the report tells how long blocks lived.
void add_activity(Held& sum, const profile::Activity& did, bool times) {
  add_to(sum.allocations, did.allocations);
  add_to(sum.allocated_bytes, did.allocated_bytes);
  add_to(sum.frees, did.frees);
  add_to(sum.temporary, did.temporary);
  if (!times && did.lifetime == profile::Lifetime{}) return;
  add_to(sum.timed_frees, did.frees);
  // Fits: each is a product of two 64-bit numbers.
  sum.lived += static_cast<unsigned __int128>(did.lifetime.mean) * did.frees;
}

}  // namespace

void Series::add(const profile::Memlog& memlog, bool state) {
  if (state) {
    const profile::Header& header = memlog.header;
    states_.push_back({header.seq, header.label, header.taken, header.live.bytes});
  }
  take_peak(memlog.header);
  for (const profile::Entry& entry : memlog.entries) {
    Row row = stack_of(entry);
    const size_t stack = stacks_.place(memlog.modules, row, {});
    const auto [place, is_new] = entries_.try_emplace({stack, &entry.call.text()}, members_.size());
    if (is_new) {
      const size_t group = group_of(memlog, entry);
      if (group == values_.size()) values_.emplace_back();
      members_.push_back({group, 0, 0});
    }
    Member& member = members_[place->second];
    Group& group = values_[member.group];
    // What the stack holds is told for heap entries; of others only the change is.
    int64_t change = entry.bytes;
    if (entry.heap()) {
      const auto live = static_cast<int64_t>(entry.live);
      if (is_new) {
        member.live = live - entry.bytes;
        add_to(group.before, member.live);
      }
      change = live - member.live;
      member.live = live;
      const auto peak = static_cast<int64_t>(entry.peak);
      add_to(group.now.peak, peak - member.peak);
      member.peak = peak;
      add_activity(group.now, entry.activity, !memlog.header.resolution.empty());
    }
    add_to(group.now.bytes, change);
    add_to(group.now.blocks, entry.blocks);
  }
  if (!state) return;
  for (Group& group : values_) {
    group.shown = group.now;
    add_to(group.shown.bytes, group.before);
    const Point last = group.points.empty() ? Point{} : group.points.back();
    if (group.now.bytes != last.value || group.now.blocks != last.blocks) {
      group.points.push_back({states_.size() - 1, group.now.bytes, group.now.blocks});
    }
  }
}

size_t Series::group_of(const profile::Memlog& memlog, const profile::Entry& entry) {
  Row shortened = stack_of(entry);
  if (by_ == GroupBy::kStack) {
    return groups_.place(memlog.modules, shortened, range_);
  }
  const size_t group = named_.place(shortened, memlog.modules);
  if (group == groups_.rows().size()) {
    Row row;
    row.kind = entry.kind;
    row.group = named_.all()[group];
    groups_.add_row(groups_, std::move(row));
  }
  return group;
}

// Forgets who held the peak before, if there was a higher one since: a report lists all that have a
// share in a new one.
void Series::take_peak(const profile::Header& header) {
  peak_moved_ = header.peak && header.peak->bytes != peak_;
  if (!peak_moved_) return;
  peak_ = header.peak->bytes;
  for (Member& member : members_) member.peak = 0;
  for (Group& group : values_) group.now.peak = 0;
}

std::vector<int64_t> Series::along(const Group& group, int64_t first, int64_t Point::*what) const {
  std::vector<int64_t> out(states_.size(), first);
  for (size_t i = 0; i < group.points.size(); ++i) {
    const size_t end = i + 1 < group.points.size() ? group.points[i + 1].state : out.size();
    for (size_t at = group.points[i].state; at < end; ++at) add_to(out[at], group.points[i].*what);
  }
  return out;
}

std::vector<int64_t> Series::values(size_t row) const {
  return along(values_[row], values_[row].before, &Point::value);
}

std::vector<int64_t> Series::blocks(size_t row) const {
  return along(values_[row], 0, &Point::blocks);
}

std::vector<Finding> find_leaks(const Series& series, double level) {
  std::vector<Finding> findings;
  for (size_t row = 0; row < series.table().rows().size(); ++row) {
    if (!series.table().rows()[row].kind.empty()) continue;
    const std::vector<int64_t> values = series.values(row);
    Finding finding;
    finding.row = row;
    finding.course = course_of(values, level);
    if (finding.course == Course::kFlat) continue;
    finding.first = values.front();
    finding.last = values.back();
    finding.probability = growth_probability(values);
    if (finding.course == Course::kGrows) finding.slope = slope(values);
    findings.push_back(finding);
  }
  std::sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return std::tuple(a.course, -a.slope.middle, -std::abs(a.last - a.first), a.row) <
           std::tuple(b.course, -b.slope.middle, -std::abs(b.last - b.first), b.row);
  });
  return findings;
}

Slope growth_of(const std::vector<Finding>& findings) {
  Slope sum;
  for (const Finding& finding : findings) {
    if (finding.course != Course::kGrows) continue;
    sum.middle += finding.slope.middle;
    sum.low += finding.slope.low;
    sum.high += finding.slope.high;
  }
  return sum;
}

Forecast forecast(const Series& series, const Slope& growth, int64_t limit) {
  const std::vector<State>& states = series.states();
  Forecast out;
  const double left = static_cast<double>(limit) - static_cast<double>(states.back().live);
  if (left <= 0) return out;
  out.states = left / growth.middle;
  out.earliest = left / growth.high;
  out.latest = growth.low > 0 ? left / growth.low : 0;
  const double time =
      util::seconds_of(states.back().taken) - util::seconds_of(states.front().taken);
  out.seconds = out.states * time / static_cast<double>(states.size() - 1);
  return out;
}
namespace {

constexpr size_t kExact = 30;
constexpr size_t kMostValues = 300;
constexpr double kNormal95 = 1.959963984540054;  // quantile 0.975
constexpr double kSlower = 0.25;

struct Kendall {
  int64_t score = 0;  // pairs that rise less pairs that fall
  int64_t pairs = 0;  // that do either
  double variance = 0;
  std::vector<size_t> ties;  // how often each number stands there
};

// Sorts `values` by halves, and counts the pairs of which the later one is less.
int64_t sort_and_count(std::vector<int64_t>& values, size_t begin, size_t end) {
  if (end - begin < 2) return 0;
  const size_t middle = begin + (end - begin) / 2;
  int64_t falls = sort_and_count(values, begin, middle) + sort_and_count(values, middle, end);
  size_t later = middle;
  for (size_t i = begin; i < middle; ++i) {
    while (later < end && values[later] < values[i]) ++later;
    falls += static_cast<int64_t>(later - middle);
  }
  const auto at = [&](size_t place) { return values.begin() + static_cast<ptrdiff_t>(place); };
  std::inplace_merge(at(begin), at(middle), at(end));
  return falls;
}

// Knight's way to count (Journal of the American Statistical Association 61, 1966): n log n.
Kendall kendall(const std::vector<int64_t>& values) {
  Kendall out;
  std::vector<int64_t> sorted = values;
  const int64_t falls = sort_and_count(sorted, 0, sorted.size());
  const auto pairs_of = [](size_t n) { return static_cast<int64_t>(n * (n - 1) / 2); };
  out.pairs = values.empty() ? 0 : pairs_of(values.size());
  for (size_t i = 0; i < sorted.size();) {
    const auto end =
        std::upper_bound(sorted.begin() + static_cast<ptrdiff_t>(i), sorted.end(), sorted[i]);
    const auto next = static_cast<size_t>(end - sorted.begin());
    out.ties.push_back(next - i);
    out.pairs -= pairs_of(next - i);
    i = next;
  }
  out.score = out.pairs - 2 * falls;
  const auto sum = [](double n) { return n * (n - 1) * (2 * n + 5); };
  out.variance = sum(static_cast<double>(values.size()));
  for (const size_t tie : out.ties) out.variance -= sum(static_cast<double>(tie));
  out.variance /= 18;
  return out;
}

using Distribution = std::vector<double>;  // probability of 0, 1, 2 ...

Distribution convolved(const Distribution& a, const Distribution& b) {
  Distribution out(a.size() + b.size() - 1);
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) out[i + j] += a[i] * b[j];
  }
  return out;
}

// Of the pairs out of order between m equal numbers and n others that are all less, when the order
// is chance: Mann and Whitney (Annals of Mathematical Statistics 18, 1947). The last of i and j
// belongs to the one with probability i/(i+j).
Distribution out_of_order(size_t m, size_t n) {
  std::vector<Distribution> row(n + 1, Distribution{1});
  for (size_t i = 1; i <= m; ++i) {
    std::vector<Distribution> next(n + 1);
    next[0] = {1};
    for (size_t j = 1; j <= n; ++j) {
      Distribution& sum = next[j];
      sum.assign(i * j + 1, 0);
      const double share = static_cast<double>(i) / static_cast<double>(i + j);
      // One of the larger stands last: it is in order with all j others.
      for (size_t k = 0; k < row[j].size(); ++k) sum[k] += share * row[j][k];
      // One of the others stands last: behind all i larger ones.
      for (size_t k = 0; k < next[j - 1].size(); ++k) sum[k + i] += (1 - share) * next[j - 1][k];
    }
    row = std::move(next);
  }
  return row[n];
}

double exact_probability(const Kendall& found) {
  Distribution inversions = {1};
  size_t before = 0;
  for (const size_t tie : found.ties) {
    inversions = convolved(inversions, out_of_order(tie, before));
    before += tie;
  }
  // score = pairs - 2 * inversions
  const auto most = static_cast<size_t>((found.pairs - found.score) / 2);
  double sum = 0;
  for (size_t i = 0; i <= most && i < inversions.size(); ++i) sum += inversions[i];
  return std::min(sum, 1.0);
}

std::vector<int64_t> thinned(const std::vector<int64_t>& values, size_t step) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < values.size(); i += step) out.push_back(values[i]);
  return out;
}

}  // namespace

double growth_probability(const std::vector<int64_t>& values) {
  if (values.size() < 2) return 1;
  const Kendall found = kendall(values);
  if (found.pairs == 0) return 1;
  if (values.size() <= kExact) return exact_probability(found);
  const double distance = static_cast<double>(found.score) - 1;
  return 0.5 * std::erfc(distance / std::sqrt(2 * found.variance));
}

double least_probability(size_t count) {
  double product = 1;
  for (size_t i = 2; i <= count; ++i) product *= static_cast<double>(i);
  return 1 / product;
}

Slope slope(const std::vector<int64_t>& values) {
  const size_t step = (values.size() + kMostValues - 1) / kMostValues;
  if (step > 1) {
    Slope out = slope(thinned(values, step));
    const auto scale = static_cast<double>(step);
    return {out.middle / scale, out.low / scale, out.high / scale};
  }
  std::vector<double> slopes;
  slopes.reserve(values.size() * (values.size() - 1) / 2);
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i + 1; j < values.size(); ++j) {
      slopes.push_back((static_cast<double>(values[j]) - static_cast<double>(values[i])) /
                       static_cast<double>(j - i));
    }
  }
  if (slopes.empty()) return {};
  const auto count = static_cast<double>(slopes.size());
  const auto half = static_cast<double>(slopes.size() / 2);
  const double reach = kNormal95 * std::sqrt(kendall(values).variance);
  const auto at = [&](double rank) {  // counted from 1
    const auto place = slopes.begin() + static_cast<ptrdiff_t>(std::clamp(rank, 1.0, count)) - 1;
    std::nth_element(slopes.begin(), place, slopes.end());
    return *place;
  };
  Slope out;
  out.middle = slopes.size() % 2 == 1 ? at(half + 1) : (at(half) + at(half + 1)) / 2;
  out.low = at(std::floor((count - reach) / 2));
  out.high = at(std::ceil((count + reach) / 2 + 1));
  return out;
}

Course course_of(const std::vector<int64_t>& values, double level) {
  size_t changes = 0;
  for (size_t i = 1; i < values.size(); ++i) changes += values[i] != values[i - 1];
  if (changes == 0) return Course::kFlat;
  if (changes == 1) return Course::kStep;
  if (growth_probability(values) <= level) {
    const auto middle = static_cast<ptrdiff_t>(values.size() / 2);
    const double early = slope({values.begin(), values.begin() + middle + 1}).middle;
    const double late = slope({values.begin() + middle, values.end()}).middle;
    return late <= 0 || late < early * kSlower ? Course::kFills : Course::kGrows;
  }
  std::vector<int64_t> mirrored;
  mirrored.reserve(values.size());
  for (const int64_t value : values) mirrored.push_back(-value);
  if (growth_probability(mirrored) <= level || std::is_sorted(mirrored.begin(), mirrored.end())) {
    return Course::kShrinks;
  }
  if (std::is_sorted(values.begin(), values.end())) return Course::kSteps;
  return values.front() == values.back() ? Course::kReturns : Course::kSwings;
}

const char* course_name(Course course) {
  switch (course) {
    case Course::kFlat:
      return "flat";
    case Course::kGrows:
      return "grows";
    case Course::kSteps:
      return "grew in steps";
    case Course::kFills:
      return "fills up";
    case Course::kStep:
      return "changed once";
    case Course::kSwings:
      return "swings";
    case Course::kReturns:
      return "came and went";
    case Course::kShrinks:
      return "shrinks";
  }
  return "";
}

}  // namespace mtrace::analyze
