// memlog unreachable: the live blocks that a process has lost the way to, running or in a core
// file.

#include "model/ledger/ledger_state.h"
#include "process/inspect/process.h"
#include "process/ptrace/attach.h"
#include "process/ptrace/heap_scan.h"
#include "process/ptrace/safe_point.h"
#include "process/run/launch.h"
#include "surface/cli/command.h"
#include "surface/cli/filter_options.h"
#include "surface/cli/report_options.h"
#include "surface/cli/tracing_options.h"
#include "util/text.h"
#include "view/json/views.h"
#include "view/text/stack_names.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

constexpr char kUnreachableHelp[] = R"(
Looks at the memory of a running process, or in a core file, for pointers to its live blocks, as
LeakSanitizer and Valgrind do at the end of a program:

  definitely lost   nothing points to it; of lost blocks in a circle, one
  indirectly lost   only lost blocks point to it
  possibly lost     only pointers into its middle lead to it, or XORed ones
  still reachable   a pointer to its beginning was found

Pointers are looked for in registers, thread stacks, variables, thread-local storage, mappings, and
in every block that is reached. A number that looks like a pointer counts as one, so a lost block may
count as reachable, but the program must hide a pointer for a reachable one to count as lost.

The suppressions file that the program's LSAN_OPTIONS name counts.

Stops the process twice for some milliseconds each, to copy it by fork; the copies never run, and
the looking is done in them. Only what both looks find lost is called lost.

Needs a ledger, which memlog run makes the process keep. With --attach, memlog first attaches to a
process that is not traced, and judges only blocks allocated from then on.

A core file needs the ledger that its process kept, too (MTRACE_LEDGER=DIR). It is read from the core
file if that has shared memory of files, or else from where the process had it, or from LEDGER. The
program's and its libraries' files are read for what the kernel does not write into core files.
)";

using heap::Reach;
using Sum = process::ReachSum;

// The names of what is passed here must have been learned. nullptr: "?".
std::string responsible_function(const text::StackNames& names,
                                 const ledger::LedgerStackState* stack) {
  if (stack == nullptr) return "?";
  const std::string line = names.line(*stack);
  return line.substr(0, line.find(" < "));
}

// "g_sessions (app) at app.cc:41, std::map<int, Session*> -> make_node +40, node of std::map<int,
// Session*> -> Session".
std::string path_text(const json::Value& held) {
  std::string out = text::filled("{root}[ at {root_source}][, {root_type}]", held);
  for (const json::Value& holder : held.find("blocks")->elements()) {
    out += text::filled(" -> {function} +{offset}[, {type}]", holder);
  }
  return "    held by " + out + text::filled("[{cut} -> ...][ -> {type}]", held) + '\n';
}

constexpr std::array<const char*, 4> kReachNames = {"definitely lost", "indirectly lost",
                                                    "possibly lost", "still reachable"};
constexpr std::array<const char*, 4> kReachKeys = {"definitely_lost", "indirectly_lost",
                                                   "possibly_lost", "reachable"};

class UnreachableAnswer {
 public:
  // `core`: what the scan is of; nullptr: of a running process.
  UnreachableAnswer(const Arguments& arguments, ledger::LedgerFile& ledger,
                    const process::CoreMemory* core, process::HeapScan& scan,
                    const std::vector<analyze::StackPattern>& suppressions)
      : file_(ledger),
        core_(core),
        scan_(scan),
        known_(file_),
        names_(search_path(arguments), read_responsible(arguments)),
        findings_(without(suppressions, scan), known_),
        limit_(static_cast<size_t>(arguments.number("--limit", 10, 0, 1000000000))),
        reachable_(arguments.has("--reachable")) {
    file_.refresh();
    now_ = core == nullptr ? process::ticks_now(file_.header()) : ticks_of(*core, file_.header());
    std::vector<const ledger::LedgerStackState*> stacks;
    for (const Reach reach : kUnreached) {
      for (const uint32_t stack : named(reach)) stacks.push_back(known_.find(stack));
    }
    for (const Reach reach : shown()) {
      for (const uint32_t stack : first(reach)) stacks.push_back(known_.find(stack));
      if (reach != Reach::kReachable) continue;
      for (const uint32_t stack : first(reach)) {
        const process::RetainerPath& path =
            paths_.emplace(stack, scan_.path(findings_.of(stack).largest_reachable)).first->second;
        add_holders(path, stacks);
      }
    }
    if (arguments.has("--block")) find_block(arguments, stacks);
    names_.learn(file_, known_.state(), stacks);
    add_up_functions();
  }

