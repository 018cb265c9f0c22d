#include "view/analyze/table.h"

#include "format/memlog.h"
#include "model/profile/model.h"
#include "util/text.h"
#include "view/analyze/responsible.h"

namespace mtrace::analyze {
namespace {

using profile::Frame;
using profile::Memlog;
using profile::Module;
using profile::Place;

// Whether the report tells how long blocks lived: the library then says how finely, too.
bool times(const Memlog& memlog) { return !memlog.header.resolution.empty(); }

// Keeps the frames in `range`, and gives the stack the id that a process would have given it that
// knows only these.
void cut(const std::vector<Module>& modules, Row& row, FrameRange range) {
  if (row.frames.empty()) return;
  std::vector<Frame> kept;
  int number = 1;
  bool beyond = false;
  const size_t begin =
      range.responsible == nullptr ? 0 : range.responsible->of(row.frames, modules);
  for (auto at = row.frames.begin() + static_cast<ptrdiff_t>(begin); at != row.frames.end(); ++at) {
    const Frame& frame = *at;
    beyond = range.last != 0 && number > range.last;
    if (beyond) break;
    const bool wanted = range.holds(number);
    const bool inlined = frame.place == Place::kInlined;
    number += inlined ? 0 : 1;
    if (!wanted) continue;
    kept.push_back(frame);
  }
  const auto identity = [&](profile::ModuleIndex at) { return profile::identity_of(modules[at]); };
  row.stack = profile::stack_ids(kept, identity).value();
  row.frames = std::move(kept);
  row.cut |= beyond || row.frames.empty();
}

}  // namespace

Table Table::of(Memlog& memlog) {
  Table table;
  table.memlog_.modules = memlog.modules;
  table.rows_.reserve(memlog.entries.size());
  for (const profile::Entry& entry : memlog.entries) {
    table.rows_.push_back(row_of(entry, times(memlog)));
  }
  memlog.entries.clear();
  return table;
}

std::vector<std::string> Table::kinds() const {
  std::vector<std::string> kinds = {""};
  for (const Row& row : rows_) {
    if (std::find(kinds.begin(), kinds.end(), row.kind) == kinds.end()) kinds.push_back(row.kind);
  }
  return kinds;
}

// Apart from the stack.
bool Table::same_entry(const Row& a, const Row& b) const {
  if (a.kind != b.kind) return false;
  return one_ == Rows::kStacks || (a.call == b.call && a.further == b.further);
}

// Numbers from 1 for modules that count as the same.
uint64_t Table::identity(const Module& module) {
  std::string name = module.build_id.empty() ? "p" + module.path : "b" + module.build_id;
  if (one_ == Rows::kEntries) name += fmt::format("\n{}#{}", module.path, module.generation);
  return identities_.try_emplace(name, identities_.size() + 1).first->second;
}

profile::ModuleIndex Table::adopt(const Module& module) {
  const std::string name =
      module.path + '\0' + module.build_id + '\0' + std::to_string(module.generation);
  const auto [place, added] =
      by_name_.try_emplace(name, static_cast<profile::ModuleIndex>(memlog_.modules.size()));
  if (added) memlog_.modules.push_back(module);
  return place->second;
}

// The frames as this table's modules have them.
void Table::adopt(const std::vector<Module>& modules, profile::Frames& frames) {
  frames = rests_(frames, [&](const profile::Frames::List& before) {
    std::optional<profile::Frames::List> list;
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i].place != Place::kModule) continue;
      const profile::ModuleIndex index = adopt(modules[before[i].module]);
      if (index == before[i].module) continue;
      if (!list) list = before;
      (*list)[i].module = index;
    }
    return list;
  });
}

size_t Table::place(const std::vector<Module>& modules, Row& row, FrameRange range) {
  const uint64_t number = range.whole() ? row.frames.number() : 0;
  if (number != 0) {
    const auto known = by_number_.find(number);
    if (known != by_number_.end() && rows_[known->second].cut == row.cut &&
        same_entry(rows_[known->second], row)) {
      return known->second;
    }
  }
  const size_t index = find_or_add(modules, row, range);
  if (number != 0) by_number_.try_emplace(number, index);
  return index;
}

