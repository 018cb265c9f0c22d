#include "model/ledger/ledger_memlog.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/calls.h"
#include "format/escape.h"
#include "format/mapping_form.h"
#include "format/memlog.h"
#include "format/python.h"
#include "model/ledger/ledger_state.h"
#include "model/profile/writer.h"
#include "util/text.h"

namespace mtrace::ledger {
namespace {

using format::LedgerHeader;

constexpr uint64_t kSecond = 1'000'000'000;

profile::Module module_of(const LedgerModuleState& known) {
  profile::Module module;
  module.path = known.path.empty() ? "?" : known.path;
  module.generation = std::max(known.entry.generation, 1u);
  module.build_id.assign(reinterpret_cast<const char*>(known.entry.build_id),
                         known.entry.build_id_size);
  module.base = known.entry.base;
  module.described = true;
  return module;
}

struct Listed {
  const LedgerRow* row;
  uint64_t id;
  profile::StackIds::Rests rests;  // none: its frames stand for themselves
};

class LedgerReport {
 public:
  LedgerReport(const LedgerFile& file, const LedgerState& state, const LedgerOccasion& occasion)
      : file_(file),
        header_(file.header()),
        state_(state),
        occasion_(occasion),
        sum_(sum_up(file, state, occasion.taken)),
        memlog_(file.name()) {
    now_ = occasion.taken > header_.tick_zero ? ticks_in(occasion.taken - header_.tick_zero) : 0;
    LedgerModules modules(state);
    for (const LedgerRow& row : sum_.rows) {
      profile::StackIds ids = modules.stack_ids(*row.stack);
      entries_.push_back({&row, ids.value(), {}});
      // What the addresses of a retired stack meant is its own matter, and so is where one was cut.
      if (row.stack->retired != format::kLedgerAlive || row.stack->cut) continue;
      entries_.back().rests = ids.take_rests();
      memlog_.expect(entries_.back().rests);
    }
    std::sort(entries_.begin(), entries_.end(), [](const Listed& a, const Listed& b) {
      if (a.row->stack->kind != b.row->stack->kind) return a.row->stack->kind < b.row->stack->kind;
      const int64_t left = a.row->change.live_bytes();
      const int64_t right = b.row->change.live_bytes();
      return left != right ? left > right : a.id < b.id;
    });
  }

  profile::Memlog make() {
    put_head();
    LedgerFrames frames(state_, memlog_.modules());
    for (const Listed& entry : entries_) put_entry(entry, frames.of(*entry.row->stack));
    put_end();
    return memlog_.finish();
  }

 private:
  void put_head() {
    const std::string program = util::array_text(header_.program);
    memlog_.meta(format::kKeyProgram, "{}", util::escaped(program.empty() ? "?" : program, ""));
    put_command();
    memlog_.meta(format::kKeyPid, "{}", std::clamp<uint32_t>(header_.pid, 1, INT32_MAX));
    if (header_.parent != 0) {
      memlog_.meta(format::kKeyParent, "{}", std::min<uint32_t>(header_.parent, INT32_MAX));
    }
    memlog_.meta(format::kKeySeq, "{}", std::max(header_.seq + 1, 1u));
    memlog_.meta(format::kKeyTrigger, "{}", occasion_.trigger);
    if (!occasion_.label.empty()) {
      memlog_.meta(format::kKeyLabel, "{}", util::escaped(occasion_.label, ""));
    }
    memlog_.meta(format::kKeyStarted, "{}", util::time_text(header_.started));
    memlog_.meta(format::kKeyTaken, "{}", util::time_text(occasion_.taken));
    if (header_.sampled != 0) memlog_.meta(format::kKeySampled, "{} bytes", header_.sampled);
    memlog_.meta(format::kKeyDelta, "{:+} bytes {:+} blocks", sum_.change.live_bytes(),
                 sum_.change.live_blocks());
    memlog_.meta(format::kKeyLive, "{} bytes {} blocks", sum_.total.live_bytes(),
                 sum_.total.live_blocks());
    memlog_.meta(format::kKeyUsable, "{} bytes",
                 static_cast<uint64_t>(sum_.total.live_bytes()) + sum_.slack);
    memlog_.meta(format::kKeyPeak, "{} bytes {}", sum_.peak, util::time_text(sum_.peak_when));
    if (sum_.peak_error != 0) memlog_.meta(format::kKeyPeakError, "{} bytes", sum_.peak_error);
    memlog_.meta(format::kKeyAllocated, "{} bytes {} blocks", sum_.total.allocated_bytes,
                 sum_.total.allocated_blocks);
    memlog_.meta(format::kKeyFreed, "{} bytes {} blocks", sum_.total.freed_bytes,
                 sum_.total.freed_blocks);
    put_lost();
    if (header_.recording == 0) memlog_.meta(format::kKeyRecording, "stopped");
    put_notes();
  }