  bool any_lost() const {
    return block_ ? scan_.reach(*block_) <= Reach::kIndirect
                  : findings_.total(Reach::kDefinite).blocks != 0;
  }

  std::string text(text::Style style) const {
    style.units = true;
    if (block_) return block_text(style);
    json::Value sums = json::Value::array();
    for (size_t i = 0; i < kReachNames.size(); ++i) {
      const Sum& sum = findings_.total(static_cast<Reach>(i));
      sums.push_back({{"reach", kReachNames[i]},
                      {"bytes", sum.bytes},
                      {"blocks", sum.blocks},
                      {"stacks", findings_.with(static_cast<Reach>(i)).size()}});
    }
    const Sum& suppressed = findings_.suppressed();
    if (suppressed.blocks != 0) {
      sums.push_back(
          {{"reach", "suppressed"}, {"bytes", suppressed.bytes}, {"blocks", suppressed.blocks}});
    }
    std::string out = text::filled("{name} ({pid}): ", head()) +
                      fmt::format("{} looked at, {}\n\n",
                                  text::count_text(scan_.blocks().size(), "block"), occasion()) +
                      text::table({{"", "{reach}"},
                                   {"bytes", "{bytes:,}"},
                                   {"blocks", "{blocks:,}"},
                                   {"stacks", "{stacks:,}"}},
                                  sums, style);
    if (!scan_.unknown().empty()) {
      out += '\n' + text::remark(scan_.unknown() +
                                     ": blocks that the ledger does not know count as "
                                     "held, and what they point to as reachable",
                                 style);
    }
    out += missing_text(style) + functions_text(style);
    for (const Reach reach : shown()) out += list(reach, style);
    return out;
  }

  json::Value json() const {
    json::Value out = head();
    if (block_) {
      out["block"] = block_json();
      return out;
    }
    for (size_t i = 0; i < kReachKeys.size(); ++i) {
      const Sum& sum = findings_.total(static_cast<Reach>(i));
      out[fmt::format("{}_bytes", kReachKeys[i])] = sum.bytes;
      out[fmt::format("{}_blocks", kReachKeys[i])] = sum.blocks;
    }
    if (findings_.suppressed().blocks != 0) {
      out["suppressed_bytes"] = findings_.suppressed().bytes;
      out["suppressed_blocks"] = findings_.suppressed().blocks;
    }
    if (core_ == nullptr) {
      out["stopped_us"] = {scan_.stopped(0).count(), scan_.stopped(1).count()};
    } else {
      out["core"] = json::plain(core_->name());
    }
    if (core_ != nullptr || scan_.missing().bytes != 0) {
      out["missing_bytes"] = scan_.missing().bytes;
    }
    out["scanned_bytes"] = scan_.scanned();
    json::put_text(out, "unknown_blocks", scan_.unknown());
    json::Value functions = json::Value::array();
    for (const Function& function : functions_) functions.push_back(function_json(function));
    out["functions"] = functions;
    json::Value stacks = json::Value::array();
    for (const Reach reach : shown()) {
      for (const uint32_t stack : first(reach)) stacks.push_back(stack_json(reach, stack));
    }
    out["stacks"] = stacks;
    return out;
  }

 private:
  // What the responsible function of several stacks has allocated and nothing reaches any more.
  struct Function {
    std::string name;
    std::array<Sum, 3> sums;  // by kUnreached
    uint64_t lost = 0;        // bytes: definitely, and what these blocks own
    std::vector<uint32_t> stacks;
  };
  json::Value head() const { return json::answer("unreachable", file_.header(), true); }

  static constexpr std::array kUnreached = {Reach::kDefinite, Reach::kIndirect, Reach::kPossible};

