// memlog map: what is in the memory of a running process, and whose blocks keep it there.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "format/memlog.h"
#include "model/ledger/ledger_state.h"
#include "process/inspect/clock.h"
#include "surface/cli/address_space.h"
#include "surface/cli/command.h"
#include "surface/cli/process_operands.h"
#include "surface/cli/report_options.h"
#include "util/columns.h"
#include "util/text.h"
#include "view/heap/heap_pages.h"
#include "view/json/stack.h"
#include "view/json/views.h"
#include "view/text/stack_names.h"
#include "view/text/style.h"
#include "view/text/views_text.h"

namespace mtrace::cli {
namespace {

using process::RegionKind;

constexpr char kMapHelp[] = R"(
Shows what is in the memory of a running process: its mappings by kind, the largest of them, and,
for the heaps of malloc, why they do not shrink.

  heap         malloc's first heap
  arenas       malloc's further heaps, for threads
  large blocks blocks that malloc has mapped one by one
  stacks       of threads
  data         variables of the program and its libraries
  files        code and other pages of files
  anonymous    mappings without a file, with their stacks if MTRACE_MMAP=1
  shared       shared memory
  mtrace       the ledger
  reserved     address space without access
  kernel       what the kernel maps (vdso)

malloc can give a page back to the system only when no live block lies on it. A page with blocks of
one stack only is pinned by that stack: if its blocks were elsewhere, the page would be free. Stacks
that pin most pages come first. A page with blocks of several stacks counts in part for each.
A heap of glibc is trimmed from its end, so the last block of each heap is shown, too. Of another
allocator's heap it is shown how full the pages are that hold blocks of one size only.

The process is not stopped. Needs a ledger, which memlog run makes the process keep. With --attach,
memlog first attaches to a process that is not traced, and knows only blocks allocated from then on.
)";

constexpr std::array<const char*, process::kRegionKinds> kKindNames = {
    "heap",  "arenas", "large blocks", "stacks",   "anonymous", "data",
    "files", "shared", "mtrace",       "reserved", "kernel"};
constexpr std::array<const char*, process::kRegionKinds> kKindKeys = {
    "heap", "arena",  "large_block", "stack",    "anonymous", "data",
    "file", "shared", "mtrace",      "reserved", "kernel"};

size_t place(RegionKind kind) { return static_cast<size_t>(kind); }

// Sums over regions, in bytes.
struct SpaceSum {
  uint64_t regions = 0;
  uint64_t size = 0;
  uint64_t resident = 0;
  uint64_t dirty = 0;
  uint64_t swapped = 0;
  uint64_t huge = 0;
  uint64_t live_bytes = 0;
  uint64_t live_blocks = 0;
  uint64_t free = 0;

  void add(const SpaceRegion& region) {
    ++regions;
    size += region.size();
    resident += region.mapping.resident;
    dirty += region.mapping.dirty;
    swapped += region.mapping.swapped;
    huge += region.mapping.huge;
    live_bytes += region.live_bytes;
    live_blocks += region.live_blocks;
    free += region.free();
  }
};

class MapAnswer {
 public:
  MapAnswer(const Arguments& arguments, const WatchedProcess& target, const AddressSpace& space)
      : unit_(wants_bytes(arguments) ? 1 : 1024),
        file_(target.ledger()),
        space_(space),
        known_(file_),
        names_(search_path(arguments), read_responsible("map", arguments)),
        limit_(static_cast<size_t>(arguments.number("--limit", 10, 0, 1000000000))) {
    now_ = process::ticks_now(file_.header());
    for (const SpaceRegion& region : space.regions()) {
      total_.add(region);
      kinds_[place(region.kind)].add(region);
    }
    if (space.other_allocator()) sizes_ = analyze::pages_by_size(space.blocks(), space.heaps());
    order();
    learn_shown();
  }

  std::string text(const text::Style& style) const {
    return fmt::format("{} ({}): {} resident, {} swapped; sizes in {}\n\n",
                       text::plain(util::array_text(file_.header().name)), file_.header().pid,
                       amount(total_.resident), amount(total_.swapped), unit()) +
           text::missing_blocks(space_.has_all_blocks(), known_.state(), style) + kinds_text() +
           heaps_text() + regions_text(style) + sizes_text() + pinned_text(style) +
           tops_text(style);
  }

