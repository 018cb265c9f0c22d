#include "view/text/expire_text.h"

#include <fmt/format.h>

#include "view/json/stack.h"
#include "view/text/frame_text.h"
#include "view/text/style.h"

namespace mtrace::text {
namespace {

std::string seconds(uint64_t milliseconds) {
  return fmt::format("{:.3f}", static_cast<double>(milliseconds) / 1000);
}

// A time that the stack's blocks would not have outlived, rounded up to be remembered.
uint64_t enough(uint64_t longest_ticks) {
  constexpr uint64_t kSecond = 1000;
  const uint64_t milliseconds = ledger::tick_milliseconds(longest_ticks);
  const uint64_t more = milliseconds + milliseconds / 4;
  return more < kSecond ? (more / 100 + 1) * 100 : (more / kSecond + 1) * kSecond;
}

// "min 0.010 s", "min >= 0.010 s", "min ?".
std::string limit_text(const char* which, const char* bound,
                       const std::optional<analyze::LiveTimeLimit>& limit) {
  if (!limit) return fmt::format("{} ?", which);
  return fmt::format("{} {}{} s", which, limit->exact ? "" : bound,
                     seconds(ledger::tick_milliseconds(limit->ticks)));
}

json::Value limit_number(const std::optional<analyze::LiveTimeLimit>& limit, bool exact) {
  if (!limit || limit->exact != exact) return nullptr;
  return ledger::tick_milliseconds(limit->ticks);
}

void add_live_time(json::Value& line, const analyze::LiveTime& lived) {
  line["lifetime_min_ms"] = limit_number(lived.least, true);
  if (lived.least && !lived.least->exact) {
    line["lifetime_min_ms_at_least"] = limit_number(lived.least, false);
  }
  line["lifetime_mean_ms"] =
      lived.frees == 0 ? json::Value() : json::Value(ledger::tick_milliseconds(lived.mean));
  line["lifetime_max_ms"] = limit_number(lived.most, true);
  if (lived.most && !lived.most->exact) {
    line["lifetime_max_ms_at_most"] = limit_number(lived.most, false);
  }
}

std::string frames_text(const ledger::LedgerStackState& stack, const StackNames& names) {
  std::string out;
  for (const std::string& frame : names.frames(stack)) out += "    " + frame + '\n';
  return out;
}

}  // namespace

std::string ExpireText::beginning(const std::string& name, uint32_t pid) const {
  if (json_) {
    return json::line({{"event", "begin"}, {"pid", pid}, {"after_ms", after_ms_}});
  }
  return fmt::format("{} ({}): blocks from now on that outlive {} s\n", plain(name), pid,
                     seconds(after_ms_));
}

std::string ExpireText::news(uint64_t at, const analyze::ExpiryNews& news,
                             const ledger::LedgerStackState& stack, const StackNames& names) const {
  const analyze::ExpiryStack& all = *news.stack;
  // Of a muted stack nothing but that it is.
  if (all.muted && !news.muted) return {};
  if (json_) {
    json::Value line = {{"event", "expired"},
                        {"at_ms", at},
                        {"stack", names.id(stack)},
                        {"expired_blocks", news.expired},
                        {"expired_freed_blocks", news.freed},
                        {"total_expired_blocks", all.expired},
                        {"total_expired_freed_blocks", all.freed},
                        {"may_leak_bytes", all.expired_bytes - all.freed_bytes}};
    if (news.muted) {
      line["muted"] = true;
      line["suggested_after_ms"] = enough(all.longest);
    }
    if (news.first) names.put(line, stack);
    return json::line(line);
  }
  std::string out = news_line(at, "stack=" + names.id(stack), news.expired, news.freed, all);
  if (news.first) out += frames_text(stack, names);
  if (news.muted) {
    out += fmt::format("{:>10}  stack={}  muted: it frees its blocks; try --after {}\n",
                       seconds(at), names.id(stack), seconds(enough(all.longest)) + "s");
  }
  return out;
}

std::string ExpireText::news_line(uint64_t at, const std::string& whose, uint64_t expired,
                                  uint64_t freed, const analyze::ExpiryStack& all) const {
  std::string out = fmt::format("{:>10}  {}", seconds(at), whose);
  if (expired != 0) out += fmt::format("  +{} outlived {} s", expired, seconds(after_ms_));
  if (freed != 0) out += fmt::format("  -{} freed since", freed);
  return out + fmt::format("  now {}, {} bytes\n",
                           blocks_text(static_cast<int64_t>(all.may_leak())),
                           all.expired_bytes - all.freed_bytes);
}

std::string ExpireText::news(uint64_t at, const analyze::ExpiryGroupNews& news,
                             const StackNames& names) const {
  const std::string whose = group_text(names.group(news.group.group), Style());
  std::string out = news_line(at, whose, news.expired, news.freed, news.group.sum);
  if (news.muted) {
    out += fmt::format("{:>10}  {}  muted a stack: it frees its blocks; try --after {}\n",
                       seconds(at), whose, seconds(enough(news.mute_longest)) + "s");
  }
  return out;
}

std::string ExpireText::failed(uint64_t all, uint64_t most, const ledger::LedgerStackState& stack,
                               const StackNames& names) const {
  if (json_) {
    json::Value line = {{"event", "failed"},
                        {"failed_allocations", all},
                        {"failed_at_stack", most},
                        {"stack", names.id(stack)}};
    names.put(line, stack);
    return json::line(line);
  }
  return fmt::format("{} failed: no memory; {} of them at {}\n", count_text(all, "allocation"),
                     most, names.line(stack));
}

std::string ExpireText::closing(const std::string& why, size_t stacks, bool whole,
                                const ledger::LedgerState& state) const {
  if (json_) {
    json::Value line = {{"event", "end"}, {"why", why}, {"stack_count", stacks}};
    if (!whole) line["incomplete"] = true;
    return json::line(line);
  }
  return fmt::format("\n{}; {} with blocks that outlived {} s\n", why,
                     stacks == 1 ? "1 stack" : fmt::format("{} stacks", stacks),
                     seconds(after_ms_)) +
         missing_blocks(whole, state, Style());
}

std::string ExpireText::statistics(const analyze::ExpiryStack& expiry, const ExpireStatistics& more,
                                   const ledger::LedgerStackState& stack,
                                   const StackNames& names) const {
  if (json_) {
    json::Value line = {{"event", "stack"},
                        {"stack", names.id(stack)},
                        {"may_leak_blocks", expiry.may_leak()},
                        {"may_leak_bytes", expiry.expired_bytes - expiry.freed_bytes},
                        {"expired_blocks", expiry.expired},
                        {"expired_freed_blocks", expiry.freed},
                        {"muted", expiry.muted},
                        {"allocated_blocks", more.allocations},
                        {"freed_blocks", more.lived.frees}};
    add_live_time(line, more.lived);
    line["oldest_ms"] = more.oldest;
    names.put(line, stack);
    return json::line(line);
  }
  return fmt::format("\nstack={}{}\n", names.id(stack), expiry.muted ? "  muted" : "") +
         numbers(expiry, more, "") + frames_text(stack, names);
}

std::string ExpireText::statistics(const analyze::ExpiryGroup& group, const ExpireStatistics& more,
                                   const StackNames& names) const {
  return fmt::format("\n{}{}\n", group_text(names.group(group.group), Style()),
                     group.sum.muted ? "  muted" : "") +
         numbers(group.sum, more,
                 fmt::format(" in {}", count_text(uint64_t{group.stacks.size()}, "stack")));
}

std::string ExpireText::numbers(const analyze::ExpiryStack& expiry, const ExpireStatistics& more,
                                const std::string& where) {
  std::string out = fmt::format(
      "  may leak {}, {} bytes{}; expired {}, freed after that {}\n"
      "  allocations {}, frees {}",
      blocks_text(static_cast<int64_t>(expiry.may_leak())),
      expiry.expired_bytes - expiry.freed_bytes, where, expiry.expired, expiry.freed,
      more.allocations, more.lived.frees);
  if (more.lived.frees != 0) {
    out += fmt::format("; the freed had lived {}, mean {} s, {}",
                       limit_text("min", ">= ", more.lived.least),
                       seconds(ledger::tick_milliseconds(more.lived.mean)),
                       limit_text("max", "<= ", more.lived.most));
  }
  out += '\n';
  if (more.oldest != 0) out += fmt::format("  oldest live {} s\n", seconds(more.oldest));
  return out;
}

}  // namespace mtrace::text