  // The stacks whose function is looked up.
  std::vector<uint32_t> named(Reach reach) const {
    constexpr size_t kMost = 5000;  // more would take seconds
    std::vector<uint32_t> stacks = findings_.with(reach);
    if (stacks.size() > kMost) stacks.resize(kMost);
    return stacks;
  }
  void add_up_functions() {
    std::map<std::string, Function> by_name;
    for (size_t i = 0; i < kUnreached.size(); ++i) {
      for (const uint32_t index : named(kUnreached[i])) {
        const std::string name = responsible_function(names_, known_.find(index));
        Function& function = by_name[name];
        function.name = name;
        const Sum& sum = findings_.of(index).sums[process::reach_index(kUnreached[i])];
        function.sums[i].bytes += sum.bytes;
        function.sums[i].blocks += sum.blocks;
        if (kUnreached[i] == Reach::kDefinite) {
          function.lost += sum.bytes + findings_.of(index).owned.bytes;
        }
        function.stacks.push_back(index);
      }
    }
    for (auto& [name, function] : by_name) functions_.push_back(std::move(function));
    const auto weight = [](const Function& function) {
      const auto& [definite, indirect, possible] = function.sums;
      return std::tuple(function.lost, indirect.bytes, possible.bytes);
    };
    std::stable_sort(functions_.begin(), functions_.end(),
                     [&](const Function& a, const Function& b) { return weight(a) > weight(b); });
    for (size_t i = 0; i < functions_.size(); ++i) {
      for (const uint32_t stack : functions_[i].stacks) ranks_.emplace(stack, i);
    }
  }
  // Nothing where each function has one stack: the list of stacks says the same.
  std::string functions_text(const text::Style& style) const {
    size_t stacks = 0;
    for (const Reach reach : kUnreached) stacks += named(reach).size();
    if (stacks <= functions_.size()) return {};
    const size_t all = functions_.size();
    const size_t some = limit_ == 0 ? all : std::min(limit_, all);
    json::Value rows = json::Value::array();
    for (size_t i = 0; i < some; ++i) rows.push_back(function_json(functions_[i]));
    return '\n' +
           text::table({{"definitely lost", "{definitely_lost_bytes:,}"},
                        {"indirectly lost", "{indirectly_lost_bytes:,}"},
                        {"possibly lost", "{possibly_lost_bytes:,}"},
                        {"responsible function", "{function}"}},
                       rows, style) +
           text::hidden_text(all - some, "function");
  }
  static json::Value function_json(const Function& function) {
    json::Value out = {{"function", function.name}};
    for (size_t i = 0; i < kUnreached.size(); ++i) {
      out[fmt::format("{}_bytes", kReachKeys[i])] = function.sums[i].bytes;
      out[fmt::format("{}_blocks", kReachKeys[i])] = function.sums[i].blocks;
    }
    return out;
  }

  static uint64_t ticks_of(const process::CoreMemory& core, const format::LedgerHeader& header) {
    const uint64_t zero = header.tick_zero;
    return core.written() > zero ? ledger::ticks_in(core.written() - zero) : 0;
  }
  std::string occasion() const {
    if (core_ != nullptr) return "in the core file " + text::plain(core_->name());
    return fmt::format("stopped for {:.1f} ms and {:.1f} ms",
                       process::in_milliseconds(scan_.stopped(0)),
                       process::in_milliseconds(scan_.stopped(1)));
  }
  // What may hold pointers and was not looked at.
  std::string missing_text(const text::Style& style) const {
    const auto& missing = scan_.missing();
    if (missing.bytes == 0) return {};
    const std::string bytes = util::grouped(missing.bytes) + " bytes that may hold pointers";
    const std::string first = missing.path.empty() ? "anonymous memory" : text::plain(missing.path);
    constexpr char kDoubt[] = "what would be lost counts as possibly lost";
    const std::string why =
        core_ == nullptr ? fmt::format(
                               "{} were not touched, the first of {}: the program supplies them "
                               "(userfaultfd), or they are shared memory in swap; {}",
                               bytes, first, kDoubt)
                         : fmt::format(
                               "the core file lacks {}, the first of {}: {}; before the crash: "
                               "echo 0x3f > /proc/PID/coredump_filter",
                               bytes, first, kDoubt);
    return '\n' + text::remark(why, style);
  }
  const process::HeapScan& without(const std::vector<analyze::StackPattern>& suppressions,
                                   process::HeapScan& scan) {
    suppress_stacks(scan, file_, known_, names_, suppressions);
    return scan;
  }
  std::vector<Reach> shown() const {
    std::vector<Reach> shown = {Reach::kDefinite, Reach::kIndirect, Reach::kPossible};
    if (reachable_) shown.push_back(Reach::kReachable);
    return shown;
  }
  // In the order of their functions, as the table has them.
  std::vector<uint32_t> first(Reach reach) const {
    std::vector<uint32_t> stacks = findings_.with(reach);
    const auto rank = [&](uint32_t stack) {
      const auto known = ranks_.find(stack);
      return known == ranks_.end() ? functions_.size() : known->second;
    };
    if (reach != Reach::kReachable) {
      std::stable_sort(stacks.begin(), stacks.end(),
                       [&](uint32_t a, uint32_t b) { return rank(a) < rank(b); });
    }
    if (limit_ != 0 && stacks.size() > limit_) stacks.resize(limit_);
    return stacks;
  }
  uint64_t age(Reach reach, uint32_t stack) const {
    return age_since(findings_.of(stack).oldest_of[process::reach_index(reach)]);
  }
  uint64_t age_since(uint64_t birth) const {
    return birth < now_ ? ledger::tick_milliseconds(now_ - birth) : 0;
  }

