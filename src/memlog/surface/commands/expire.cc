// memlog expire: blocks that live longer than expected, as they become so.

#include "format/memlog.h"
#include "model/heap/expiry.h"
#include "model/ledger/ledger_memlog.h"
#include "model/ledger/ledger_state.h"
#include "process/inspect/process.h"
#include "process/ptrace/safe_point.h"
#include "surface/cli/command.h"
#include "surface/cli/report_options.h"
#include "surface/cli/tracing_options.h"
#include "util/text.h"
#include "view/text/stack_names.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

constexpr char kExpireHelp[] = R"(
Watches the blocks that a process allocates from now on, and reports those that live longer than
--after, by the function that is responsible for them. Prints a function when its first block
expires, then how many more of its blocks expire, and how many expired blocks are freed after all,
each time their number has doubled. A stack that frees --mute of its expired blocks is muted; the
message suggests a longer --after. --group-by stack prints each stack with its frames instead, and
so does --format json, at each look.

At the end, prints statistics for each function: what may leak (expired and not freed), allocations and
frees while it was watched, lifetimes of the freed blocks (min, mean, max), and the age of the
oldest block. Min and max come from the ledger, which keeps them since the process's last report.
They are printed as bounds (>=, <=; in JSON lifetime_min_ms_at_least, lifetime_max_ms_at_most) if they may
date from before the watch, and as unknown (?, null) if the process has reported meanwhile.

Reads the ledger file that memlog run or MTRACE_LEDGER makes the process keep. Does not signal or
stop the process. With --attach, memlog first attaches to a process that is not traced, as memlog
attach does. With MTRACE_SAMPLE, only the blocks that were recorded are seen. Ends at a
limit, at Ctrl-C, or with the process.
)";

struct ExpireOptions {
  uint64_t after = 100000;  // milliseconds
  uint64_t max_expired = 0;
  uint64_t max_stacks = 0;
  uint64_t mute = 5;
  bool json = false;
  bool grouped = true;  // by responsible function
};

ExpireOptions expire_options(const Arguments& arguments) {
  ExpireOptions options;
  options.after =
      arguments.milliseconds("--after", 100, 31536000000, "from 100ms to 365d, like 100s")
          .value_or(options.after);
  constexpr long kMost = 1000000000;
  options.max_expired = static_cast<uint64_t>(arguments.number("--max-expired", 0, 1, kMost));
  options.max_stacks = static_cast<uint64_t>(arguments.number("--max-stacks", 0, 1, kMost));
  options.mute = static_cast<uint64_t>(arguments.number("--mute", 5, 0, kMost));
  options.json = arguments.choice("--format") == "json";
  options.grouped = !options.json && arguments.choice("--group-by") == "function";
  return options;
}

constexpr char kBeginForm[] = "{name} ({pid}): blocks from now on that outlive {after_ms:s} s\n";
constexpr char kNewsForm[] =
    "{at}  {whose}[  +{expired_blocks} outlived {after_ms:s} s]"
    "[  -{expired_freed_blocks} freed since]"
    "  now {may_leak_blocks:blocks}, {may_leak_bytes} bytes\n{frames}"
    "[{at}  {whose}  {muted_what}: it frees its blocks; try --after {suggested_after_ms:s}s\n]";
constexpr char kFailedForm[] =
    "{failed_allocations:allocation} failed: no memory; {failed_at_stack} of them at {line}\n";
constexpr char kEndForm[] =
    "\n{why}; {stack_count:stack} with blocks that outlived {after_ms:s} s\n";
constexpr char kStatisticsForm[] =
    "\n{whose}[{muted}  muted]\n"
    "  may leak {may_leak_blocks:blocks}, {may_leak_bytes} bytes[ in {stack_count:stack}];"
    " expired {expired_blocks}, freed after that {expired_freed_blocks}\n"
    "  allocations {allocated_blocks}, frees {freed_blocks}[; the freed had lived {lived}]\n"
    "[  oldest live {oldest_ms:s} s\n]{frames}";

std::string seconds_text(uint64_t milliseconds) {
  return fmt::format("{:.3f}", static_cast<double>(milliseconds) / 1000);
}

// A time in ms that the stack's blocks would not have outlived, rounded up to be remembered.
uint64_t enough(uint64_t longest_ticks) {
  constexpr uint64_t kSecond = 1000;
  const uint64_t milliseconds = ledger::tick_milliseconds(longest_ticks);
  const uint64_t more = milliseconds + milliseconds / 4;
  return more < kSecond ? (more / 100 + 1) * 100 : (more / kSecond + 1) * kSecond;
}

