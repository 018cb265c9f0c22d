// memlog top: a running process's stacks, refreshing.

#include "format/memlog.h"
#include "process/inspect/address_space.h"
#include "process/inspect/process.h"
#include "process/ptrace/safe_point.h"
#include "surface/cli/command.h"
#include "surface/cli/report_options.h"
#include "surface/cli/tracing_options.h"
#include "util/screen.h"
#include "view/json/views.h"
#include "view/text/header_text.h"
#include "view/text/style.h"
#include "view/text/top_text.h"

namespace mtrace::cli {
namespace {

constexpr char kTopHelp[] = R"(
Shows which functions of a running process hold the heap, by the stacks that they are responsible
for: live bytes and blocks, growth and allocations per second, and what each held at the peak of the
process. The number behind a function is that of its stacks. What the C and C++ runtimes keep to the
end (memlog check --print-builtin) is one row, "kept by runtimes". Reads the ledger file that memlog run or
MTRACE_LEDGER makes the process keep. The process is not signalled, stopped or written to, and does
not notice. With --attach, memlog first attaches to a process that is not traced, as memlog attach
does, and shows what is allocated from that moment on.

If much of malloc's heaps is free, a line says how much, what malloc_trim(3) can give back, and which
function's blocks keep most of the rest resident. memlog map shows the others.

Resources of the program's own (mtrace.h, mtrace_resources.h) are summed up by kind in a line
"besides".

Keys: l, g, a and p sort by live bytes, growth, allocations and peak. The arrows (or k and j) select
a row; Enter unfolds a function to its stacks, and a stack to its frames. s switches between
functions and stacks. / asks for a filter: an expression (RE2, case does not matter) that the
function, source line or module of one of a stack's frames must match; Escape removes it. m sets a
mark: live and blocks then show the change since the mark; u removes it. The space bar refreshes at
once. ? shows the keys. q quits.

In a pipe, with --batch or with --once, prints the same as text, in exact bytes. The first rates are
averages since the process started.
)";

constexpr Option kTopOptions[] = {
    {"--by", "", "KEY", "Initial sort order.", "live|growth|allocs|peak"},
    {"--delay", "-d", "TIME",
     "Time between refreshes: 500ms, 2s (a number alone: seconds). Default 2s."},
    {"--batch", "-b", "", "Print text again and again instead of drawing a screen."},
    {"--count", "-n", "N", "End after N refreshes. Default: when the process ends."},
    {"--once", "", "", "Same as --batch --count 1."},
    {"--limit", "", "N", "Rows per refresh in --batch; 0: all. Default 20."},
    {"--kind", "", "KIND",
     "Show the program's own resources of this kind (mtrace_record) in place of the heap."},
};

constexpr Option kRowsOption = {"--group-by", "", "WHAT",
                                "What a row is: a responsible function, or a stack.",
                                "function|stack"};

struct TopOptions {
  text::TopView view;
  std::string kind;
  int delay = 2000;  // milliseconds
  long count = 0;    // 0: no end
  size_t limit = 20;
};

TopOptions top_options(const Arguments& arguments) {
  TopOptions options;
  const std::string by = arguments.choice("--by");
  options.view.order = by == "growth"   ? ledger::WatchOrder::kGrowth
                       : by == "allocs" ? ledger::WatchOrder::kAllocations
                       : by == "peak"   ? ledger::WatchOrder::kPeak
                                        : ledger::WatchOrder::kLive;
  options.view.grouped = arguments.choice("--group-by") == "function";
  options.kind = arguments.value("--kind");
  if (const auto delay =
          arguments.milliseconds("--delay", 50, 86400000, "from 50ms to 1d, like 2s")) {
    options.delay = static_cast<int>(*delay);
  }
  options.count = arguments.has("--once") ? 1 : arguments.number("--count", 0, 1, 1000000000);
  options.limit = static_cast<size_t>(arguments.number("--limit", 20, 0, 1000000));
  return options;
}

// Why the heaps of malloc are larger than what is live in them.
class HeapLook {
 public:
  explicit HeapLook(const WatchedProcess& target) : target_(target) {}

  // Empty: they are not, or memlog cannot tell. As a look at the pages takes long in a large
  // process, it is made again only after twenty times that.
  const std::string& text(const ledger::Watch& watch, text::StackNames& names,
                          const text::Style& style) {
    const uint64_t begin = process::real_time_now();
    if (begin < next_) return text_;
    text_.clear();
    try {
      if (is_due(watch)) text_ = look(watch, names, style);
    } catch (const std::runtime_error&) {  // it has ended, or is another user's
    }
    const uint64_t end = process::real_time_now();
    next_ = end + 20 * (end - std::min(begin, end));
    return text_;
  }