  void add_holders(const process::RetainerPath& path,
                   std::vector<const ledger::LedgerStackState*>& stacks) const {
    for (const process::RetainerPath::Step& step : path.steps) {
      const auto* owner = known_.find(scan_.blocks()[step.block].stack);
      if (owner != nullptr) stacks.push_back(owner);
    }
  }

  // The one that holds the address, for --block.
  void find_block(const Arguments& arguments,
                  std::vector<const ledger::LedgerStackState*>& stacks) {
    const std::string text = arguments.value("--block");
    const auto address = text.starts_with("0x") ? util::read_hex(text.substr(2)) : std::nullopt;
    if (!address) {
      throw UsageError(
          fmt::format("{}: {} is not an address like 0x5500", arguments.command(), text));
    }
    const auto& blocks = scan_.blocks();
    auto next = std::upper_bound(
        blocks.begin(), blocks.end(), *address,
        [](uint64_t place, const heap::HeapBlock& one) { return place < one.address; });
    if (next == blocks.begin() ||
        *address - (--next)->address >= std::max<uint64_t>(next->size, 1)) {
      throw process::NoLiveBlock(
          fmt::format("{} lies in no live block of {} that the ledger knows: memlog map shows the "
                      "process's memory; freed blocks: memlog run --events=full",
                      text, file_.header().pid),
          file_.header());
    }
    block_ = static_cast<size_t>(next - blocks.begin());
    offset_ = *address - next->address;
    // Of a lost block, the lost one that it hangs on.
    if (scan_.reach(*block_) >= Reach::kPossible) {
      held_ = scan_.path(*block_);
    } else if (scan_.owner(*block_) != *block_) {
      held_.steps.push_back({scan_.owner(*block_), 0, ""});
    }
    add_holders(held_, stacks);
    if (const auto* stack = known_.find(next->stack)) stacks.push_back(stack);
  }

  std::string block_text(const text::Style& style) const {
    const json::Value block = block_json();
    std::string out = text::filled("{name} ({pid}): ", head()) +
                      text::filled(
                          "{address}[ +{offset}], a block of {bytes:,} bytes, "
                          "allocated {age_ms:time} ago: ",
                          block, style) +
                      kReachNames[process::reach_index(scan_.reach(*block_))] + '\n';
    const ledger::LedgerStackState* stack = known_.find(scan_.blocks()[*block_].stack);
    if (stack != nullptr) out += names_.indented(*stack);
    if (const json::Value* held = block.find("held_by")) return out + path_text(*held);
    if (held_.steps.empty()) return out;
    const heap::HeapBlock& owner = scan_.blocks()[held_.steps[0].block];
    return out + text::filled("    lost with {lost_with}", block) +
           fmt::format(", a block of {} bytes: {}\n", util::grouped(owner.size),
                       responsible_function(names_, known_.find(owner.stack)));
  }
  json::Value block_json() const {
    const heap::HeapBlock& block = scan_.blocks()[*block_];
    const Reach reach = scan_.reach(*block_);
    json::Value out = {{"address", fmt::format("0x{:x}", block.address)},
                       {"offset", offset_},
                       {"bytes", block.size},
                       {"age_ms", age_since(ledger::unpack_ticks(block.birth))},
                       {"reach", kReachKeys[process::reach_index(reach)]}};
    if (reach >= Reach::kPossible) {
      out["held_by"] = path_json(held_);
    } else if (!held_.steps.empty()) {
      out["lost_with"] = fmt::format("0x{:x}", scan_.blocks()[held_.steps[0].block].address);
    }
    if (const auto* stack = known_.find(block.stack)) names_.put(out, *stack);
    return out;
  }