  std::string json() const {
    json::Value out = json::answer("map");
    out["pid"] = file_.header().pid;
    out["name"] = json::plain(util::array_text(file_.header().name));
    if (!space_.has_all_blocks()) out["incomplete"] = true;
    put(out, total_);
    json::Value kinds = json::Value::array();
    for (const size_t kind : kind_order_) {
      json::Value one = {{"kind", kKindKeys[kind]}};
      put(one, kinds_[kind]);
      kinds.push_back(one);
    }
    out["kinds"] = kinds;
    out["heap_pages"] = {{"resident", space_.pinned().resident()},
                         {"of_one_stack", space_.pinned().alone},
                         {"of_several_stacks", space_.pinned().common},
                         {"without_blocks", space_.pinned().free},
                         {"without_blocks_in_arenas", space_.arenas().free},
                         {"arenas", space_.arenas().arenas}};
    json::Value regions = json::Value::array();
    for (const size_t i : first(regions_)) regions.push_back(region_json(space_.regions()[i]));
    out["regions"] = regions;
    json::Value pinning = json::Value::array();
    for (const uint32_t stack : first(pinning_)) pinning.push_back(pinning_json(stack));
    out["pinning"] = pinning;
    if (space_.other_allocator()) {
      out["other_allocator"] = true;  // its heaps have no top that can be trimmed
      out["size_classes"] = json::pages_by_size(sizes_, shown(sizes_.size()));
      return json::text(out);
    }
    json::Value tops = json::Value::array();
    for (size_t i = 0; i < shown(space_.tops().size()); ++i) tops.push_back(top_json(i));
    out["heap_tops"] = tops;
    return json::text(out);
  }

 private:
  void order() {
    for (size_t i = 0; i < kinds_.size(); ++i) {
      if (kinds_[i].regions != 0) kind_order_.push_back(i);
    }
    std::stable_sort(kind_order_.begin(), kind_order_.end(),
                     [&](size_t a, size_t b) { return kinds_[a].resident > kinds_[b].resident; });
    regions_.resize(space_.regions().size());
    std::iota(regions_.begin(), regions_.end(), size_t{0});
    std::stable_sort(regions_.begin(), regions_.end(), [&](size_t a, size_t b) {
      return space_.regions()[a].mapping.resident > space_.regions()[b].mapping.resident;
    });
    const auto& stacks = space_.pinned().stacks;
    for (const auto& [stack, pages] : stacks) {
      if (known_.find(stack) != nullptr) pinning_.push_back(stack);
    }
    std::sort(pinning_.begin(), pinning_.end(), [&](uint32_t a, uint32_t b) {
      const analyze::StackPages& left = stacks.at(a);
      const analyze::StackPages& right = stacks.at(b);
      if (left.alone != right.alone) return left.alone > right.alone;
      return left.share != right.share ? left.share > right.share : a < b;
    });
  }

  void learn_shown() {
    std::vector<uint32_t> stacks = first(pinning_);
    for (const size_t i : first(regions_)) {
      if (const auto* mapper = mapper_of(space_.regions()[i])) stacks.push_back(mapper->index);
    }
    for (const HeapTop& top : first(space_.tops())) stacks.push_back(top.block.stack);
    learn(stacks);
  }
  // Looks up the names of those that are known.
  void learn(const std::vector<uint32_t>& indexes) {
    std::vector<const ledger::LedgerStackState*> stacks;
    for (const uint32_t index : indexes) {
      const ledger::LedgerStackState* found = index == 0 ? nullptr : known_.find(index);
      if (found != nullptr) stacks.push_back(found);
    }
    names_.learn(file_, known_.state(), stacks);
  }

  const char* unit() const { return unit_ == 1 ? "bytes" : "KiB"; }
  std::string figure(uint64_t bytes) const { return util::grouped(bytes / unit_); }
  std::string amount(uint64_t bytes) const { return figure(bytes) + ' ' + unit(); }
  size_t shown(size_t all) const { return limit_ == 0 ? all : std::min(limit_, all); }
  template <typename T>
  std::vector<T> first(const std::vector<T>& all) const {
    return {all.begin(), all.begin() + static_cast<ptrdiff_t>(shown(all.size()))};
  }
  std::string more(size_t all, const char* what) const {
    if (shown(all) == all) return {};
    return fmt::format("\n{} more: --limit 0 shows them\n", text::count_text(all - limit_, what));
  }

  std::string kinds_text() const {
    const auto row = [this](const char* name, const SpaceSum& sum) {
      return fmt::format("{:<13} {:>7} {:>13} {:>11} {:>11} {:>9} {:>9}\n", name,
                         util::grouped(sum.regions), figure(sum.size), figure(sum.resident),
                         figure(sum.dirty), figure(sum.swapped), figure(sum.huge));
    };
    std::string out = fmt::format("{:<13} {:>7} {:>13} {:>11} {:>11} {:>9} {:>9}\n", "", "regions",
                                  "size", "resident", "dirty", "swapped", "huge");
    for (const size_t kind : kind_order_) out += row(kKindNames[kind], kinds_[kind]);
    return out + row("total", total_);
  }