 private:
  // Whether all live blocks are known, and may be far less than what is resident.
  bool is_due(const ledger::Watch& watch) {
    const format::LedgerHeader& header = target_.ledger().header();
    if (header.sampled != 0 || header.recording == 0 || header.missing != 0 || header.late != 0 ||
        header.parent != 0 || !watch.kind().empty()) {
      return false;
    }
    int64_t live = 0;
    for (const ledger::LedgerStackState& stack : watch.state().stacks) {
      if (stack.kind == 0) live += stack.now.live_bytes();
    }
    const auto status = process::read_proc(process::proc_path(target_.pid(), "status"));
    resident_ = status ? process::status_bytes(*status, "VmRSS") : 0;
    const auto held = static_cast<uint64_t>(std::max<int64_t>(live, 0));
    return format::is_much(resident_ - std::min(resident_, held), resident_);
  }

  std::string look(const ledger::Watch& watch, text::StackNames& names, const text::Style& style) {
    const process::AddressSpace space(target_.pid(), target_.ledger());
    const heap::PinnedPages& pages = space.pinned();
    text::HeapUse use;
    for (const process::SpaceRegion& region : space.regions()) {
      if (!region.is_heap()) continue;
      use.resident += region.mapping.resident;
      use.live += region.live_bytes;
      use.free += region.mapping.resident - std::min(region.mapping.resident, region.taken);
    }
    if (!format::is_much(use.free, resident_)) return {};
    if (!space.other_allocator()) {
      use.empty = pages.free * heap::kHeapPage;
      use.arenas = space.arenas().arenas;
      use.arenas_empty = space.arenas().free * heap::kHeapPage;
    }
    std::vector<const ledger::LedgerStackState*> stacks;
    for (const ledger::LedgerStackState& stack : watch.state().stacks) {
      if (pages.stacks.contains(stack.index)) stacks.push_back(&stack);
    }
    names.learn(target_.ledger(), watch.state(), stacks);
    std::map<size_t, double> held;  // pages, by function
    for (const ledger::LedgerStackState* stack : stacks) {
      const heap::StackPages& own = pages.stacks.at(stack->index);
      double& sum = held[names.group_of(*stack)];
      sum += static_cast<double>(own.alone) + own.share;
      use.add_holder(text::plain(names.group(names.group_of(*stack)).name),
                     static_cast<uint64_t>(std::llround(sum)) * heap::kHeapPage);
    }
    use.process = fmt::format("{}", target_.pid());
    return text::heap_text(use, style);
  }

  const WatchedProcess& target_;
  uint64_t next_ = 0;  // nanoseconds since 1970
  uint64_t resident_ = 0;
  std::string text_;
};

void learn(text::StackNames& names, const ledger::LedgerFile& file, const ledger::Watch& watch,
           const std::vector<ledger::WatchRow>& rows, size_t first, size_t count) {
  std::vector<const ledger::LedgerStackState*> stacks;
  for (size_t i = first; i < std::min(rows.size(), first + count); ++i) {
    stacks.push_back(rows[i].stack);
  }
  names.learn(file, watch.state(), stacks);
}

// One look after the other as text.
void run_batch(const WatchedProcess& target, TopOptions options, text::StackNames& names,
               const Streams& streams) {
  ledger::LedgerFile& file = target.ledger();
  const process::ProcessHandle& process = target.process();
  ledger::Watch watch(options.kind);
  HeapLook heap(target);
  const text::Style style;
  for (long look = 1;; ++look) {
    watch.look(file, process::real_time_now());
    const std::vector<ledger::WatchRow> rows = watch.rows(options.view.order);
    const size_t limit = options.limit == 0 ? rows.size() : options.limit;
    learn(names, file, watch, rows, 0, options.view.grouped ? rows.size() : limit);
    const std::vector<text::TopItem> items = text::top_items(rows, names, options.view);
    options.view.heap = heap.text(watch, names, style);
    std::string out = look == 1 ? "" : "\n";
    for (const std::string& line : text::top_head(file, watch, options.view, style))
      out += line + '\n';
    out += text::top_titles(options.view, style) + '\n';
    for (size_t i = 0; i < std::min(limit, items.size()); ++i) {
      out += text::top_line(items[i], names, style) + '\n';
    }
    if (items.size() > limit) {
      out += fmt::format("... {} more (--limit 0)\n", items.size() - limit);
    }
    print(streams, out);
    std::fflush(streams.out);
    if (look == options.count || process.wait_end(options.delay) || process::interrupted()) {
      return;
    }
  }
}

// One look as JSON.
void print_json(ledger::LedgerFile& file, const TopOptions& options, text::StackNames& names,
                const Streams& streams) {
  ledger::Watch watch(options.kind);
  watch.look(file, process::real_time_now());
  std::vector<ledger::WatchRow> rows = watch.rows(options.view.order);
  if (options.limit != 0 && rows.size() > options.limit) rows.resize(options.limit);
  learn(names, file, watch, rows, 0, rows.size());
  const auto put = [&](json::Value& out, const ledger::LedgerStackState& stack) {
    names.put(out, stack);
  };
  print(streams, json::text(json::watch(file, watch, rows, put)));
}

// The screen: what is shown follows from the view, which the keys change.
class Screen {
 public:
  Screen(const WatchedProcess& target, const TopOptions& options, text::StackNames& names)
      : file_(target.ledger()),
        names_(names),
        view_(options.view),
        watch_(options.kind),
        heap_(target) {
    view_.keys = true;
    style_.units = true;
  }