// Puts an exact limit under `key`, a bound under the other one. Returns it as "0.010 s",
// ">= 0.010 s" or "?".
std::string put_limit(json::Value& out, const std::optional<heap::LiveTimeLimit>& limit,
                      const std::string& key, const char* bound_key, const char* bound) {
  out[key] = nullptr;
  if (!limit) return "?";
  const uint64_t milliseconds = ledger::tick_milliseconds(limit->ticks);
  out[limit->exact ? key : key + bound_key] = milliseconds;
  return fmt::format("{}{} s", limit->exact ? "" : bound, seconds_text(milliseconds));
}

// Facts about a stack or function for the closing statistics, besides its expired blocks.
struct ExpireStatistics {
  uint64_t allocations = 0;  // since the watch began
  heap::LiveTime lived;      // of the blocks freed since
  uint64_t oldest = 0;       // milliseconds: age of the oldest live expired block; 0: there is none
};

// Returns how long the freed blocks had lived, as text.
std::string put_statistics(json::Value& out, const heap::ExpiryStack& expiry,
                           const ExpireStatistics& more) {
  out["may_leak_blocks"] = expiry.may_leak();
  out["may_leak_bytes"] = expiry.expired_bytes - expiry.freed_bytes;
  out["expired_blocks"] = expiry.expired;
  out["expired_freed_blocks"] = expiry.freed;
  out["muted"] = expiry.muted;
  out["allocated_blocks"] = more.allocations;
  out["freed_blocks"] = more.lived.frees;
  const std::string least = put_limit(out, more.lived.least, "lifetime_min_ms", "_at_least", ">= ");
  const uint64_t mean = ledger::tick_milliseconds(more.lived.mean);
  out["lifetime_mean_ms"] = more.lived.frees == 0 ? json::Value() : json::Value(mean);
  const std::string most = put_limit(out, more.lived.most, "lifetime_max_ms", "_at_most", "<= ");
  out["oldest_ms"] = more.oldest;
  if (more.lived.frees == 0) return {};
  return fmt::format("min {}, mean {} s, max {}", least, seconds_text(mean), most);
}

class ExpireSession {
 public:
  ExpireSession(ledger::LedgerFile& file, const ExpireOptions& options, text::StackNames& names,
                const Streams& streams)
      : file_(file),
        options_(options),
        names_(names),
        streams_(streams),
        renewals_(file.header().extremes_renewed),
        first_(file),
        known_(first_),
        begun_(now_ticks()),
        expiry_(begun_, ledger::ticks_in(options.after * 1'000'000), options.mute,
                options.json || options.grouped ? heap::Pace::kEachLook : heap::Pace::kDoubling) {
    tell(kBeginForm, {{"event", "begin"},
                      {"pid", file.header().pid},
                      {"after_ms", options.after},
                      {"name", json::plain(util::array_text(file.header().name))}});
    std::fflush(streams_.out);
  }

  // Why there is nothing more to see; empty: there is.
  std::string look() {
    file_.refresh();
    const uint64_t now = now_ticks();
    expiry_.begin();
    whole_ &= ledger::each_block(
        file_, [&](const ledger::LedgerBlock& block) { expiry_.see(block, now); });
    const std::vector<heap::ExpiryNews> news = expiry_.end(now);
    if (!news.empty()) tell(news, now);
    if (options_.max_expired != 0 && expiry_.expired() >= options_.max_expired) {
      return fmt::format("stopped at {} expired blocks", expiry_.expired());
    }
    if (options_.max_stacks != 0 && expiry_.stack_count() >= options_.max_stacks) {
      return fmt::format("stopped at {} stacks", expiry_.stack_count());
    }
    return {};
  }

