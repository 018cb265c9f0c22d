// memlog heap: the live blocks of a running process by type.

#include "model/ledger/ledger_state.h"
#include "model/symbols/symbolizer.h"
#include "process/inspect/object_classes.h"
#include "surface/cli/command.h"
#include "surface/cli/report_options.h"
#include "surface/cli/tracing_options.h"
#include "util/text.h"
#include "view/analyze/function_name.h"
#include "view/json/views.h"
#include "view/text/stack_names.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

constexpr char kHeapHelp[] = R"(
Counts the live blocks of a running process by type, those with most bytes first:

  class      of the C++ object at a block's beginning, if that has a
             virtual table; also in a stripped program
  container  or else what the standard library's functions in the stack
             tell, as memlog show --group-by type: std::vector<int>
  function   of other blocks the responsible one: "in FUNCTION"

The process is not stopped. Allocations and frees during the count may be missing. Needs a ledger,
which memlog run makes the process keep. With --attach, memlog first attaches to a process that is
not traced, and counts only blocks allocated from then on.
)";

struct HeapRow {
  std::string type;
  bool untyped = false;  // it is kInFunction and a function
  uint64_t bytes = 0;
  uint64_t blocks = 0;

  void add(uint64_t size) {
    bytes += size;
    ++blocks;
  }
  void add(const HeapRow& more) {
    bytes += more.bytes;
    blocks += more.blocks;
  }
};

class HeapAnswer {
 public:
  HeapAnswer(const Arguments& arguments, const WatchedProcess& target)
      : file_(target.ledger()),
        where_(search_path(arguments)),
        names_(std::make_shared<symbols::Symbolizer>(where_), read_responsible(arguments),
               analyze::GroupBy::kType),
        limit_(static_cast<size_t>(arguments.number("--limit", 20, 0, 1000000000))) {
    std::map<uint32_t, HeapRow> others;  // without a class, by stack
    std::map<std::string, HeapRow> types;
    read_blocks(target.pid(), types, others);
    std::vector<const ledger::LedgerStackState*> stacks;
    for (const auto& [stack, row] : others) stacks.push_back(known_->find(stack));
    names_.learn(file_, known_->state(), stacks);
    for (const auto& [stack, row] : others) {
      const analyze::Group& group = names_.group(names_.group_of(*known_->find(stack)));
      HeapRow& type = types[group.name];
      type.add(row);
      type.untyped = group.untyped;
    }
    for (auto& [type, row] : types) {
      row.type = type;
      total_.add(row);
      rows_.push_back(std::move(row));
    }
    std::stable_sort(rows_.begin(), rows_.end(),
                     [](const HeapRow& a, const HeapRow& b) { return a.bytes > b.bytes; });
  }

  std::string text(const text::Style& style) const {
    const json::Value answer = json();
    std::string notes;
    if (file_.header().sampled != 0) {
      notes =
          text::remark("the process records a sample of its blocks: only these are counted", style);
    }
    return text::filled("{name} ({pid}): {bytes:,} live bytes in {blocks:block}\n\n", answer) +
           notes + text::missing_blocks(whole_, known_->state(), style) +
           text::table({{"bytes", "{bytes:,}"},
                        {"blocks", "{blocks:,}"},
                        {"type", "{type}[in {function}]"}},
                       *answer.find("types"), style) +
           text::hidden_text(rows_.size() - shown(), "type");
  }

  json::Value json() const {
    json::Value out = json::answer("heap", file_.header(), whole_);
    out["bytes"] = total_.bytes;
    out["blocks"] = total_.blocks;
    json::Value types = json::Value::array();
    for (size_t i = 0; i < shown(); ++i) {
      const HeapRow& row = rows_[i];
      const size_t at = row.untyped ? std::strlen(analyze::kInFunction) : 0;
      types.push_back({{row.untyped ? "function" : "type", json::plain(row.type.substr(at))},
                       {"bytes", row.bytes},
                       {"blocks", row.blocks}});
    }
    out["types"] = types;
    return out;
  }

 private:
  // The blocks first: then the ledger has all of their stacks.
  void read_blocks(pid_t pid, std::map<std::string, HeapRow>& types,
                   std::map<uint32_t, HeapRow>& others) {
    std::vector<ledger::LedgerBlock> blocks;
    file_.refresh();
    whole_ = ledger::each_block(file_,
                                [&](const ledger::LedgerBlock& block) { blocks.push_back(block); });
    std::sort(blocks.begin(), blocks.end(),
              [](const auto& a, const auto& b) { return a.address < b.address; });
    known_.emplace(file_);
    process::ObjectClasses classes(pid, where_);
    absl::flat_hash_map<std::string, HeapRow> found;
    for (const ledger::LedgerBlock& block : blocks) {
      const ledger::LedgerStackState* stack = known_->find(block.stack);
      if (stack == nullptr || stack->kind != 0) continue;  // 0: heap
      const std::string& name = classes.at(block.address, block.size);
      (name.empty() ? others[block.stack] : found[name]).add(block.size);
    }
    for (const auto& [name, row] : found) types[analyze::class_type(name)].add(row);
  }

  size_t shown() const { return limit_ == 0 ? rows_.size() : std::min(limit_, rows_.size()); }

  ledger::LedgerFile& file_;
  std::optional<ledger::KnownLedger> known_;
  bool whole_ = true;  // all blocks could be read
  symbols::SearchPath where_;
  text::StackNames names_;
  size_t limit_;
  std::vector<HeapRow> rows_;
  HeapRow total_;
};

int run_heap(const Arguments& arguments, const Streams& streams) {
  if (arguments.operands().size() != 1) throw UsageError(arguments.lacking("give one process"));
  const WatchedProcess target(arguments, streams);
  const HeapAnswer answer(arguments, target);
  print(streams, arguments.has("--json") ? json::text(answer.json())
                                         : answer.text(read_style(arguments, streams)));
  return kGood;
}

}  // namespace

const Command& heap_command() {
  static const Command command = {
      {"heap",
       "count the live blocks of a running process by type",
       "[OPTION]... PID|NAME",
       kHeapHelp,
       {{"--limit", "-n", "N", "Show N types; 0: all. Default 20."},
        kJsonOption,
        kColorOption,
        kLibraryOption,
        kOwnOption,
        kAttachOption,
        kSysrootOption,
        kSymbolsOption},
       R"(0: done; 1: the process does not exist, its ledger or its memory cannot be read, or memlog
       cannot attach to it; 2: wrong command line.)",
       R"(  memlog heap app
  memlog heap --json -n 0 4711 | jq '.types[] | select(.type == "app::Session")'
)"},
      run_heap};
  return command;
}

}  // namespace mtrace::cli
