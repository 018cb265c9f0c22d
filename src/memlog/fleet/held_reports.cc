#include "fleet/held_reports.h"

namespace mtrace::fleet {

std::vector<ReportKey> HeldReports::add(const ReportKey& key) {
  Numbers& numbers = processes_[key.process];
  std::vector<ReportKey> contained;
  for (auto one = numbers.lower_bound(key.first); one != numbers.end() && one->first <= key.seq;) {
    const ReportKey other = {key.process, one->second, one->first};
    if (other.first < key.first || other == key) {
      ++one;
      continue;
    }
    contained.push_back(other);
    one = numbers.erase(one);
  }
  numbers.emplace(key.seq, key.first);
  return contained;
}

void HeldReports::remove(const ReportKey& key) {
  const auto process = processes_.find(key.process);
  if (process == processes_.end()) return;
  const auto number = process->second.find(key.seq);
  if (number == process->second.end() || number->second != key.first) return;
  process->second.erase(number);
  if (process->second.empty()) processes_.erase(process);
}

bool HeldReports::touches(const ReportKey& key) const {
  const auto process = processes_.find(key.process);
  if (process == processes_.end()) return false;
  const auto next = process->second.lower_bound(key.first);
  return next != process->second.end() && next->second <= key.seq;
}

bool HeldReports::holds(const ReportKey& key) const {
  const auto process = processes_.find(key.process);
  if (process == processes_.end()) return false;
  const Numbers& numbers = process->second;
  // From the last number down, each report by the one that contains it.
  for (int64_t wanted = key.seq; wanted >= key.first;) {
    const auto holder = numbers.lower_bound(wanted);
    if (holder == numbers.end() || holder->second > wanted) return false;
    wanted = holder->second - 1;
  }
  return true;
}

}  // namespace mtrace::fleet