  // What malloc has of its heaps.
  std::string heaps_text() const {
    SpaceSum heaps = kinds_[place(RegionKind::kHeap)];
    const SpaceSum& arenas = kinds_[place(RegionKind::kArena)];
    if (heaps.regions + arenas.regions == 0) return {};
    std::string out =
        fmt::format("\nheaps of malloc: {}, live {} in {}, free {}\n",
                    amount(heaps.size + arenas.size), amount(heaps.live_bytes + arenas.live_bytes),
                    text::count_text(heaps.live_blocks + arenas.live_blocks, "block"),
                    amount(heaps.free + arenas.free));
    const analyze::PinnedPages& pages = space_.pinned();
    out += fmt::format(
        "resident pages of the heaps: {}; with blocks of one stack {}, of several {}\n",
        util::grouped(pages.resident()), util::grouped(pages.alone), util::grouped(pages.common));
    if (pages.free == 0) return out;
    if (space_.other_allocator()) {
      return out + fmt::format(
                       "{} of them without a live block: the most that the allocator can free. It\n"
                       "is not glibc's, and keeps a slab or span while one of its blocks lives\n",
                       util::grouped(pages.free));
    }
    out += fmt::format("{} of them without a live block: malloc_trim(3) can free them\n",
                       util::grouped(pages.free));
    const ThreadArenas& thread_arenas = space_.arenas();
    if (thread_arenas.free == 0) return out;
    return out + fmt::format(
                     "{} of these in {} of threads: fewer arenas (MALLOC_ARENA_MAX) save at most\n"
                     "{}; memlog replay measures how much\n",
                     util::grouped(thread_arenas.free),
                     text::count_text(thread_arenas.arenas, "arena"),
                     amount(thread_arenas.free * analyze::kHeapPage));
  }

  std::string what_of(const SpaceRegion& region) const {
    if (!region.mapping.path.empty()) return text::plain(region.mapping.path);
    if (const auto* mapper = mapper_of(region)) return "mapped by " + names_.line(*mapper);
    if (region.mappers.size() <= 1) return {};
    return "mapped by " + text::count_text(region.mappers.size(), "stack");
  }
  // nullptr: not known, or several.
  const ledger::LedgerStackState* mapper_of(const SpaceRegion& region) const {
    return region.mappers.size() == 1 ? known_.find(*region.mappers.begin()) : nullptr;
  }

  std::string regions_text(const text::Style& style) const {
    std::string out = fmt::format("\n{:>11} {:>13}  largest regions\n", "resident", "size");
    for (const size_t i : first(regions_)) {
      const SpaceRegion& region = space_.regions()[i];
      std::string line = fmt::format(
          "{:>11} {:>13}  {:x} {:<12} {}", figure(region.mapping.resident), figure(region.size()),
          region.mapping.begin, kKindNames[place(region.kind)], what_of(region));
      line.erase(line.find_last_not_of(' ') + 1);
      out += util::cut_lines(line, style.columns) + '\n';
    }
    return out + more(regions_.size(), "region");
  }

  std::string sizes_text() const {
    if (sizes_.empty()) return {};
    return text::pages_by_size_text(sizes_, shown(sizes_.size()), unit_) +
           more(sizes_.size(), "size");
  }

  std::string pinned_text(const text::Style& style) const {
    if (pinning_.empty()) return {};
    std::string out = "\nstacks whose blocks keep heap pages in memory:\n";
    for (const uint32_t index : first(pinning_)) {
      const analyze::StackPages& pages = space_.pinned().stacks.at(index);
      const ledger::LedgerStackState& stack = *known_.find(index);
      out += text::coloured(fmt::format("\n{} alone", text::count_text(pages.alone, "page")),
                            text::kBold, style);
      if (pages.common != 0) {
        out += fmt::format(", {:.1f} of {} in common", pages.share,
                           text::count_text(pages.common, "page"));
      }
      out +=
          fmt::format("; live {} in {}\n", text::bytes_text(stack.now.live_bytes(), style, false),
                      text::count_text(static_cast<uint64_t>(stack.now.live_blocks()), "block"));
      for (const std::string& frame : names_.frames(stack)) out += "    " + frame + '\n';
    }
    return out + more(pinning_.size(), "stack");
  }

  uint64_t age(const HeapTop& top) const {
    const uint64_t birth = ledger::unpack_ticks(top.block.birth);
    return birth < now_ ? ledger::tick_milliseconds(now_ - birth) : 0;
  }

