// memlog map: what is in the memory of a running process, and whose blocks keep it there.

#include "format/memlog.h"
#include "model/heap/heap_pages.h"
#include "model/ledger/ledger_state.h"
#include "process/inspect/address_space.h"
#include "process/inspect/process.h"
#include "surface/cli/command.h"
#include "surface/cli/report_options.h"
#include "surface/cli/tracing_options.h"
#include "util/text.h"
#include "view/json/views.h"
#include "view/text/stack_names.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

constexpr char kMapHelp[] = R"(
Shows what is in the memory of a running process: its mappings by kind, the largest of them, and,
for the heaps of malloc, why they do not shrink.

  heap         malloc's first heap
  arena        malloc's further heaps, for threads
  large_block  blocks that malloc has mapped one by one
  stack        of threads
  data         variables of the program and its libraries
  file         code and other pages of files
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
    "heap", "arena",  "large_block", "stack",    "anonymous", "data",
    "file", "shared", "mtrace",      "reserved", "kernel"};

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

  void add(const process::SpaceRegion& region) {
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
  MapAnswer(const Arguments& arguments, const WatchedProcess& target,
            const process::AddressSpace& space)
      : bytes_(wants_bytes(arguments)),
        file_(target.ledger()),
        space_(space),
        known_(file_),
        names_(search_path(arguments), read_responsible(arguments)),
        limit_(static_cast<size_t>(arguments.number("--limit", 10, 0, 1000000000))) {
    now_ = process::ticks_now(file_.header());
    unknown_ = process::unknown_blocks(file_, known_.state(), space.has_all_blocks());
    for (const process::SpaceRegion& region : space.regions()) {
      total_.add(region);
      kinds_[static_cast<size_t>(region.kind)].add(region);
      if (region.is_heap()) heaps_.add(region);
    }
    if (space.other_allocator()) sizes_ = heap::pages_by_size(space.blocks(), space.heaps());
    order();
    learn_shown();
  }

  std::string text(const text::Style& style) const {
    const json::Value all = json();
    json::Value kinds = *all.find("kinds");
    json::Value total = {{"kind", "total"}};
    put(total, total_);
    kinds.push_back(total);
    return filled(
               "{name} ({pid}): {resident_bytes:KiB} KiB resident, {swapped_bytes:KiB} KiB "
               "swapped; sizes in KiB\n\n",
               all) +
           (unknown_.empty() ? "" : text::remark("some blocks are not known: " + unknown_, style)) +
           table({{"", "{kind}"},
                  {"regions", "{regions_count:,}"},
                  {"size", "{size_bytes:KiB}"},
                  {"resident", "{resident_bytes:KiB}"},
                  {"dirty", "{dirty_bytes:KiB}"},
                  {"swapped", "{swapped_bytes:KiB}"},
                  {"huge", "{huge_bytes:KiB}"}},
                 kinds, style) +
           heaps_text(*all.find("heap_pages")) + regions_text(style) +
           (space_.other_allocator() ? sizes_text(*all.find("size_classes"), style) : "") +
           pinned_text(all.find("pinning")->elements(), style) +
           (space_.other_allocator() ? "" : tops_text(all.find("heap_tops")->elements(), style));
  }

  json::Value json() const {
    json::Value out = json::answer("map", file_.header(), space_.has_all_blocks());
    json::put_text(out, "unknown_blocks", unknown_);
    put(out, total_);
    json::Value kinds = json::Value::array();
    for (const size_t kind : kind_order_) {
      json::Value one = {{"kind", kKindNames[kind]}};
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
      json::Value sizes = json::Value::array();
      for (const heap::PagesOfSize& one : first(sizes_)) {
        sizes.push_back({{"largest_bytes", one.largest},
                         {"blocks", one.blocks},
                         {"live_bytes", one.live},
                         {"pages", one.pages},
                         {"free_bytes", one.free()}});
      }
      out["size_classes"] = sizes;
      return out;
    }
    json::Value tops = json::Value::array();
    for (const process::HeapTop& top : first(space_.tops())) tops.push_back(top_json(top));
    out["heap_tops"] = tops;
    return out;
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
      const heap::StackPages& left = stacks.at(a);
      const heap::StackPages& right = stacks.at(b);
      if (left.alone != right.alone) return left.alone > right.alone;
      return left.share != right.share ? left.share > right.share : a < b;
    });
  }

  // Looks up the names of those that are known.
  void learn_shown() {
    std::vector<uint32_t> indexes = first(pinning_);
    for (const size_t i : first(regions_)) {
      if (const auto* mapper = mapper_of(space_.regions()[i])) indexes.push_back(mapper->index);
    }
    for (const process::HeapTop& top : first(space_.tops())) indexes.push_back(top.block.stack);
    std::vector<const ledger::LedgerStackState*> stacks;
    for (const uint32_t index : indexes) {
      const ledger::LedgerStackState* found = index == 0 ? nullptr : known_.find(index);
      if (found != nullptr) stacks.push_back(found);
    }
    names_.learn(file_, known_.state(), stacks);
  }

  template <typename T>
  std::vector<T> first(const std::vector<T>& all) const {
    const size_t shown = limit_ == 0 ? all.size() : std::min(limit_, all.size());
    return {all.begin(), all.begin() + static_cast<ptrdiff_t>(shown)};
  }
  template <typename T>
  std::string hidden(const std::vector<T>& all, const char* what) const {
    return text::hidden_text(all.size() - first(all).size(), what);
  }

  // The form, with --bytes in bytes.
  std::string in_unit(std::string form) const {
    for (const auto& [kib, bytes] : {std::pair(":KiB", ":,"), std::pair(" KiB", " bytes")}) {
      for (size_t at = 0; bytes_ && (at = form.find(kib, at)) != std::string::npos;) {
        form.replace(at, std::strlen(kib), bytes);
      }
    }
    return form;
  }
  std::string filled(const std::string& form, const json::Value& facts,
                     const text::Style& style = {}) const {
    return text::filled(in_unit(form), facts, style);
  }
  std::string table(std::vector<text::Column> columns, const json::Value& rows,
                    const text::Style& style) const {
    for (text::Column& column : columns) column.form = in_unit(column.form);
    return text::table(columns, rows, style);
  }

  // What malloc has of its heaps.
  std::string heaps_text(json::Value facts) const {
    if (heaps_.regions == 0) return {};
    put(facts, heaps_);
    facts["arena_bytes"] = space_.arenas().free * heap::kHeapPage;
    const std::string form =
        "\nheaps of malloc: {size_bytes:KiB} KiB, live {live_bytes:KiB} KiB in {live_blocks:block}";
    const char* const free =
        !unknown_.empty() ? "[{without_blocks:,} of them without a known block\n]"
        : space_.other_allocator()
            ? "[{without_blocks:,} of them without a live block: the most that the allocator can "
              "free. It\nis not glibc's, and keeps a slab or span while one of its blocks lives\n]"
            : "[{without_blocks:,} of them without a live block: malloc_trim(3) can free them\n]"
              "[{without_blocks_in_arenas:,} of these in {arenas:arena} of threads: fewer arenas "
              "(MALLOC_ARENA_MAX) save at most\n{arena_bytes:KiB} KiB; memlog replay measures how "
              "much\n]";
    return filled(
        (form + (unknown_.empty() ? ", free {free_bytes:KiB} KiB\n" : " that are known\n") +
         "resident pages of the heaps: {resident:,}; with blocks of one stack "
         "{of_one_stack:,}, of several {of_several_stacks:,}\n" +
         free),
        facts);
  }

  // nullptr: not known, or several.
  const ledger::LedgerStackState* mapper_of(const process::SpaceRegion& region) const {
    return region.mappers.size() == 1 ? known_.find(*region.mappers.begin()) : nullptr;
  }

  std::string regions_text(const text::Style& style) const {
    json::Value rows = json::Value::array();
    for (const size_t i : first(regions_)) {
      json::Value row = region_json(space_.regions()[i]);
      if (const auto* mapper = mapper_of(space_.regions()[i])) row["mapper"] = names_.line(*mapper);
      rows.push_back(row);
    }
    const std::string lines =
        table({{"resident", "{resident_bytes:KiB}"},
               {"size", "{size_bytes:KiB}"},
               {"largest regions", "{address}"},
               {"", "{kind}"},
               {"", "[{path}][mapped by {mapper}][mapped by {mapped_by.stacks_count:stack}]"}},
              rows, style);
    return '\n' + util::cut_lines(lines, style.columns) + hidden(regions_, "region");
  }

  std::string sizes_text(const json::Value& sizes, const text::Style& style) const {
    if (sizes_.empty()) return {};
    return '\n' +
           table({{"pages", "{pages:,}"},
                  {"free in them", "{free_bytes:KiB}"},
                  {"blocks", "{blocks:,}"},
                  {"live", "{live_bytes:KiB}"},
                  {"pages by size of their blocks", "up to {largest_bytes:,} bytes"}},
                 sizes, style) +
           hidden(sizes_, "size");
  }

  std::string pinned_text(const std::vector<json::Value>& stacks, const text::Style& style) const {
    if (stacks.empty()) return {};
    std::string out = "\nstacks whose blocks keep heap pages in memory:\n";
    for (size_t i = 0; i < stacks.size(); ++i) {
      out += text::coloured(filled("\n{pages_alone:page} alone", stacks[i]), text::kBold, style) +
             filled(
                 "[, {pages_share:.1} of {pages_common:page} in common]; "
                 "live {live_bytes:size} in {live_blocks:block}\n",
                 stacks[i], style) +
             names_.indented(*known_.find(pinning_[i]));
    }
    return out + hidden(pinning_, "stack");
  }

  std::string tops_text(const std::vector<json::Value>& tops, text::Style style) const {
    if (tops.empty()) return {};
    style.units = true;
    std::string out = "\nlast block of each heap:\n";
    for (size_t i = 0; i < tops.size(); ++i) {
      out += filled(
          "\n{heap}, {behind_bytes:KiB} KiB resident behind it, {gain_bytes:KiB} KiB "
          "more if it were freed\n"
          "    {block_bytes:,} bytes at {block}, {age_ms:time} old\n",
          tops[i], style);
      const auto* stack = known_.find(space_.tops()[i].block.stack);
      if (stack != nullptr) out += names_.indented(*stack);
    }
    return out + hidden(space_.tops(), "heap");
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

  json::Value region_json(const process::SpaceRegion& region) const {
    SpaceSum sum;
    sum.add(region);
    json::Value out = {{"address", fmt::format("0x{:x}", region.mapping.begin)},
                       {"kind", kKindNames[static_cast<size_t>(region.kind)]}};
    put(out, sum);
    out.erase("regions_count");
    json::put_text(out, "path", json::plain(region.mapping.path));
    if (const auto* mapper = mapper_of(region)) {
      names_.put(out["mapped_by"], *mapper);
    } else if (region.mappers.size() > 1) {
      out["mapped_by"] = {{"stacks_count", region.mappers.size()}};
    }
    return out;
  }

  json::Value pinning_json(uint32_t index) const {
    const heap::StackPages& pages = space_.pinned().stacks.at(index);
    const ledger::LedgerStackState& stack = *known_.find(index);
    json::Value out = {{"pages_alone", pages.alone},
                       {"pages_common", pages.common},
                       {"pages_share", pages.share},
                       {"live_bytes", stack.now.live_bytes()},
                       {"live_blocks", stack.now.live_blocks()}};
    names_.put(out, stack);
    return out;
  }

  json::Value top_json(const process::HeapTop& top) const {
    const uint64_t birth = ledger::unpack_ticks(top.block.birth);
    json::Value out = {{"heap", fmt::format("0x{:x}", space_.regions()[top.region].mapping.begin)},
                       {"block", fmt::format("0x{:x}", top.block.address)},
                       {"block_bytes", top.block.size},
                       {"age_ms", birth < now_ ? ledger::tick_milliseconds(now_ - birth) : 0},
                       {"behind_bytes", top.behind},
                       {"gain_bytes", top.gain}};
    if (const auto* stack = known_.find(top.block.stack)) names_.put(out, *stack);
    return out;
  }

  bool bytes_;  // figures in bytes, not in KiB
  ledger::LedgerFile& file_;
  const process::AddressSpace& space_;
  ledger::KnownLedger known_;
  text::StackNames names_;
  size_t limit_;
  std::string unknown_;  // process::unknown_blocks()
  uint64_t now_ = 0;     // ticks
  SpaceSum total_;
  SpaceSum heaps_;  // of malloc
  std::array<SpaceSum, process::kRegionKinds> kinds_;
  std::vector<size_t> kind_order_;  // those that there are, most resident first; so are the next
  std::vector<size_t> regions_;
  std::vector<heap::PagesOfSize> sizes_;  // of another allocator than glibc's
  std::vector<uint32_t> pinning_;         // stacks, those that pin most pages first
};

int run_map(const Arguments& arguments, const Streams& streams) {
  if (arguments.operands().size() != 1) throw UsageError("map: give one process");
  const WatchedProcess target(arguments, streams);
  const process::AddressSpace space(target.pid(), target.ledger());
  const MapAnswer answer(arguments, target, space);
  print(streams, arguments.has("--json") ? json::text(answer.json())
                                         : answer.text(read_style(arguments, streams)));
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