size_t Table::find_or_add(const std::vector<Module>& modules, Row& row, FrameRange range) {
  if (!range.whole()) cut(modules, row, range);
  Key key;
  for (const Frame& frame : row.frames) {
    if (frame.place == Place::kInlined) continue;
    key.push_back(frame.place == Place::kModule ? identity(modules[frame.module]) : 0);
    key.push_back(frame.offset);
  }
  std::vector<size_t>& same = by_stack_[row.stack];
  for (const size_t index : same) {
    Row& known = rows_[index];
    if (!same_entry(known, row) || keys_[index] != key) continue;
    // A stack of just this depth and one that goes on agree in all that is asked for; in full
    // stacks the cut is part of what they are.
    if (known.cut != row.cut && range.whole()) continue;
    known.cut |= row.cut;
    return index;
  }
  same.push_back(rows_.size());
  keys_.push_back(std::move(key));
  adopt(modules, row.frames);
  rows_.push_back(std::move(row));
  return rows_.size() - 1;
}

void Table::merge(const std::vector<Module>& modules, Row row, FrameRange range) {
  row.further.clear();
  const size_t known = rows_.size();
  const size_t index = place(modules, row, range);
  if (index != known) add(rows_[index], row, Combine::kStacks);
}

void Table::merge(const Memlog& memlog, FrameRange range) {
  for (const profile::Entry& entry : memlog.entries) {
    merge(memlog.modules, row_of(entry, times(memlog)), range);
  }
}

void Table::merge(const Table& other, FrameRange range) {
  for (const Row& row : other.rows_) merge(other.memlog_.modules, row, range);
}

void Table::unite_calls() {
  absl::flat_hash_set<uint64_t> seen;
  bool once = true;
  for (const Row& row : rows_) once = seen.insert(row.stack).second && once;
  if (once) return;
  Table stacks;
  stacks.merge(*this, {});
  *this = std::move(stacks);
}

void Table::append(const Memlog& memlog) {
  // Stacks that are the same to this table may be two entries there, say of two modules that are
  // the same build: the first one is later than what was known, the other adds to it.
  ++reports_;
  for (const profile::Entry& entry : memlog.entries) {
    Row row = row_of(entry, times(memlog));
    row.further.clear();
    if (one_ == Rows::kEntries) {
      if (entry.further) row.further = form_of(entry.fields);
    } else {
      row.live.reset();
      row.live_variance = 0;
    }
    const size_t known = rows_.size();
    const size_t index = place(memlog.modules, row, {});
    if (last_report_.size() < rows_.size()) last_report_.resize(rows_.size());
    const Combine how = last_report_[index] == reports_ ? Combine::kStacks : Combine::kLater;
    last_report_[index] = reports_;
    if (index != known) add(rows_[index], row, how);
  }
}

void Table::add_row(const Table& owner, Row row) {
  adopt(owner.modules(), row.frames);
  keys_.emplace_back();  // merges with none
  rows_.push_back(std::move(row));
}

void Table::take(Table& part) {
  rows_.insert(rows_.end(), std::make_move_iterator(part.rows_.begin()),
               std::make_move_iterator(part.rows_.end()));
  part.rows_.clear();
}

void Table::forget_peak() {
  for (Row& row : rows_) row.peak = 0;
}

void keep_first(std::vector<Row>& rows, Order order, size_t limit,
                std::map<std::string, Rest>& rest) {
  sort(rows, order);
  if (limit == 0) return;
  std::map<std::string, size_t> kept;
  std::erase_if(rows, [&](const Row& row) {
    if (kept[row.kind]++ < limit) return false;
    Rest& more = rest[row.kind];
    ++more.rows;
    more.bytes += row.bytes;
    return true;
  });
}

namespace {

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