  void put_command() {
    const std::string command = file_.command();
    if (!command.empty() && util::is_printable(command, false)) {
      memlog_.meta(format::kKeyCommand, "{}", command);  // escaped by the library
    }
  }

  void put_lost() {
    std::string more;
    for (const auto& [name, lost] : {std::pair{"frees", state_.lost_frees},
                                     {"modules", header_.lost_modules},
                                     {"notes", header_.lost_notes},
                                     {"resources", header_.lost_resources},
                                     {"regions", header_.lost_regions},
                                     {"python", header_.lost_python}}) {
      if (lost != 0) more += fmt::format(" {}={}", name, lost);
    }
    memlog_.meta(format::kKeyLost, "frames={} stacks={} blocks={} inflight={}{}",
                 state_.lost_frames, state_.lost_stacks, state_.lost_blocks, state_.lost_inflight,
                 more);
  }

  void put_notes() {
    if (header_.cost.full_since != 0) {
      memlog_.meta(format::kKeyNote,
                   "new blocks are lost since {}, when the tables had reached MTRACE_MAX_MEMORY",
                   util::time_text(header_.cost.full_since));
    }
    for (const LedgerNoteText& note : read_notes(file_)) {
      memlog_.meta(format::kKeyNote, "{} {}", util::time_text(note.time),
                   util::escaped(note.text, ""));
    }
    if (const std::string gap = python_gap(file_, state_); !gap.empty()) {
      memlog_.meta(format::kKeyNote, "{}", gap);
    }
    for (const std::string& note : occasion_.notes) {
      memlog_.meta(format::kKeyNote, "{}", util::escaped(note, ""));
    }
    if (!sum_.based) {
      memlog_.meta(format::kKeyNote,
                   "report {} was being published: changes are since the start, not since a report",
                   header_.reporting);
    }
    if (header_.missing != 0) {
      memlog_.meta(format::kKeyNote,
                   "the ledger lacks {} bytes of the tables: its file had no room",
                   header_.missing);
    }
    if (state_.unread != 0 || !sum_.whole) {
      memlog_.meta(format::kKeyNote, "parts of the ledger cannot be read: {} stacks and modules{}",
                   state_.unread, sum_.whole ? "" : ", and live blocks");
    }
  }