  void close(const std::string& why) {
    known_.read(file_);
    const uint64_t now = now_ticks();
    file_.refresh();
    // Odd: a report is at it.
    const bool whole = renewals_ % 2 == 0 && file_.header().extremes_renewed == renewals_;
    std::vector<const heap::ExpiryStack*> stacks = expiry_.stacks();
    std::stable_sort(stacks.begin(), stacks.end(), [](const auto* a, const auto* b) {
      return a->expired_bytes - a->freed_bytes > b->expired_bytes - b->freed_bytes;
    });
    learn(stacks);
    const auto oldest = expiry_.oldest();
    json::Value end = {{"event", "end"},
                       {"why", why},
                       {"stack_count", stacks.size()},
                       {"after_ms", options_.after}};
    if (!whole_) end["incomplete"] = true;
    tell(kEndForm, end);
    if (!options_.json) print(streams_, text::missing_blocks(whole_, known_.state(), {}));
    tell_failed();
    const auto statistics = [&](const heap::ExpiryStack& stack) {
      const ledger::LedgerStackState* known = known_.find(stack.index);
      const ledger::LedgerStackState* before = first_.find(stack.index);
      ExpireStatistics more;
      more.allocations =
          (before != nullptr ? known->now - before->now : known->now).allocated_blocks;
      more.lived = heap::live_time(before, *known, whole);
      const auto birth = oldest.find(stack.index);
      if (birth != oldest.end() && birth->second < now) {
        more.oldest = ledger::tick_milliseconds(now - birth->second);
      }
      return more;
    };
    std::erase_if(stacks, [&](const auto* stack) { return known_.find(stack->index) == nullptr; });
    if (options_.grouped) {
      for (const heap::ExpiryGroup& group : heap::ExpiryGroups::sums(stacks, group_of())) {
        ExpireStatistics sum;
        for (const heap::ExpiryStack* stack : group.stacks) {
          const ExpireStatistics more = statistics(*stack);
          sum.allocations += more.allocations;
          heap::add(sum.lived, more.lived);
          sum.oldest = std::max(sum.oldest, more.oldest);
        }
        json::Value line = {{"whose", name_of(group)}, {"stack_count", group.stacks.size()}};
        line["lived"] = put_statistics(line, group.sum, sum);
        tell(kStatisticsForm, line);
      }
      return;
    }
    for (const heap::ExpiryStack* expiry : stacks) {
      const ledger::LedgerStackState& stack = *known_.find(expiry->index);
      json::Value line = {{"event", "stack"}, {"stack", names_.id(stack)}};
      const std::string lived = put_statistics(line, *expiry, statistics(*expiry));
      if (options_.json) {
        names_.put(line, stack);
      } else {
        line["whose"] = "stack=" + names_.id(stack);
        line["lived"] = lived;
        line["frames"] = names_.indented(stack);
      }
      tell(kStatisticsForm, line);
    }
  }

 private:
  // Prints the object as a line of JSON, or as the form has it.
  void tell(const char* form, const json::Value& line) {
    print(streams_, options_.json ? json::line(line) : text::filled(form, line));
  }

  std::string name_of(const heap::ExpiryGroup& group) const {
    return text::group_text(names_.group(group.group), {});
  }

  json::Value news_of(uint64_t now, uint64_t expired, uint64_t freed,
                      const heap::ExpiryStack& all) const {
    return {{"event", "expired"},
            {"at_ms", ledger::tick_milliseconds(now - begun_)},
            {"expired_blocks", expired},
            {"expired_freed_blocks", freed},
            {"total_expired_blocks", all.expired},
            {"total_expired_freed_blocks", all.freed},
            {"may_leak_blocks", all.may_leak()},
            {"may_leak_bytes", all.expired_bytes - all.freed_bytes}};
  }

  void tell_news(json::Value line, uint64_t now, const std::string& whose) {
    line["at"] = fmt::format("{:>10}", seconds_text(ledger::tick_milliseconds(now - begun_)));
    line["whose"] = whose;
    line["after_ms"] = options_.after;
    tell(kNewsForm, line);
  }

  // For stacks that are known.
  heap::ExpiryGroups::GroupOf group_of() const {
    return [this](uint32_t stack) { return names_.group_of(*known_.find(stack)); };
  }

  uint64_t now_ticks() const { return process::ticks_now(file_.header()); }

  void learn(const std::vector<const heap::ExpiryStack*>& stacks) {
    const auto missing = [&](const auto* stack) { return known_.find(stack->index) == nullptr; };
    if (std::any_of(stacks.begin(), stacks.end(), missing)) known_.read(file_);
    std::vector<const ledger::LedgerStackState*> found;
    for (const heap::ExpiryStack* stack : stacks) {
      if (const auto* known = known_.find(stack->index)) found.push_back(known);
    }
    names_.learn(file_, known_.state(), found);
  }

  // Where allocations failed, as of the last look at the stacks.
  void tell_failed() {
    uint64_t all = 0;
    uint64_t at_most = 0;
    const ledger::LedgerStackState* most = nullptr;
    for (const ledger::LedgerStackState& stack : known_.state().stacks) {
      const bool failed_here =
          stack.kind != 0 && ledger::ledger_kind(file_.header(), stack.kind) == format::kKindFailed;
      if (!failed_here) continue;
      const ledger::LedgerStackState* before = first_.find(stack.index);
      const uint64_t failed =
          stack.now.allocated_blocks - (before != nullptr ? before->now.allocated_blocks : 0);
      all += failed;
      if (failed <= at_most) continue;
      at_most = failed;
      most = &stack;
    }
    if (most == nullptr) return;
    names_.learn(file_, known_.state(), {most});
    json::Value line = {
        {"event", "failed"}, {"failed_allocations", all}, {"failed_at_stack", at_most}};
    if (options_.json) {
      names_.put(line, *most);
    } else {
      line["line"] = names_.line(*most);
    }
    tell(kFailedForm, line);
  }

