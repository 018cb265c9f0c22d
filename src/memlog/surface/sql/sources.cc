#include "surface/sql/sources.h"

#include <sys/stat.h>

#include "format/event_log.h"
#include "format/memlog.h"
#include "model/ledger/ledger_state.h"
#include "model/profile/model.h"
#include "model/profile/reader.h"
#include "process/inspect/ledgers.h"
#include "process/inspect/process.h"
#include "surface/sql/tables.h"
#include "util/compression.h"
#include "util/screen.h"
#include "util/text.h"
#include "view/reports/reports.h"
#include "view/text/stack_names.h"

namespace mtrace::sql {
namespace {

// What stays in memory of reports that were read: joins come back to them. Of two at least, since
// a join needs two at a time, however large they are.
constexpr size_t kKeptWeight = 1'000'000;  // entries and modules
constexpr size_t kKeptReports = 2;

size_t weight_of(const IndexedReport& report) {
  return report.entries().size() + report.memlog().modules.size();
}

// The first bytes of the text of a file; fewer if it is not there or shorter.
std::string head_of(const std::string& path) {
  auto input = util::Input::of_file(path);
  std::string head(sizeof(uint64_t), '\0');
  try {
    head.resize(input ? input->read(head.data(), head.size()) : 0);
  } catch (const util::DamagedCompression&) {
    head.clear();  // reading it says what is wrong with it
  }
  return head;
}

bool is_ledger(const std::string& head) {
  uint64_t magic = 0;
  if (head.size() == sizeof magic) std::memcpy(&magic, head.data(), sizeof magic);
  return magic == format::kLedgerMagic;
}

std::vector<SnapshotBlock> blocks_of(const ledger::LedgerFile& file) {
  // The blocks first: then the ledger has all of their stacks.
  std::vector<ledger::LedgerBlock> found;
  const bool whole =
      ledger::each_block(file, [&](const ledger::LedgerBlock& block) { found.push_back(block); });
  if (!whole) {
    throw std::runtime_error(
        fmt::format("{}: a part of the live blocks is not in the ledger", file.name()));
  }
  const ledger::KnownLedger known(file);
  ledger::LedgerModules modules(known.state());
  absl::flat_hash_map<uint32_t, uint64_t> ids;
  std::vector<SnapshotBlock> blocks;
  for (const ledger::LedgerBlock& block : found) {
    const ledger::LedgerStackState* stack = known.find(block.stack);
    if (stack == nullptr || stack->kind != 0) continue;
    const auto [id, fresh] = ids.try_emplace(block.stack);
    if (fresh) id->second = modules.stack_ids(*stack).value();
    blocks.push_back({block.address, block.size, id->second,
                      file.header().tick_zero + ledger::tick_nanoseconds(block.birth)});
  }
  return blocks;
}

// Of an entry that does not tell it.
uint64_t id_of(const profile::Frames& frames, const profile::Memlog& memlog) {
  const auto identity = [&](profile::ModuleIndex at) {
    return profile::identity_of(memlog.modules[at]);
  };
  return profile::stack_ids({frames.begin(), frames.end()}, identity).value();
}

}  // namespace

IndexedReport::IndexedReport(profile::Memlog memlog) : memlog_(std::move(memlog)) {
  by_stack_.reserve(memlog_.entries.size());
  for (size_t i = 0; i < memlog_.entries.size(); ++i) {
    profile::Entry& entry = memlog_.entries[i];
    if (entry.stack == 0 && !entry.frames.empty()) entry.stack = id_of(entry.frames, memlog_);
    by_stack_.emplace_back(memlog_.entries[i].stack, i);
  }
  std::sort(by_stack_.begin(), by_stack_.end());
}

std::vector<size_t> IndexedReport::of_stack(uint64_t stack) const {
  std::vector<size_t> out;
  for (auto at = std::lower_bound(by_stack_.begin(), by_stack_.end(), std::pair(stack, size_t{0}));
       at != by_stack_.end() && at->first == stack; ++at) {
    out.push_back(at->second);
  }
  return out;
}

Sources::Sources(const std::vector<std::string>& operands) {
  if (operands.empty()) add_directory(reports::report_directory());
  for (const std::string& operand : operands) add(operand);
  arrange();
}

void Sources::add(const std::string& operand) {
  struct stat state = {};
  if (::stat(operand.c_str(), &state) != 0) {
    const bool path = operand.find('/') != std::string::npos || operand.ends_with(".memlog");
    // Reading it says what is wrong with it.
    if (!path) return add_ledger(process::Target(operand).ledger(), true);
  } else if (S_ISDIR(state.st_mode)) {
    return add_directory(operand);
  } else {
    const std::string head = head_of(operand);
    if (is_ledger(head)) return add_ledger(ledger::LedgerFile(operand), false);
    if (head.starts_with(format::kEventHeaderMark)) {
      logs_.push_back({operand, events::EventLog(operand).header()});
      return;
    }
  }
  reports_.push_back({reports::Reports::look(operand), 0, nullptr});
}

void Sources::add_directory(const std::string& path) {
  const std::vector<std::string> logs = reports::event_logs(path);
  for (const std::string& log : logs) logs_.push_back({log, events::EventLog(log).header()});
  const std::vector<reports::Listed> reports = reports::list_memlogs(path);
  if (logs.empty() && reports.empty()) reports::Reports::files({path}, true);  // says so
  for (const reports::Listed& one : reports) reports_.push_back({one, 0, nullptr});
}

void Sources::add_ledger(const ledger::LedgerFile& file, bool running) {
  auto snapshot = std::make_shared<LedgerSnapshot>();
  snapshot->blocks = blocks_of(file);
  profile::Memlog memlog = running ? process::memlog_of(file, ledger::read_ledger(file),
                                                        {.trigger = "snapshot",
                                                         .taken = process::real_time_now(),
                                                         .label = "",
                                                         .notes = {}})
                                   : process::recovered_memlog(file, "");
  snapshot->report = std::make_shared<const IndexedReport>(std::move(memlog));
  reports_.push_back({reports::listed(snapshot->report->memlog()), 0, std::move(snapshot)});
}

void Sources::arrange() {
  const auto key = [](const ReportSource& one) {
    return std::tuple_cat(one.listed.process(), std::tie(one.listed.seq, one.listed.path));
  };
  std::sort(reports_.begin(), reports_.end(),
            [&](const ReportSource& a, const ReportSource& b) { return key(a) < key(b); });
  std::vector<ReportSource> all = std::move(reports_);
  reports_.clear();
  for (auto from = all.begin(); from != all.end();) {
    const auto to = std::find_if(from, all.end(), [&](const ReportSource& one) {
      return one.listed.process() != from->listed.process();
    });
    add_process({std::move_iterator(from), std::move_iterator(to)});
    from = to;
  }
  arrange_logs();
}

void Sources::arrange_logs() {
  for (size_t i = 0; i < logs_.size(); ++i) {
    const events::EventHeader& header = logs_[i].header;
    const uint64_t start = header.process_started != 0 ? header.process_started : header.started;
    const std::string started = time_text(static_cast<int64_t>(start / 1000 * 1000));
    auto process = std::find_if(processes_.begin(), processes_.end(), [&](const Process& one) {
      return one.pid == header.pid && one.program == header.program && one.started == started;
    });
    if (process == processes_.end()) {
      process = processes_.insert(process, {header.program, started, header.pid, {}, {}});
    }
    logs_[i].process = static_cast<size_t>(process - processes_.begin());
    process->logs.push_back(i);
  }
}

void Sources::add_process(std::vector<ReportSource> reports) {
  // Where merging was cut short, reports are there that another one contains.
  std::vector<reports::Listed> listed;
  for (const ReportSource& one : reports) listed.push_back(one.listed);
  absl::flat_hash_set<std::string> contained;
  reports::drop_contained(listed, [&](const reports::Listed& one) { contained.insert(one.path); });
  std::erase_if(reports,
                [&](const ReportSource& one) { return contained.contains(one.listed.path); });

  const reports::Listed& first = reports.front().listed;
  Process process = {first.program, first.started, first.pid, {}, {}};
  for (ReportSource& one : reports) {
    if (!process.reports.empty()) {
      const ReportSource& before = reports_.back();
      if (before.listed.path == one.listed.path) continue;  // named twice
      if (before.listed.seq == one.listed.seq) {
        throw std::runtime_error(
            fmt::format("{} and {} are the same report", before.listed.path, one.listed.path));
      }
    }
    one.process = processes_.size();
    process.reports.push_back(reports_.size());
    reports_.push_back(std::move(one));
  }
  processes_.push_back(std::move(process));
}

void Sources::remark(const std::string& text) {
  if (std::find(remarks_.begin(), remarks_.end(), text) == remarks_.end()) remarks_.push_back(text);
}

ReportPointer Sources::report(size_t index) {
  const ReportSource& source = reports_[index];
  if (source.ledger != nullptr) return source.ledger->report;
  const auto found = kept_.find(index);
  if (found != kept_.end()) return found->second;
  auto report =
      std::make_shared<const IndexedReport>(profile::read_path(source.listed.path, &known_));
  keep(index, report);
  return report;
}

// Drops what was read first.
void Sources::keep(size_t index, const ReportPointer& report) {
  kept_.emplace(index, report);
  kept_order_.push_back(index);
  kept_weight_ += weight_of(*report);
  while (kept_order_.size() > kKeptReports && kept_weight_ > kKeptWeight) {
    const auto oldest = kept_.find(kept_order_.front());
    kept_weight_ -= weight_of(*oldest->second);
    kept_.erase(oldest);
    kept_order_.pop_front();
  }
}

std::string stack_text(uint64_t id) { return fmt::format("{:016x}", id); }

StackBook::StackBook(Sources& sources, NameOptions options)
    : sources_(sources), options_(std::move(options)), symbolizer_(options_.where) {}

const std::vector<analyze::Row>& StackBook::stacks() {
  read();
  name_pending();
  return table_.rows();
}

std::optional<size_t> StackBook::find(uint64_t id) {
  if (!by_id_.contains(id)) read();
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return std::nullopt;
  if (found->second >= table_.rows().size()) name_pending();
  return found->second;
}

std::optional<size_t> StackBook::find(std::string_view id) {
  const auto number = util::read_stack_id(id);
  return number ? find(*number) : std::nullopt;
}

void StackBook::read_reports() {
  if (reports_read_) return;
  reports_read_ = true;
  util::Progress progress(sources_.reports().size());
  for (size_t i = 0; i < sources_.reports().size(); ++i, progress.step()) {
    learn(sources_.report(i)->memlog());
  }
}

void StackBook::read() {
  if (read_) return;
  read_reports();
  for (const LogSource& source : sources_.logs()) {
    events::EventLog log(source.path);
    while (log.skip_chunk()) {
    }
    uint32_t known = 0;
    learn(log, log.stack_count(), known);
  }
  read_ = true;
}

void StackBook::learn(const profile::Memlog& memlog) {
  profile::Memlog fresh;
  for (const profile::Entry& entry : memlog.entries) {
    if (entry.stack == 0 || !by_id_.try_emplace(entry.stack, by_id_.size()).second) continue;
    profile::Entry& stack = fresh.entries.emplace_back();
    stack.stack = entry.stack;
    stack.frames = entry.frames;
    stack.cut = entry.cut;
  }
  if (fresh.entries.empty()) return;
  fresh.header = memlog.header;
  fresh.modules = memlog.modules;
  pending_.push_back(std::move(fresh));
}

void StackBook::learn(const events::EventLog& log, uint32_t stack, uint32_t& known) {
  if (stack <= known) return;
  read_reports();  // which may have names that cannot be looked up any more
  profile::Memlog memlog;
  memlog.header.program = log.header().program;
  memlog.header.pid = log.header().pid;
  memlog.header.boot_id = log.header().boot_id;
  for (uint32_t number = known + 1; number <= log.stack_count(); ++number) {
    const events::EventStack& one = log.stack(number);
    profile::Entry entry;
    entry.stack = one.id;
    entry.frames = one.frames;
    entry.cut = one.cut;
    memlog.entries.push_back(std::move(entry));
  }
  known = log.stack_count();
  memlog.modules = log.modules();
  learn(memlog);
}

void StackBook::name_pending() {
  const auto lacks_names = [&](const profile::Memlog& memlog) {
    return options_.resolve && symbols::Symbolizer::is_needed(memlog);
  };
  for (const profile::Memlog& memlog : pending_) {
    if (lacks_names(memlog)) symbolizer_.expect(memlog);
  }
  for (profile::Memlog& memlog : pending_) {
    if (lacks_names(memlog)) symbolizer_.resolve(memlog);
    const analyze::Table part = analyze::Table::of(memlog);
    for (const analyze::Row& row : part.rows()) table_.add_row(part, row);
  }
  pending_.clear();
}

std::string StackBook::text(size_t at) const {
  return text::stack_line(table_, stack(at), text::Style());
}

std::optional<size_t> StackBook::own(size_t at) const {
  const analyze::Row& row = stack(at);
  if (row.frames.empty() || options_.responsible->missing(row.frames, modules(), row.depth)) {
    return std::nullopt;
  }
  return options_.responsible->of(row.frames, modules());
}

std::string StackBook::function(size_t at, size_t frame) const {
  return text::function_text(table_, stack(at).frames[frame], text::Style());
}

}  // namespace mtrace::sql
