#include "surface/sql/stack_book.h"

#include <fmt/format.h>

#include "util/progress.h"
#include "util/text.h"
#include "view/text/stack_names.h"

namespace mtrace::sql {

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
  for (const EventSource& source : sources_.logs()) {
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