  void put_entry(const Listed& listed, profile::Frames::List frames) {
    const LedgerStackState& stack = *listed.row->stack;
    const LedgerCounts& change = listed.row->change;
    const bool heap = stack.kind == 0;
    profile::Entry entry;
    if (!heap) entry.kind = ledger_kind(header_, stack.kind);
    entry.bytes = change.live_bytes();
    entry.blocks = change.live_blocks();
    entry.live = static_cast<uint64_t>(stack.now.live_bytes());
    entry.activity = {.allocations = change.allocated_blocks,
                      .allocated_bytes = change.allocated_bytes,
                      .frees = change.freed_blocks,
                      .freed_bytes = change.freed_bytes,
                      .temporary = std::min(change.temporary, change.freed_blocks),
                      .short_lived = std::min(change.short_lived, change.freed_blocks),
                      .lifetime = lifetime_of(stack, change)};
    const auto oldest = sum_.oldest.find(stack.index);
    if (heap && oldest != sum_.oldest.end() && oldest->second < now_) {
      entry.age = tick_milliseconds(now_ - oldest->second);
    }
    entry.slack = stack.slack;
    if (heap) entry.peak = listed.row->share;
    if (const char* call = format::call_name(stack.call)) entry.call = profile::Name(call);
    entry.stack = listed.id;
    entry.cut = stack.cut;
    std::string further = mapping_form(stack.mapping_form);
    if (entry.kind == format::kKindFailed && entry.live == format::kMostFailed) {
      further = fmt::format("\t{}=1{}", format::kFieldSaturated, further);
    }
    memlog_.add(std::move(entry), std::move(frames), listed.rests, further);
  }

  static std::string mapping_form(uint32_t form) {
    if (form == 0) return "";
    std::vector<std::string> flags;
    const uint32_t rest =
        format::each_mapping_flag(form, [&](const char* name) { flags.emplace_back(name); });
    if (rest != 0) flags.push_back(fmt::format("0x{:x}", rest));
    return fmt::format("\t{}={}\t{}={}", format::kFieldProtection,
                       format::MappingProtection(form).text, format::kFieldFlags,
                       fmt::join(flags, ","));
  }

  static profile::Lifetime lifetime_of(const LedgerStackState& stack, const LedgerCounts& change) {
    constexpr uint32_t kMost = (1u << 27) - 1;
    if (change.freed_blocks == 0 || stack.longest == 0 || stack.shortest == 0) return {};
    if (stack.shortest > kMost + 1 || stack.longest > kMost + 1) return {};
    const uint64_t shortest = unpack_ticks(kMost + 1 - stack.shortest);
    const uint64_t longest = unpack_ticks(stack.longest - 1);
    if (shortest > longest) return {};
    const uint64_t mean = std::clamp(change.lifetime / change.freed_blocks, shortest, longest);
    return {tick_milliseconds(shortest), tick_milliseconds(mean), tick_milliseconds(longest)};
  }

  void put_end() {
    for (unsigned i = 0; i < format::kLedgerKinds; ++i) {
      const std::string name = ledger_kind(header_, static_cast<uint8_t>(i + 1));
      if (name.empty()) break;
      memlog_.meta(format::kKeyKind, "{} {} bytes {} blocks", name, sum_.kinds[i].live_bytes(),
                   sum_.kinds[i].live_blocks());
    }
    memlog_.describe_modules();
    const std::string node = util::array_text(header_.node);
    const std::string boot = util::array_text(header_.boot_id);
    memlog_.meta(format::kKeyHost, "{}{}{} arch={}", util::escaped(node.empty() ? "?" : node, " "),
                 boot.empty() ? "" : " boot-id=", util::escaped(boot, " "),
                 format::processor_name(header_.machine));
    put_calls();
    memlog_.meta(format::kKeyReports, "written={} failed={}", header_.seq, header_.failures);
    if (occasion_.rss != 0) {
      memlog_.meta(format::kKeyRss, "{} bytes", occasion_.rss);
      memlog_.meta(format::kKeyRssMax, "{} bytes", occasion_.rss_max);
      memlog_.meta(format::kKeyVirtual, "{} bytes", occasion_.virtual_size);
    }
    put_cost();
    memlog_.meta(format::kKeyResolved, "no");
    const std::string library = util::array_text(header_.library);
    memlog_.meta(format::kKeyLibrary, "mtrace {} {}", MTRACE_VERSION, util::escaped(library, ""));
  }

  void put_cost() {
    const bool sampled = header_.sampled != 0;
    const TracingCost cost = tracing_cost(header_.cost, counted_calls(state_), sampled);
    memlog_.meta(format::kKeyCost, "memory={} shadow={} stopped-us={}{}", cost.memory, cost.shadow,
                 cost.stopped / 1000,
                 sampled ? "" : fmt::format(" processor-ms={}", cost.processor / 1'000'000));
  }