  json::Value path_json(const process::RetainerPath& path) const {
    json::Value holders = json::Value::array();
    for (const process::RetainerPath::Step& step : path.steps) {
      const auto* stack = known_.find(scan_.blocks()[step.block].stack);
      json::Value holder = {{"address", fmt::format("0x{:x}", scan_.blocks()[step.block].address)},
                            {"offset", step.offset}};
      if (stack != nullptr) holder["stack"] = names_.id(*stack);
      holder["function"] = responsible_function(names_, stack);
      json::put_text(holder, "type", json::plain(step.type));
      holders.push_back(holder);
    }
    json::Value held = {{"root", json::plain(path.root)}, {"blocks", holders}};
    if (path.cut) held["cut"] = true;
    json::put_text(held, "root_source", json::plain(path.root_source));
    json::put_text(held, "root_type", json::plain(path.root_type));
    if (!path.cut) json::put_text(held, "type", json::plain(path.type));
    return held;
  }

  std::string list(Reach reach, const text::Style& style) const {
    std::string out;
    const std::vector<uint32_t> stacks = first(reach);
    for (const uint32_t index : stacks) {
      const json::Value stack = stack_json(reach, index);
      out += text::coloured('\n' + std::string(kReachNames[process::reach_index(reach)]) +
                                text::filled(": {bytes:,} bytes in {blocks:block}", stack),
                            reach == Reach::kDefinite ? text::kRed : text::kBold, style) +
             text::filled(
                 "[, and {owned_indirectly_lost_bytes:,} bytes in "
                 "{owned_indirectly_lost_blocks:block} indirectly]"
                 ", oldest {oldest_ms:time}\n",
                 stack, style) +
             names_.indented(*known_.find(index));
      if (reach == Reach::kReachable) out += path_text(*stack.find("held_by"));
    }
    const size_t hidden = findings_.with(reach).size() - stacks.size();
    return hidden == 0 ? out : out + '\n' + text::hidden_text(hidden, "stack");
  }

  json::Value stack_json(Reach reach, uint32_t index) const {
    const process::StackReach& found = findings_.of(index);
    const Sum& sum = found.sums[process::reach_index(reach)];
    json::Value out = {{"reach", kReachKeys[process::reach_index(reach)]},
                       {"bytes", sum.bytes},
                       {"blocks", sum.blocks},
                       {"oldest_ms", age(reach, index)}};
    if (reach == Reach::kDefinite) {
      out["owned_indirectly_lost_bytes"] = found.owned.bytes;
      out["owned_indirectly_lost_blocks"] = found.owned.blocks;
    }
    if (reach == Reach::kReachable) out["held_by"] = path_json(paths_.at(index));
    names_.put(out, *known_.find(index));
    return out;
  }

  ledger::LedgerFile& file_;
  const process::CoreMemory* core_;
  const process::HeapScan& scan_;
  ledger::KnownLedger known_;
  text::StackNames names_;
  process::Findings findings_;
  size_t limit_;
  bool reachable_;
  std::vector<Function> functions_;   // those with the most definitely lost bytes first
  std::map<uint32_t, size_t> ranks_;  // of stacks: the places of their functions
  std::map<uint32_t, process::RetainerPath>
      paths_;  // to the largest reachable block of each stack shown
  uint64_t now_ = 0;
  std::optional<size_t> block_;  // the one that is asked about
  uint64_t offset_ = 0;          // in it, of the address
  process::RetainerPath held_;   // to it; or of a lost one the one it hangs on
};

std::chrono::milliseconds read_time(const Arguments& arguments, const char* option,
                                    std::chrono::milliseconds otherwise) {
  const auto time = arguments.milliseconds(option, 0, 3600000, "up to 1h, like 500ms");
  return time ? std::chrono::milliseconds(*time) : otherwise;
}

process::HeapScanSettings read_settings(const Arguments& arguments) {
  process::HeapScanSettings settings;
  settings.pause = read_time(arguments, "--pause", settings.pause);
  settings.stop_limit = read_time(arguments, "--stop-limit", settings.stop_limit);
  settings.tag_bits = static_cast<unsigned>(arguments.number("--tag-bits", 0, 0, 4));
  settings.where = search_path(arguments);
  settings.inner_counts = arguments.has("--interior");
  return settings;
}

int tell(const Arguments& arguments, const Streams& streams, const UnreachableAnswer& answer) {
  print(streams, arguments.has("--json") ? json::text(answer.json())
                                         : answer.text(read_style(arguments, streams)));
  return answer.any_lost() ? kFailed : kGood;
}