  void look() {
    watch_.look(file_, process::real_time_now());
    view_.heap = heap_.text(watch_, names_, style_);
  }

  void draw(const util::Terminal& terminal) {
    if (help_) return terminal.draw(text::top_help(), SIZE_MAX);
    const util::Terminal::Size room = terminal.size();
    style_.columns = room.width;
    const std::vector<ledger::WatchRow> rows = shown_rows();
    tell_filter(rows.size());
    const std::vector<text::TopItem> items = shown_items(rows);
    std::vector<std::string> lines = text::top_head(file_, watch_, view_, style_);
    lines.push_back(text::top_titles(view_, style_));
    const size_t space = room.height > lines.size() ? room.height - lines.size() : 0;
    view_.chosen = std::min(view_.chosen, items.empty() ? 0 : items.size() - 1);
    // The chosen row stays in sight.
    view_.first = std::min(view_.first, view_.chosen);
    if (space != 0 && view_.chosen >= view_.first + space) view_.first = view_.chosen - space + 1;
    size_t chosen_line = SIZE_MAX;
    for (size_t i = view_.first; i < items.size() && lines.size() < room.height; ++i) {
      if (i == view_.chosen) chosen_line = lines.size();
      lines.push_back(text::top_line(items[i], names_, style_));
      const ledger::LedgerStackState& stack = *items[i].sum.stack;
      if (items[i].stacks != 1 || stack.ordinal != view_.expanded) continue;
      lines.push_back("    stack=" + names_.id(stack));
      for (const std::string& frame : names_.frames(stack)) {
        lines.push_back("      " + frame);
      }
    }
    terminal.draw(lines, chosen_line);
  }

  // False: quit.
  bool press(int key) {
    if (key == util::Terminal::kEnd) return false;
    if (key == 0) return true;
    if (prompt_) return type(key);
    if (help_ && key != 'q') {
      help_ = false;
      return true;
    }
    said_.clear();
    switch (key) {
      case '/':
        prompt_.emplace();
        return true;
      case kEscape:
        return filter_by("");
      case '?':
        help_ = true;
        return true;
      case 'q':
        return false;
      case 'l':
        return sort_by(ledger::WatchOrder::kLive);
      case 'g':
        return sort_by(ledger::WatchOrder::kGrowth);
      case 'a':
        return sort_by(ledger::WatchOrder::kAllocations);
      case 'p':
        return sort_by(ledger::WatchOrder::kPeak);
      case util::Terminal::kUp:
      case 'k':
        if (view_.chosen > 0) --view_.chosen;
        return true;
      case util::Terminal::kDown:
      case 'j':
        ++view_.chosen;
        return true;
      case 's':
        view_.grouped = !view_.grouped;
        view_.chosen = view_.first = 0;
        return true;
      case '\r':
      case '\n':
        return unfold();
      case 'm':
      case 'u':
        if (key == 'm') look();
        watch_.mark(key == 'm');
        return true;
      case ' ':
        look();
        return true;
      default:
        return true;
    }
  }

  void say(const std::string& message) { said_ = message; }

 private:
  static constexpr int kEscape = 27;

