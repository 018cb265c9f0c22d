#include "surface/serve/metrics.h"

#include "util/text.h"
#include "view/text/stack_names.h"

namespace mtrace::serve {
namespace {

struct Family {
  const char* name;  // without the suffix of its samples
  const char* type;  // "gauge" or "counter"
  const char* unit;  // "bytes", "seconds" or ""
  const char* help;
  uint64_t (*value)(const MeasuredProcess&);  // of seconds: nanoseconds
};

uint64_t above_zero(int64_t value) { return value > 0 ? static_cast<uint64_t>(value) : 0; }

constexpr Family kFamilies[] = {
    {"mtrace_live_bytes", "gauge", "bytes", "Heap memory that is allocated and not freed.",
     [](const MeasuredProcess& one) { return above_zero(one.heap.total.live_bytes()); }},
    {"mtrace_live_blocks", "gauge", "", "Blocks that are allocated and not freed.",
     [](const MeasuredProcess& one) { return above_zero(one.heap.total.live_blocks()); }},
    {"mtrace_peak_bytes", "gauge", "bytes", "The most that was live at one moment.",
     [](const MeasuredProcess& one) { return one.heap.peak_bytes; }},
    {"mtrace_resident_bytes", "gauge", "bytes", "Resident memory of the process.",
     [](const MeasuredProcess& one) { return one.totals.resident_bytes; }},
    {"mtrace_ledger_bytes", "gauge", "bytes", "Memory of the library's tables.",
     [](const MeasuredProcess& one) { return one.totals.ledger_bytes; }},
    {"mtrace_shadow_bytes", "gauge", "bytes",
     "Memory of the shadow of the heap, a part of mtrace_ledger_bytes.",
     [](const MeasuredProcess& one) { return one.totals.cost.shadow; }},
    {"mtrace_report_seconds", "counter", "seconds",
     "Time for which threads of the process wrote reports.",
     [](const MeasuredProcess& one) { return one.totals.cost.stopped; }},
    {"mtrace_processor_seconds", "counter", "seconds",
     "Estimate of the processor time that tracing has taken: 30 ns a call. 0: the process samples.",
     [](const MeasuredProcess& one) { return one.totals.cost.processor; }},
    {"mtrace_sampling", "gauge", "", "1: figures of the heap are estimates from samples.",
     [](const MeasuredProcess& one) { return uint64_t{one.totals.sampled}; }},
    {"mtrace_allocations", "counter", "", "Blocks allocated since the process started.",
     [](const MeasuredProcess& one) { return one.heap.total.allocated_blocks; }},
    {"mtrace_frees", "counter", "", "Blocks freed since the process started.",
     [](const MeasuredProcess& one) { return one.heap.total.freed_blocks; }},
    {"mtrace_lost_stacks", "counter", "", "Stacks that found no room in the table.",
     [](const MeasuredProcess& one) { return one.heap.lost_stacks; }},
    {"mtrace_lost_frames", "counter", "", "Stack walks that ended early.",
     [](const MeasuredProcess& one) { return one.heap.lost_frames; }},
    {"mtrace_lost_blocks", "counter", "", "Blocks that found no room in the table.",
     [](const MeasuredProcess& one) { return one.heap.lost_blocks; }},
    {"mtrace_lost_inflight", "counter", "", "Operations of threads that a fork left behind.",
     [](const MeasuredProcess& one) { return one.heap.lost_inflight; }},
    {"mtrace_lost_frees", "counter", "",
     "Blocks freed unseen, found when their addresses were used again.",
     [](const MeasuredProcess& one) { return one.heap.lost_frees; }},
    {"mtrace_ledger_unread", "gauge", "",
     "Stacks and modules that the ledger lacks, on a full disk; their blocks are in no figure.",
     [](const MeasuredProcess& one) { return one.heap.unread; }},
};

std::string labels(const MeasuredProcess& one) {
  return fmt::format("pid=\"{}\",name=\"{}\"", one.totals.pid, label_text(one.totals.name));
}

void put_head(std::string& out, std::string_view name, const char* type, const char* unit,
              const char* help, bool open) {
  auto to = std::back_inserter(out);
  fmt::format_to(to, "# TYPE {} {}\n", name, type);
  if (open && *unit != '\0') fmt::format_to(to, "# UNIT {} {}\n", name, unit);
  fmt::format_to(to, "# HELP {} {}\n", name, help);
}

std::string value_text(const Family& family, const MeasuredProcess& process) {
  const uint64_t value = family.value(process);
  const bool is_time = family.unit == std::string_view("seconds");
  return is_time ? fmt::format("{}", static_cast<double>(value) / 1e9) : fmt::format("{}", value);
}

void put_functions(std::string& out, const MeasuredProcess& process) {
  for (const auto& [function, bytes] : process.heap.functions) {
    fmt::format_to(std::back_inserter(out), "mtrace_function_live_bytes{{{},function=\"{}\"}} {}\n",
                   labels(process), label_text(function), bytes);
  }
}

constexpr char kOther[] = "other";

bool holds(const ledger::LedgerStackState& stack) {
  return stack.kind == 0 && stack.now.live_bytes() != 0;
}

}  // namespace

std::string label_text(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string metrics(const std::vector<MeasuredProcess>& processes, bool open) {
  std::string out;
  for (const Family& family : kFamilies) {
    const bool counts = family.type == std::string_view("counter");
    const std::string name = family.name + std::string(counts ? "_total" : "");
    put_head(out, open ? family.name : name, family.type, family.unit, family.help, open);
    for (const MeasuredProcess& process : processes) {
      fmt::format_to(std::back_inserter(out), "{}{{{}}} {}\n", name, labels(process),
                     value_text(family, process));
    }
  }
  put_head(out, "mtrace_function_live_bytes", "gauge", "bytes",
           "Live bytes of the stacks that a function is responsible for.", open);
  for (const MeasuredProcess& process : processes) put_functions(out, process);
  return open ? out + "# EOF\n" : out;
}

HeapFigures HeapMeter::measure(const ProcessTotals& process, const ledger::LedgerFile& ledger,
                               size_t top) {
  const ledger::LedgerState state = ledger::read_ledger(ledger);
  HeapFigures figures = {.peak_bytes = state.peak,
                         .lost_stacks = state.lost_stacks,
                         .lost_frames = state.lost_frames,
                         .lost_blocks = state.lost_blocks,
                         .lost_inflight = state.lost_inflight,
                         .lost_frees = state.lost_frees,
                         .unread = state.unread};
  uint64_t shares = 0;
  for (const ledger::LedgerStackState& stack : state.stacks) {
    if (stack.kind != 0) continue;
    figures.total += stack.now;
    shares += stack.share;
  }
  figures.peak_bytes = std::max(figures.peak_bytes, shares);
  Known& known = known_[process.number];
  learn(known, process, ledger, state);
  put_functions(known, state, top, figures);
  return figures;
}

void HeapMeter::learn(Known& known, const ProcessTotals& process, const ledger::LedgerFile& ledger,
                      const ledger::LedgerState& state) {
  if (!state.stacks.empty()) {
    known.functions.resize(
        std::max<size_t>(known.functions.size(), size_t{state.stacks.back().ordinal} + 1));
  }
  std::vector<const ledger::LedgerStackState*> fresh;
  for (const ledger::LedgerStackState& stack : state.stacks) {
    if (holds(stack) && known.functions[stack.ordinal] == 0) fresh.push_back(&stack);
  }
  if (fresh.empty()) return;
  text::StackNames names(symbolizers_.of(process), responsible_);
  names.learn(ledger, state, fresh);
  for (const ledger::LedgerStackState* stack : fresh) {
    known.functions[stack->ordinal] =
        number_of(util::escaped(names.group(names.group_of(*stack)).name, ""));
  }
}

void HeapMeter::put_functions(const Known& known, const ledger::LedgerState& state, size_t top,
                              HeapFigures& figures) const {
  absl::flat_hash_map<uint32_t, int64_t> held;
  for (const ledger::LedgerStackState& stack : state.stacks) {
    if (holds(stack)) held[known.functions[stack.ordinal]] += stack.now.live_bytes();
  }
  std::vector<std::pair<int64_t, uint32_t>> most;
  for (const auto& [number, bytes] : held) most.emplace_back(bytes, number);
  std::sort(most.rbegin(), most.rend());
  figures.functions[kOther] = 0;
  for (size_t i = 0; i < most.size(); ++i) {
    const auto& [bytes, number] = most[i];
    figures.functions[i < top ? names_[number - 1] : kOther] += bytes;
  }
}

uint32_t HeapMeter::number_of(const std::string& function) {
  const auto [at, fresh] = numbers_.try_emplace(function, static_cast<uint32_t>(names_.size() + 1));
  if (fresh) names_.push_back(function);
  return at->second;
}

void HeapMeter::keep_only(const std::vector<uint64_t>& numbers) {
  const std::unordered_set<uint64_t> kept(numbers.begin(), numbers.end());
  std::erase_if(known_, [&](const auto& one) { return !kept.contains(one.first); });
}

}  // namespace mtrace::serve