int look_at_core(const Arguments& arguments, const Streams& streams) {
  if (arguments.operands().size() > 1) throw UsageError("unreachable: give at most one ledger");
  const process::HeapScanSettings settings = read_settings(arguments);
  std::vector<analyze::StackPattern> suppressions;
  add_suppressions(arguments, suppressions);
  const process::CoreMemory core(arguments.value("--core"), search_path(arguments).sysroot);
  const auto ledger =
      core.ledger(arguments.operands().empty() ? std::string() : arguments.operands()[0]);
  process::HeapScan scan(core, *ledger, settings);
  return tell(arguments, streams, UnreachableAnswer(arguments, *ledger, &core, scan, suppressions));
}

int run_unreachable(const Arguments& arguments, const Streams& streams) {
  if (arguments.has("--core")) return look_at_core(arguments, streams);
  if (arguments.operands().size() != 1) throw UsageError(arguments.lacking("give one process"));
  const process::HeapScanSettings settings = read_settings(arguments);
  std::vector<analyze::StackPattern> suppressions;
  add_suppressions(arguments, suppressions);
  WatchedProcess target(arguments, streams);
  add_lsan_suppressions("unreachable",
                        process::start_environment(target.pid(), "LSAN_OPTIONS").value_or(""),
                        fmt::format("/proc/{}/cwd", target.pid()),
                        util::array_text(target.ledger().header().program), suppressions);
  std::optional<process::HeapScan> scan;
  process::catch_interruption();
  try {
    scan.emplace(target.pid(), target.ledger(), settings);
    scan->close();
    target.let_go();
    process::check_interruption();
    process::stop_catching();
  } catch (const process::AttachError& error) {
    if (const int signal = process::caught_signal()) {
      scan.reset();
      target.let_go();
      process::end_by(signal);
    }
    throw std::runtime_error(
        fmt::format("{} ({}) {}", target.pid(),
                    text::plain(util::array_text(target.ledger().header().name)), error.what()));
  }
  return tell(arguments, streams,
              UnreachableAnswer(arguments, target.ledger(), nullptr, *scan, suppressions));
}

}  // namespace

const Command& unreachable_command() {
  static const Command command = {
      {"unreachable",
       "find the blocks that a running process has leaked",
       "[OPTION]... PID|NAME\n[OPTION]... --core FILE [LEDGER]",
       kUnreachableHelp,
       {{"--reachable", "", "",
         R"(Also list what is still reachable, and of each stack how its largest block is held: from
         a variable, a thread's stack or a register through block after block. With debugging
         information, where the variable is declared and which types the pointers have.)"},
        {"--block", "", "ADDRESS",
         R"(Explain only the block that contains this address: its stack and age, and what holds it
         or which lost block owns it.)"},
        {"--limit", "-n", "N", "Show N stacks of each kind; 0: all. Default 10."},
        {"--pause", "", "TIME", "Time between the two looks: 500ms, 10s. Default 100ms."},
        {"--stop-limit", "", "TIME",
         R"(Where the process cannot be copied (a filter of system calls, no memory for it): search
         it while it is stopped, twice for at most TIME, as 500ms. Without this it is not
         searched.)"},
        {"--core", "", "FILE",
         R"(Look in this core file, of the kernel or of gcore, instead of a running process.)", "",
         "", "--pause|--stop-limit|--attach"},
        {"--interior", "", "",
         R"(Count a pointer into the middle of a block like one to its beginning, as LeakSanitizer
         does. For programs that keep such pointers only: Python, redis, sqlite.)"},
        {"--tag-bits", "", "N",
         "The program keeps data in the N lowest bits of its pointers, 0 to 4. Default 0."},
        kSuppressionsOption,
        kJsonOption,
        kBytesOption,
        kColorOption,
        kLibraryOption,
        kOwnOption,
        kAttachOption,
        kSysrootOption,
        kSymbolsOption},
       R"(0: nothing is definitely lost, with --block this block is not lost; 1: something is, the address
       is in no live block, or the process does not exist, has no
       readable ledger, or cannot be stopped or copied, or the core file or its ledger cannot be used;
       2: wrong command line.)",
       R"(  memlog unreachable app
  memlog unreachable --reachable -n 3 app
  memlog unreachable --block 0x55d0c0a01100 4711
  memlog unreachable --core core.4711
  memlog unreachable --json 4711 | jq .definitely_lost_bytes
)"},
      run_unreachable};
  return command;
}

}  // namespace mtrace::cli