  std::string tops_text(const text::Style& style) const {
    if (space_.tops().empty() || space_.other_allocator()) return {};
    text::Style units = style;
    units.units = true;
    std::string out = "\nlast block of each heap:\n";
    for (const HeapTop& top : first(space_.tops())) {
      const auto* stack = known_.find(top.block.stack);
      out += fmt::format("\n{:x}, {} resident behind it, {} more if it were freed\n",
                         space_.regions()[top.region].mapping.begin, amount(top.behind),
                         amount(top.gain));
      out += fmt::format("    {} bytes at 0x{:x}, {} old\n", util::grouped(top.block.size),
                         top.block.address, text::duration_text(age(top), units));
      if (stack == nullptr) continue;
      for (const std::string& frame : names_.frames(*stack)) out += "    " + frame + '\n';
    }
    return out + more(space_.tops().size(), "heap");
  }

  static void put(json::Value& out, const SpaceSum& sum) {
    out["regions_count"] = sum.regions;
    out["size_bytes"] = sum.size;
    out["resident_bytes"] = sum.resident;
    out["dirty_bytes"] = sum.dirty;
    out["swapped_bytes"] = sum.swapped;
    out["huge_bytes"] = sum.huge;
    out["live_bytes"] = sum.live_bytes;
    out["live_blocks"] = sum.live_blocks;
    out["free_bytes"] = sum.free;
  }

  json::Value region_json(const SpaceRegion& region) const {
    SpaceSum sum;
    sum.add(region);
    json::Value out = {{"address", fmt::format("0x{:x}", region.mapping.begin)},
                       {"kind", kKindKeys[place(region.kind)]}};
    put(out, sum);
    out.erase("regions_count");
    json::put_text(out, "path", json::plain(region.mapping.path));
    if (const auto* mapper = mapper_of(region)) {
      json::Value stack = json::Value::object();
      names_.put(stack, *mapper);
      out["mapped_by"] = stack;
    } else if (region.mappers.size() > 1) {
      out["mapped_by"] = {{"stacks_count", region.mappers.size()}};
    }
    return out;
  }

  json::Value pinning_json(uint32_t index) const {
    const analyze::StackPages& pages = space_.pinned().stacks.at(index);
    const ledger::LedgerStackState& stack = *known_.find(index);
    json::Value out = {{"pages_alone", pages.alone},
                       {"pages_common", pages.common},
                       {"pages_share", pages.share},
                       {"live_bytes", stack.now.live_bytes()},
                       {"live_blocks", stack.now.live_blocks()}};
    names_.put(out, stack);
    return out;
  }

  json::Value top_json(size_t number) const {
    const HeapTop& top = space_.tops()[number];
    json::Value out = {{"heap", fmt::format("0x{:x}", space_.regions()[top.region].mapping.begin)},
                       {"block", fmt::format("0x{:x}", top.block.address)},
                       {"block_bytes", top.block.size},
                       {"age_ms", age(top)},
                       {"behind_bytes", top.behind},
                       {"gain_bytes", top.gain}};
    if (const auto* stack = known_.find(top.block.stack)) names_.put(out, *stack);
    return out;
  }

  uint64_t unit_;  // the bytes that a figure counts
  ledger::LedgerFile& file_;
  const AddressSpace& space_;
  ledger::KnownLedger known_;
  text::StackNames names_;
  size_t limit_;
  uint64_t now_ = 0;  // ticks
  SpaceSum total_;
  std::array<SpaceSum, process::kRegionKinds> kinds_;
  std::vector<size_t> kind_order_;  // those that there are, most resident first; so are the next
  std::vector<size_t> regions_;
  std::vector<analyze::PagesOfSize> sizes_;  // of another allocator than glibc's
  std::vector<uint32_t> pinning_;            // stacks, those that pin most pages first
};

int run_map(const Arguments& arguments, const Streams& streams) {
  if (arguments.operands().size() != 1) throw UsageError("map: give one process");
  const WatchedProcess target(arguments, streams);
  const AddressSpace space(target.pid(), target.ledger());
  const MapAnswer answer(arguments, target, space);
  print(streams,
        arguments.has("--json") ? answer.json() : answer.text(read_style(arguments, streams)));
  return kGood;
}

}  // namespace

const Command& map_command() {
  static const Command command = {
      {"map",
       "show the memory of a process",
       "[OPTION]... PID|NAME",
       kMapHelp,
       {{"--limit", "-n", "N", "Show N regions, stacks and heaps; 0: all. Default 10."},
        kJsonOption,
        kBytesOption,
        kColorOption,
        kLibraryOption,
        kOwnOption,
        kAttachOption,
        kSysrootOption,
        kSymbolsOption},
       R"(0: shown; 1: the process does not exist, has no readable ledger, or memlog may not read its
       memory; 2: wrong command line.)",
       R"(  memlog map app
  memlog map -n 3 app
  memlog map --json 4711 | jq .heap_pages
)"},
      run_map};
  return command;
}

}  // namespace mtrace::cli