  void put_calls() {
    if (header_.sampled != 0) return;
    std::string calls;
    for (unsigned call = 0; call < format::kLedgerCalls; ++call) {
      if (state_.calls[call] != 0)
        calls += fmt::format(" {}={}", format::kCallNames[call], state_.calls[call]);
    }
    if (!calls.empty()) memlog_.meta(format::kKeyCalls, "{}", calls.substr(1));
    memlog_.meta(format::kKeyFailed, "{}", state_.failed_allocations);
    memlog_.meta(format::kKeyUnknownFrees, "{}", state_.unknown_frees);
  }

  const LedgerFile& file_;
  const LedgerHeader& header_;
  const LedgerState& state_;
  const LedgerOccasion& occasion_;
  LedgerSummary sum_;
  profile::Builder memlog_;
  std::vector<Listed> entries_;
  uint64_t now_ = 0;  // ticks
};

}  // namespace

profile::Frames::List LedgerFrames::of(const LedgerStackState& stack) {
  profile::Frames::List frames;
  frames.reserve(stack.frames.size());
  for (const uint64_t address : stack.frames) {
    profile::Frame frame;
    if (format::PythonFrame::is_one(address)) {
      frame = python(address);
    } else if (const size_t module = modules_.find(address, stack.retired);
               module == LedgerModules::kNone) {
      frame.offset = address;
    } else {
      const auto [number, fresh] = numbers_.try_emplace(module);
      if (fresh) number->second = table_.add(module_of(state_.modules[module]));
      frame.place = profile::Place::kModule;
      frame.module = number->second;
      frame.offset = address - state_.modules[module].entry.base;
    }
    frame.guessed = stack.guessed != 0 && frames.size() == stack.guessed;
    frames.push_back(std::move(frame));
  }
  return frames;
}

// Where an object is called the same as a source file, the file is a generation of its own.
profile::Frame LedgerFrames::python(uint64_t frame) {
  const PythonFrameText python = python_frame(state_, frame);
  profile::Frame named;
  named.function = profile::Name(python.function);
  named.source = profile::Name(python.source);
  named.offset = python.offset;
  if (python.module.empty()) return named;
  const auto [number, fresh] = python_files_.try_emplace(python.module);
  if (fresh) {
    const bool is_twin = std::any_of(state_.modules.begin(), state_.modules.end(),
                                     [&](const auto& one) { return one.path == python.module; });
    number->second = table_.add({.path = python.module,
                                 .generation = is_twin ? format::kPythonGeneration : 1,
                                 .build_id = {},
                                 .base = 0,
                                 .described = true,
                                 .python = true});
  }
  named.place = profile::Place::kModule;
  named.module = number->second;
  return named;
}

LastSign last_sign_of_life(const LedgerFile& file, const LedgerState& state) {
  uint64_t ticks = state.peak_when;
  each_block(file, [&](const LedgerBlock& block) { ticks = std::max(ticks, block.birth); });
  const format::LedgerHeader& header = file.header();
  const uint64_t latest = std::max(header.started, header.tick_zero + tick_nanoseconds(ticks));
  struct statx info = {};
  if (::statx(file.descriptor(), "", AT_EMPTY_PATH, STATX_MTIME | STATX_BTIME, &info) != 0) {
    return {latest, false};
  }
  const auto time = [](const statx_timestamp& one) {
    return static_cast<uint64_t>(one.tv_sec) * kSecond + one.tv_nsec;
  };
  const uint64_t written = time(info.stx_mtime);
  // The process made its file before the first block. cp -p leaves a copy the date of the original.
  const bool is_copy = (info.stx_mask & STATX_BTIME) != 0 && written >= time(info.stx_btime) &&
                       time(info.stx_btime) > latest + kSecond;
  return {is_copy ? latest : std::max(latest, written), is_copy};
}

profile::Memlog ledger_memlog(const LedgerFile& file, const LedgerState& state,
                              const LedgerOccasion& occasion) {
  return LedgerReport(file, state, occasion).make();
}

namespace {

void look_at_blocks(const LedgerFile& file, LedgerSummary& sum) {
  sum.whole = each_block(file, [&](const LedgerBlock& block) {
    uint64_t& oldest = sum.oldest.try_emplace(block.stack, UINT64_MAX).first->second;
    oldest = std::min(oldest, block.birth);
  });
}

// Computes the peak as report/snapshot.cc does.
void settle_peak(const LedgerFile& file, const LedgerState& state, uint64_t now,
                 LedgerSummary& sum) {
  const format::LedgerHeader& header = file.header();
  sum.peak_when = header.tick_zero + tick_nanoseconds(state.peak_when);
  if (sum.total.live_bytes() > static_cast<int64_t>(sum.peak)) {
    sum.peak = static_cast<uint64_t>(sum.total.live_bytes());
    sum.peak_when = now;
    for (LedgerRow& row : sum.rows) {
      if (row.stack->kind == 0) row.share = static_cast<uint64_t>(row.stack->now.live_bytes());
    }
  }
  sum.peak_when = std::clamp(sum.peak_when, std::min(header.started, now), now);
  if (!state.several_threads) return;
  const uint64_t apart = state.peak > sum.peak ? state.peak - sum.peak : sum.peak - state.peak;
  sum.peak_error = apart + state.kept;
}

}  // namespace

std::string ledger_kind(const format::LedgerHeader& header, uint8_t kind) {
  const std::string name = util::array_text(header.kinds[kind - 1]);
  return util::is_kind(name) ? name : "";
}

LedgerSummary sum_up(const LedgerFile& file, const LedgerState& state, uint64_t now) {
  LedgerSummary sum;
  look_at_blocks(file, sum);
  // If the process was killed while publishing a report, it is unknown what that report contains.
  sum.based = file.header().reporting == 0;
  for (const LedgerStackState& stack : state.stacks) {
    const LedgerCounts change = sum.based ? stack.now - stack.reported : stack.now;
    if (stack.kind == 0) {
      sum.total += stack.now;
      sum.slack += stack.slack;
      sum.change += change;
      sum.peak += stack.share;
    } else {
      sum.kinds[stack.kind - 1] += stack.now;
      if (ledger_kind(file.header(), stack.kind).empty()) continue;
    }
    const bool net = change.live_bytes() != 0 || change.live_blocks() != 0;
    const bool holds = stack.now.live_bytes() != 0 || stack.now.live_blocks() != 0;
    const bool active = change.allocated_blocks != 0 || change.freed_blocks != 0;
    if (net || holds || active || (stack.kind == 0 && stack.share != 0)) {
      sum.rows.push_back({&stack, change, stack.share});
    }
  }
  settle_peak(file, state, now, sum);
  return sum;
}
namespace {

// As in ledger_memlog.cc: the first are malloc and its kin, with new; then come free and delete.
constexpr unsigned kAllocationCalls = 11;

}  // namespace

std::optional<LedgerTotals> read_totals(const LedgerFile& file) {
  const format::LedgerRoots& roots = file.header().roots;
  LedgerTotals totals;
  uint32_t used = 0;
  if (::pread(file.descriptor(), &totals.state, sizeof totals.state,
              offsetof(format::LedgerHeader, state)) != sizeof totals.state ||
      !file.read(roots.threads_used, used)) {
    return std::nullopt;
  }
  used = std::clamp(used, 1u, format::kLedgerThreads - 1);
  std::vector<format::LedgerThread> threads(used + size_t{1});
  if (!file.read(roots.threads, threads.data(), threads.size() * sizeof threads[0])) {
    return std::nullopt;
  }
  for (const format::LedgerThread& thread : threads) {
    totals.live_bytes += thread.live_bytes;
    totals.live_blocks += thread.live_blocks;
    for (unsigned call = 0; call < kAllocationCalls; ++call) {
      totals.allocations += thread.calls[call];
    }
    totals.calls = std::accumulate(std::begin(thread.calls), std::end(thread.calls), totals.calls);
  }
  // Between the looks at two threads a block may have moved from one to the other.
  if (static_cast<int64_t>(totals.live_bytes) < 0) totals.live_bytes = 0;
  if (static_cast<int64_t>(totals.live_blocks) < 0) totals.live_blocks = 0;
  return totals;
}

namespace {

constexpr double kNanoseconds = 1e9;

}  // namespace

double quantity(const WatchRow& row, WatchOrder order) {
  switch (order) {
    case WatchOrder::kLive:
      return static_cast<double>(row.live);
    case WatchOrder::kGrowth:
      return row.growth;
    case WatchOrder::kAllocations:
      return row.allocations;
    case WatchOrder::kPeak:
      return static_cast<double>(row.peak);
  }
  return 0;
}

void Watch::look(LedgerFile& file, uint64_t now) {
  const bool first = now_ == 0;
  before_.clear();
  for (const LedgerStackState& stack : state_.stacks) before_[stack.ordinal] = stack.now;
  file.refresh();
  state_ = read_ledger(file);
  number_ = kind_.empty() ? 0 : -1;
  kinds_.clear();
  for (const LedgerStackState& stack : state_.stacks) {
    const std::string name = stack.kind == 0 ? "" : ledger_kind(file.header(), stack.kind);
    if (name.empty()) continue;
    kinds_[name] += stack.now;
    if (name == kind_) number_ = stack.kind;
  }
  const uint64_t since = first ? file.header().started : now_;
  constexpr double kLeast = 0.001;
  seconds_ =
      now > since ? std::max(static_cast<double>(now - since) / kNanoseconds, kLeast) : kLeast;
  now_ = now;
}

void Watch::mark(bool on) {
  mark_.clear();
  marked_ = on ? now_ : 0;
  if (!on) return;
  for (const LedgerStackState& stack : state_.stacks) mark_[stack.ordinal] = stack.now;
}

WatchRow Watch::row(const LedgerStackState& stack) const {
  const auto of = [&](const Counts& counts) {
    const auto found = counts.find(stack.ordinal);
    return found == counts.end() ? LedgerCounts{} : found->second;
  };
  const LedgerCounts base = of(mark_);
  const LedgerCounts change = stack.now - of(before_);
  return {.stack = &stack,
          .live = stack.now.live_bytes() - base.live_bytes(),
          .blocks = stack.now.live_blocks() - base.live_blocks(),
          .growth = static_cast<double>(change.live_bytes()) / seconds_,
          .allocations = static_cast<double>(change.allocated_blocks) / seconds_,
          .peak = stack.share};
}

std::vector<WatchRow> Watch::rows(WatchOrder order) const {
  std::vector<WatchRow> rows;
  for (const LedgerStackState& stack : state_.stacks) {
    if (!watches(stack)) continue;
    const WatchRow one = row(stack);
    const bool idle = one.live == 0 && one.blocks == 0 && one.growth == 0 && one.allocations == 0;
    if (!idle) rows.push_back(one);
  }
  std::sort(rows.begin(), rows.end(), [&](const WatchRow& a, const WatchRow& b) {
    // Break ties by ordinal, so that rows keep their places between looks.
    return std::make_tuple(-quantity(a, order), a.stack->ordinal) <
           std::make_tuple(-quantity(b, order), b.stack->ordinal);
  });
  return rows;
}

WatchRow Watch::total() const {
  WatchRow sum = {};
  for (const LedgerStackState& stack : state_.stacks) {
    if (!watches(stack)) continue;
    const WatchRow one = row(stack);
    sum.live += one.live;
    sum.blocks += one.blocks;
    sum.growth += one.growth;
    sum.allocations += one.allocations;
    sum.peak += one.peak;
  }
  return sum;
}

}  // namespace mtrace::ledger
