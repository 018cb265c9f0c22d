#include "analyze/sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

#include "profile/text.h"

namespace mtrace::analyze {
namespace {

using profile::Memlog;

std::string process_name(const profile::Header& header) {
  const size_t slash = header.program.rfind('/');
  return fmt::format("{}[{}]", header.program.substr(slash + 1), header.pid);
}

void note_gap(ProcessSum& process, const std::string& name, int64_t first, int64_t last) {
  if (first > last) return;
  process.incomplete.push_back(
      first == last ? fmt::format("{}: report {} is missing", name, first)
                    : fmt::format("{}: reports {} to {} are missing", name, first, last));
}

ProcessSum sum_one(std::vector<const Memlog*> reports, bool chosen) {
  std::sort(reports.begin(), reports.end(), [](const Memlog* a, const Memlog* b) {
    return std::tie(a->header.seq, a->name) < std::tie(b->header.seq, b->name);
  });
  ProcessSum process;
  process.last = reports.back()->header;
  process.reports = static_cast<int64_t>(reports.size());
  const std::string name = process_name(process.last);

  profile::Total sum;
  const Memlog* before = nullptr;
  for (const Memlog* report : reports) {
    const int64_t seq = report->header.seq;
    if (before != nullptr && before->header.seq == seq) {
      throw std::runtime_error(fmt::format("report {} of {} is there twice: {} and {}", seq, name,
                                           before->name, report->name));
    }
    if (before != nullptr && before->header.peak != report->header.peak) {
      process.table.forget_peak();
    }
    if (!chosen) note_gap(process, name, before == nullptr ? 1 : before->header.seq + 1, seq - 1);
    if (__builtin_add_overflow(sum.bytes, report->header.delta.bytes, &sum.bytes) ||
        __builtin_add_overflow(sum.blocks, report->header.delta.blocks, &sum.blocks) ||
        !process.table.append(*report)) {
      throw std::runtime_error(fmt::format("the sum of {} does not fit 64 bits", name));
    }
    before = report;
  }
  process.total = sum;

  if (chosen) {
    process.notes.push_back(
        fmt::format("{}: what the chosen reports changed, not all that is live", name));
    return process;
  }
  profile::Total all = sum;
  if (const auto& inherited = reports.front()->header.inherited) {
    process.notes.push_back(fmt::format(
        "{}: besides, {} bytes in {} blocks were inherited at fork; which stacks hold them "
        "stands in the parent's reports",
        name, profile::grouped(inherited->bytes), profile::grouped(inherited->blocks)));
    if (__builtin_add_overflow(all.bytes, inherited->bytes, &all.bytes) ||
        __builtin_add_overflow(all.blocks, inherited->blocks, &all.blocks)) {
      throw std::runtime_error(fmt::format("the sum of {} does not fit 64 bits", name));
    }
  }
  const bool gaps = process.reports != process.last.seq;
  if (!gaps && !(all == process.last.live)) {
    process.incomplete.push_back(fmt::format(
        "{}: its reports add up to {} bytes in {} blocks, but it holds {} bytes in {} blocks", name,
        profile::grouped(all.bytes), profile::grouped(all.blocks),
        profile::grouped(process.last.live.bytes), profile::grouped(process.last.live.blocks)));
  }
  return process;
}

}  // namespace

std::vector<ProcessSum> sum_processes(const std::vector<Memlog>& memlogs, bool chosen) {
  std::map<std::tuple<std::string, int64_t, std::string>, std::vector<const Memlog*>> processes;
  for (const Memlog& memlog : memlogs) {
    const profile::Header& header = memlog.header;
    processes[{header.started, header.pid, header.program}].push_back(&memlog);
  }
  std::vector<ProcessSum> sums;
  sums.reserve(processes.size());
  for (auto& [process, reports] : processes) sums.push_back(sum_one(std::move(reports), chosen));
  return sums;
}

}  // namespace mtrace::analyze