  // The first time with a filter this looks up the names of all stacks.
  std::vector<ledger::WatchRow> shown_rows() {
    std::vector<ledger::WatchRow> rows = watch_.rows(view_.order);
    if (!filter_.active()) return rows;
    all_ = rows.size();
    learn(names_, file_, watch_, rows, 0, rows.size());
    filter_.apply(rows, names_);
    return rows;
  }
  // Above the rows, in place of the keys.
  void tell_filter(size_t shown) {
    view_.message = said_;
    if (prompt_) {
      view_.message = "filter: " + prompt_->text() + "_   (enter applies it, escape leaves it)";
    } else if (said_.empty() && filter_.active()) {
      view_.message = fmt::format("filter: {}   ({} of {} stacks; / another, escape removes it)",
                                  text::plain(filter_.expression()), shown, all_);
    }
  }
  bool type(int key) {
    const util::Prompt::State state = prompt_->press(key);
    if (state == util::Prompt::State::kTyping) return true;
    const std::string text = prompt_->text();
    prompt_.reset();
    return state == util::Prompt::State::kCancelled || filter_by(text);
  }
  bool filter_by(const std::string& expression) {
    const std::string why = filter_.set(expression);
    if (!why.empty()) said_ = fmt::format("filter {}: {}", text::plain(expression), why);
    view_.chosen = view_.first = 0;
    return true;
  }
  bool sort_by(ledger::WatchOrder order) {
    view_.order = order;
    view_.chosen = view_.first = 0;
    return true;
  }
  std::vector<text::TopItem> shown_items(const std::vector<ledger::WatchRow>& rows) {
    learn(names_, file_, watch_, rows, 0, rows.size());
    return text::top_items(rows, names_, view_);
  }
  // A group shows its stacks, a stack its frames.
  bool unfold() {
    const std::vector<ledger::WatchRow> rows = shown_rows();
    const std::vector<text::TopItem> items = shown_items(rows);
    if (view_.chosen >= items.size()) return true;
    const text::TopItem& item = items[view_.chosen];
    if (item.stacks > 1) {
      view_.open = view_.open == item.group ? 0 : item.group;
      return true;
    }
    const uint32_t ordinal = item.sum.stack->ordinal;
    view_.expanded = view_.expanded == ordinal ? 0 : ordinal;
    return true;
  }

  ledger::LedgerFile& file_;
  text::StackNames& names_;
  text::TopView view_;
  text::Style style_;
  ledger::Watch watch_;
  HeapLook heap_;
  text::StackFilter filter_;
  size_t all_ = 0;                      // stacks, with those that the filter leaves out
  std::optional<util::Prompt> prompt_;  // the filter that is being typed
  std::string said_;                    // until the next key
  bool help_ = false;
};

void run_screen(const WatchedProcess& target, const TopOptions& options, text::StackNames& names,
                const util::Terminal& terminal) {
  const process::ProcessHandle& process = target.process();
  Screen screen(target, options, names);
  uint64_t next = 0;
  constexpr uint64_t kMillisecond = 1000000;
  bool ended = false;
  for (long looks = 0;;) {
    if (!ended && process::real_time_now() >= next) {
      if (options.count != 0 && looks++ == options.count) return;
      screen.look();
      next = process::real_time_now() + static_cast<uint64_t>(options.delay) * kMillisecond;
      ended = process.wait_end(0);
    }
    if (ended) screen.say("the process has ended: this is its last state (q quits)");
    screen.draw(terminal);
    const uint64_t now = process::real_time_now();
    const int wait = ended        ? -1
                     : next > now ? static_cast<int>((next - now) / kMillisecond) + 1
                                  : 0;
    if (!screen.press(terminal.key(wait))) return;
  }
}

int run_top(const Arguments& arguments, const Streams& streams) {
  if (arguments.operands().size() != 1) throw UsageError(arguments.lacking("give one process"));
  const TopOptions options = top_options(arguments);
  const WatchedProcess target(arguments, streams);
  text::StackNames names(search_path(arguments), read_responsible(arguments));
  names.fold_runtimes();
  if (arguments.has("--json")) {
    print_json(target.ledger(), options, names, streams);
    return kGood;
  }
  if (!arguments.has("--batch") && !arguments.has("--once") && streams.terminal) {
    const util::Terminal terminal;
    if (terminal.valid()) {
      run_screen(target, options, names, terminal);
      return kGood;
    }
  }
  run_batch(target, options, names, streams);
  return kGood;
}

}  // namespace

const Command& top_command() {
  static const Command command = {
      {"top",
       "watch the stacks of a running process",
       "[OPTION]... PID|NAME",
       kTopHelp,
       {kTopOptions[0], kTopOptions[1], kTopOptions[2], kTopOptions[3], kTopOptions[4],
        kTopOptions[5], kTopOptions[6], kJsonOption, kRowsOption, kLibraryOption, kAttachOption,
        kOwnOption, kSysrootOption, kSymbolsOption},
       R"(0: done, also if the process ended; 1: the process does not exist, its ledger cannot be
       read, or memlog cannot attach to it; 2: wrong command line.)",
       R"(  memlog top app
  memlog top --by growth 4711
  memlog top --once --limit 5 4711
  memlog top --once --json 4711 | jq '.stacks[0].frames[0]'
)"},
      run_top};
  return command;
}

}  // namespace mtrace::cli
