#include "view/analyze/sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

#include "util/text.h"

namespace mtrace::analyze {
namespace {

using profile::Memlog;

std::string process_name(const profile::Header& header) {
  const size_t slash = header.program.rfind('/');
  return fmt::format("{}[{}]", header.program.substr(slash + 1), header.pid);
}

uint64_t peak_bytes(const profile::Header& header) { return header.peak ? header.peak->bytes : 0; }

void note_gap(ProcessSum& process, const std::string& name, int64_t first, int64_t last) {
  if (first > last) return;
  process.incomplete.push_back(
      first == last ? fmt::format("{}: report {} is missing", name, first)
                    : fmt::format("{}: reports {} to {} are missing", name, first, last));
}

}  // namespace

void Summing::add(const Memlog& memlog) {
  const profile::Header& header = memlog.header;
  const bool first = process_.reports == 0;
  if (first) {
    name_ = process_name(header);
    process_.inherited = header.inherited;
  }
  if (!first && process_.last.seq == header.seq) {
    throw std::runtime_error(fmt::format("report {} of {} appears twice: {} and {}", header.seq,
                                         name_, last_report_, memlog.name));
  }
  // Each peak is higher than the one before; its time may be told a little differently the next
  // time.
  if (!first && peak_bytes(process_.last) != peak_bytes(header)) process_.table.forget_peak();
  const int64_t begin = header.merged.value_or(header.seq);
  if (!chosen_) note_gap(process_, name_, first ? 1 : process_.last.seq + 1, begin - 1);
  add_to(process_.total, header.delta);
  process_.table.append(memlog);
  process_.reports += header.seq - begin + 1;
  process_.last = header;
  last_report_ = memlog.name;
}

// A report lists the entries of a stack that changed, so the shares in the peak, slack and age of
// each are known apart only.
void Summing::join_entries() {
  for (Row& row : process_.table.rows()) {
    row.live.reset();
    row.live_variance = 0;
    row.further.clear();
  }
  process_.table.unite_calls();
}

ProcessSum Summing::finish() {
  if (rows_ == Rows::kStacks) join_entries();
  if (chosen_) {
    process_.notes.push_back(
        fmt::format("{}: what the chosen reports changed, not all that is live", name_));
    return std::move(process_);
  }
  profile::Total all = process_.total;
  if (process_.inherited) {
    process_.notes.push_back(fmt::format(
        "{}: plus {} bytes in {} blocks that were inherited at fork; the reports of the parent "
        "say which stacks hold them",
        name_, util::grouped(process_.inherited->bytes),
        util::grouped(process_.inherited->blocks)));
    add_to(all, *process_.inherited);
  }
  const profile::Total& live = process_.last.live;
  const bool gaps = process_.reports != process_.last.seq;
  if (!gaps && !(all == live)) {
    process_.incomplete.push_back(fmt::format(
        "{}: its reports add up to {} bytes in {} blocks, but it holds {} bytes in {} blocks",
        name_, util::grouped(all.bytes), util::grouped(all.blocks), util::grouped(live.bytes),
        util::grouped(live.blocks)));
  }
  return std::move(process_);
}

std::vector<ProcessSum> sum_processes(const std::vector<Memlog>& memlogs) {
  std::map<std::tuple<std::string, int64_t, std::string>, std::vector<const Memlog*>> processes;
  for (const Memlog& memlog : memlogs) {
    const profile::Header& header = memlog.header;
    processes[{header.started, header.pid, header.program}].push_back(&memlog);
  }
  std::vector<ProcessSum> sums;
  sums.reserve(processes.size());
  for (auto& [process, reports] : processes) {
    std::sort(reports.begin(), reports.end(), [](const Memlog* a, const Memlog* b) {
      return std::tie(a->header.seq, a->name) < std::tie(b->header.seq, b->name);
    });
    Summing summing(false);
    for (const Memlog* report : reports) summing.add(*report);
    sums.push_back(summing.finish());
  }
  return sums;
}

}  // namespace mtrace::analyze