  void tell(const std::vector<heap::ExpiryNews>& news, uint64_t now) {
    std::vector<const heap::ExpiryStack*> stacks;
    for (const heap::ExpiryNews& one : news) stacks.push_back(one.stack);
    learn(stacks);
    if (options_.grouped) {
      tell_groups(news, now);
    } else {
      for (const heap::ExpiryNews& one : news) tell_stack(one, now);
    }
    std::fflush(streams_.out);
  }

  void tell_stack(const heap::ExpiryNews& news, uint64_t now) {
    const ledger::LedgerStackState* stack = known_.find(news.stack->index);
    // Of a muted stack nothing but that it is.
    if (stack == nullptr || (news.stack->muted && !news.muted)) return;
    json::Value line = news_of(now, news.expired, news.freed, *news.stack);
    if (news.muted) line["suggested_after_ms"] = enough(news.stack->longest);
    if (options_.json) {
      if (news.muted) line["muted"] = true;
      line["stack"] = names_.id(*stack);
      if (news.first) names_.put(line, *stack);
      return tell(kNewsForm, line);
    }
    if (news.first) line["frames"] = names_.indented(*stack);
    if (news.muted) line["muted_what"] = "muted";
    tell_news(std::move(line), now, "stack=" + names_.id(*stack));
  }

  void tell_groups(std::vector<heap::ExpiryNews> news, uint64_t now) {
    const auto unknown = [&](const heap::ExpiryStack* stack) {
      return known_.find(stack->index) == nullptr;
    };
    std::vector<const heap::ExpiryStack*> stacks = expiry_.stacks();
    std::erase_if(stacks, unknown);
    std::erase_if(news, [&](const heap::ExpiryNews& one) { return unknown(one.stack); });
    for (const heap::ExpiryGroupNews& one : groups_.add(news, stacks, group_of())) {
      json::Value line = news_of(now, one.expired, one.freed, one.group.sum);
      if (one.muted) {
        line["muted_what"] = "muted a stack";
        line["suggested_after_ms"] = enough(one.mute_longest);
      }
      tell_news(std::move(line), now, name_of(one.group));
    }
  }

  ledger::LedgerFile& file_;
  const ExpireOptions& options_;
  text::StackNames& names_;
  const Streams& streams_;
  uint32_t renewals_;  // before the first state was read
  ledger::KnownLedger first_;
  ledger::KnownLedger known_;
  uint64_t begun_;     // ticks
  bool whole_ = true;  // every look has read all live blocks
  heap::Expiry expiry_;
  heap::ExpiryGroups groups_;
};

int run_expire(const Arguments& arguments, const Streams& streams) {
  if (arguments.operands().size() != 1) throw UsageError(arguments.lacking("give one process"));
  const ExpireOptions options = expire_options(arguments);
  const WatchedProcess target(arguments, streams);
  text::StackNames names(search_path(arguments), read_responsible(arguments));
  process::catch_interruption();
  constexpr uint64_t kLeastPause = 20;
  constexpr uint64_t kMostPause = 1000;
  const auto pause = static_cast<int>(std::clamp(options.after / 10, kLeastPause, kMostPause));
  ExpireSession session(target.ledger(), options, names, streams);
  std::string why;
  while (why.empty()) {
    const bool ended = target.process().wait_end(process::interrupted() ? 0 : pause);
    why = session.look();
    if (ended) why = "the process has ended";
    if (process::interrupted()) why = "interrupted";
  }
  session.close(why);
  return kGood;
}

}  // namespace

const Command& expire_command() {
  static const Command command = {
      {"expire",
       "report blocks that live longer than a given time",
       "[OPTION]... PID|NAME",
       kExpireHelp,
       {{"--after", "-a", "TIME", "How long a block may live: 500ms, 100s, 10min. Default 100s."},
        {"--max-expired", "", "N", "Stop after N expired blocks."},
        {"--max-stacks", "", "N", "Stop once N stacks have expired blocks."},
        {"--mute", "", "N",
         "Mute a stack once it has freed N of its expired blocks; 0: never. Default 5."},
        {"--format", "-f", "FORMAT", "Output format: text, or json with one JSON object per line.",
         "text|json"},
        {"--group-by", "", "WHAT",
         "Add up the stacks that one function is responsible for, or list each stack.",
         "function|stack"},
        kLibraryOption,
        kOwnOption,
        kAttachOption,
        kSysrootOption,
        kSymbolsOption},
       R"(0: done; 1: the process does not exist, its ledger cannot be read, or memlog cannot attach
       to it; 2: wrong command line.)",
       R"(  memlog expire app
  memlog expire --after 10min --format json 4711
)"},
      run_expire};
  return command;
}

}  // namespace mtrace::cli
