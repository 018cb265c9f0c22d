#include "model/ledger/ledger_memlog.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "format/calls.h"
#include "format/escape.h"
#include "format/mapping_form.h"
#include "format/memlog.h"
#include "format/python.h"
#include "model/ledger/ledger_notes.h"
#include "model/ledger/ledger_state.h"
#include "model/ledger/ledger_summary.h"
#include "model/profile/memlog_text.h"
#include "util/text.h"
#include "util/time.h"

namespace mtrace::ledger {
namespace {

using format::LedgerHeader;

constexpr uint64_t kSecond = 1'000'000'000;

struct Entry {
  const LedgerRow* row;
  uint64_t id;
  profile::StackIds::Rests rests;  // none: its frames stand for themselves
};

class Text : private profile::MemlogText {
 public:
  Text(const LedgerFile& file, const LedgerState& state, const LedgerOccasion& occasion)
      : file_(file),
        header_(file.header()),
        state_(state),
        occasion_(occasion),
        sum_(sum_up(file, state, occasion.taken)),
        modules_(state),
        used_(state.modules.size()) {
    now_ = occasion.taken > header_.tick_zero ? ticks_in(occasion.taken - header_.tick_zero) : 0;
    for (const LedgerRow& row : sum_.rows) {
      profile::StackIds ids = modules_.stack_ids(*row.stack);
      entries_.push_back({&row, ids.value(), {}});
      // What the addresses of a retired stack meant is its own matter, and so is where one was cut.
      if (row.stack->retired != format::kLedgerAlive || row.stack->cut) continue;
      entries_.back().rests = ids.take_rests();
      expect(entries_.back().rests);
    }
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      if (a.row->stack->kind != b.row->stack->kind) return a.row->stack->kind < b.row->stack->kind;
      const int64_t left = a.row->change.live_bytes();
      const int64_t right = b.row->change.live_bytes();
      return left != right ? left > right : a.id < b.id;
    });
  }

  std::string write() {
    write_head();
    for (const Entry& entry : entries_) write_entry(entry);
    write_tails();
    write_tail();
    return std::move(out_);
  }

 private:
  void write_head() {
    out_ = format::kMagicLine;
    out_ += '\n';
    const std::string program = util::array_text(header_.program);
    line("# {}: {}", format::kKeyProgram, util::escaped(program.empty() ? "?" : program, ""));
    write_command();
    line("# {}: {}", format::kKeyPid, std::clamp<uint32_t>(header_.pid, 1, INT32_MAX));
    if (header_.parent != 0) {
      line("# {}: {}", format::kKeyParent, std::min<uint32_t>(header_.parent, INT32_MAX));
    }
    line("# {}: {}", format::kKeySeq, std::max(header_.seq + 1, 1u));
    line("# {}: {}", format::kKeyTrigger, occasion_.trigger);
    if (!occasion_.label.empty()) {
      line("# {}: {}", format::kKeyLabel, util::escaped(occasion_.label, ""));
    }
    line("# {}: {}", format::kKeyStarted, util::time_text(header_.started));
    line("# {}: {}", format::kKeyTaken, util::time_text(occasion_.taken));
    if (header_.sampled != 0) line("# {}: {} bytes", format::kKeySampled, header_.sampled);
    line("# {}: {:+} bytes {:+} blocks", format::kKeyDelta, sum_.change.live_bytes(),
         sum_.change.live_blocks());
    line("# {}: {} bytes {} blocks", format::kKeyLive, sum_.total.live_bytes(),
         sum_.total.live_blocks());
    line("# {}: {} bytes", format::kKeyUsable,
         static_cast<uint64_t>(sum_.total.live_bytes()) + sum_.slack);
    line("# {}: {} bytes {}", format::kKeyPeak, sum_.peak, util::time_text(sum_.peak_when));
    if (sum_.peak_error != 0) line("# {}: {} bytes", format::kKeyPeakError, sum_.peak_error);
    line("# {}: {} bytes {} blocks", format::kKeyAllocated, sum_.total.allocated_bytes,
         sum_.total.allocated_blocks);
    line("# {}: {} bytes {} blocks", format::kKeyFreed, sum_.total.freed_bytes,
         sum_.total.freed_blocks);
    write_lost();
    if (header_.recording == 0) line("# {}: stopped", format::kKeyRecording);
    write_notes();
  }

  void write_command() {
    const std::string command = file_.command();
    if (!command.empty() && util::is_printable(command, false)) {
      line("# {}: {}", format::kKeyCommand, command);  // escaped by the library
    }
  }

  void write_lost() {
    std::string more;
    for (const auto& [name, lost] : {std::pair{"frees", state_.lost_frees},
                                     {"modules", header_.lost_modules},
                                     {"notes", header_.lost_notes},
                                     {"resources", header_.lost_resources},
                                     {"regions", header_.lost_regions},
                                     {"python", header_.lost_python}}) {
      if (lost != 0) more += fmt::format(" {}={}", name, lost);
    }
    line("# {}: frames={} stacks={} blocks={} inflight={}{}", format::kKeyLost, state_.lost_frames,
         state_.lost_stacks, state_.lost_blocks, state_.lost_inflight, more);
  }

  void write_notes() {
    if (header_.cost.full_since != 0) {
      line("# {}: new blocks are lost since {}, when the tables had reached MTRACE_MAX_MEMORY",
           format::kKeyNote, util::time_text(header_.cost.full_since));
    }
    for (const LedgerNoteText& note : read_notes(file_)) {
      line("# {}: {} {}", format::kKeyNote, util::time_text(note.time),
           util::escaped(note.text, ""));
    }
    if (const std::string gap = python_gap(file_, state_); !gap.empty()) {
      line("# {}: {}", format::kKeyNote, gap);
    }
    for (const std::string& note : occasion_.notes) {
      line("# {}: {}", format::kKeyNote, util::escaped(note, ""));
    }
    if (!sum_.based) {
      line("# {}: report {} was being published: changes are since the start, not since a report",
           format::kKeyNote, header_.reporting);
    }
    if (header_.missing != 0) {
      line("# {}: the ledger lacks {} bytes of the tables, which its file had no room for",
           format::kKeyNote, header_.missing);
    }
    if (state_.unread != 0 || !sum_.whole) {
      line("# {}: parts of the ledger cannot be read: {} stacks and modules{}", format::kKeyNote,
           state_.unread, sum_.whole ? "" : ", and live blocks");
    }
  }

  void write_entry(const Entry& entry) {
    const LedgerRow& row = *entry.row;
    const LedgerStackState& stack = *row.stack;
    const LedgerCounts& change = row.change;
    const auto oldest = sum_.oldest.find(stack.index);
    if (stack.kind != 0) out_ += '@' + ledger_kind(header_, stack.kind) + '\t';
    fmt::format_to(std::back_inserter(out_), "{:+}\t{}={:+}\t{}={}", change.live_bytes(),
                   format::kFieldBlocks, change.live_blocks(), format::kFieldLive,
                   stack.now.live_bytes());
    field(format::kFieldAllocations, change.allocated_blocks);
    field(format::kFieldAllocated, change.allocated_bytes);
    field(format::kFieldFrees, change.freed_blocks);
    field(format::kFieldFreed, change.freed_bytes);
    field(format::kFieldTemporary, std::min(change.temporary, change.freed_blocks));
    field(format::kFieldShortLived, std::min(change.short_lived, change.freed_blocks));
    write_lifetimes(stack, change);
    if (oldest != sum_.oldest.end() && oldest->second < now_ && stack.kind == 0) {
      field(format::kFieldAge, tick_milliseconds(now_ - oldest->second));
    }
    field(format::kFieldSlack, stack.slack);
    if (stack.kind == 0) field(format::kFieldPeak, row.share);
    if (stack.kind != 0 && stack.now.live_bytes() == format::kMostFailed &&
        ledger_kind(header_, stack.kind) == format::kKindFailed) {
      field(format::kFieldSaturated, 1);
    }
    write_mapping_form(stack.mapping_form);
    if (const char* call = format::call_name(stack.call)) {
      fmt::format_to(std::back_inserter(out_), "\t{}={}", format::kFieldCall, call);
    }
    line("\t{}={:016x}", format::kFieldStack, entry.id);
    frames(stack.frames.size(), stack.guessed + 1, entry.rests, [&](size_t i) {
      const bool guessed = stack.guessed != 0 && i == stack.guessed;
      write_frame(stack.frames[i], stack.retired, guessed ? "?" : "");
    });
    if (stack.cut) line("\t{}", format::kCutLine);
  }

  void write_mapping_form(uint32_t form) {
    if (form == 0) return;
    std::vector<std::string> flags;
    const uint32_t rest =
        format::each_mapping_flag(form, [&](const char* name) { flags.emplace_back(name); });
    if (rest != 0) flags.push_back(fmt::format("0x{:x}", rest));
    fmt::format_to(std::back_inserter(out_), "\t{}={}\t{}={}", format::kFieldProtection,
                   format::MappingProtection(form).text, format::kFieldFlags,
                   fmt::join(flags, ","));
  }

  void write_lifetimes(const LedgerStackState& stack, const LedgerCounts& change) {
    constexpr uint32_t kMost = (1u << 27) - 1;
    if (change.freed_blocks == 0 || stack.longest == 0 || stack.shortest == 0) return;
    if (stack.shortest > kMost + 1 || stack.longest > kMost + 1) return;
    const uint64_t shortest = unpack_ticks(kMost + 1 - stack.shortest);
    const uint64_t longest = unpack_ticks(stack.longest - 1);
    if (shortest > longest) return;
    const uint64_t mean = std::clamp(change.lifetime / change.freed_blocks, shortest, longest);
    field(format::kFieldLifetimeMin, tick_milliseconds(shortest));
    field(format::kFieldLifetimeMean, tick_milliseconds(mean));
    field(format::kFieldLifetimeMax, tick_milliseconds(longest));
  }

  std::string module_name(size_t number) const {
    const LedgerModuleState& module = state_.modules[number];
    std::string name = util::escaped(module.path, format::kReservedModule);
    if (module.entry.generation > 1) name += fmt::format("#{}", module.entry.generation);
    return name;
  }

  // Of a source file. Where an object is called the same, it is a generation of its own.
  std::string file_name(const std::string& path) const {
    const bool is_twin = std::any_of(state_.modules.begin(), state_.modules.end(),
                                     [&](const auto& module) { return module.path == path; });
    return util::escaped(path, format::kReservedModule) +
           (is_twin ? fmt::format("#{}", format::kPythonGeneration) : "");
  }

  void write_python_frame(uint64_t frame) {
    const PythonFrameText python = python_frame(state_, frame);
    const std::string function = util::escaped(python.function, format::kReservedNone);
    if (python.module.empty()) return line("\t{}\t(0x0)", function);
    const std::string module = file_name(python.module);
    python_files_.insert(module);
    const std::string source = util::escaped(python.source, format::kReservedNone);
    line("\t{}{}{}\t({}+0x{:x})", function, source.empty() ? "" : "\t", source, module,
         python.offset);
  }

  void write_frame(uint64_t frame, uint32_t retired, const char* mark) {
    if (format::PythonFrame::is_one(frame)) return write_python_frame(frame);
    const size_t module = modules_.find(frame, retired);
    if (module == LedgerModules::kNone) return line("\t(0x{:x}){}", frame, mark);
    used_[module] = true;
    line("\t({}+0x{:x}){}", module_name(module), frame - state_.modules[module].entry.base, mark);
  }

  void write_tail() {
    for (unsigned i = 0; i < format::kLedgerKinds; ++i) {
      const std::string name = ledger_kind(header_, static_cast<uint8_t>(i + 1));
      if (name.empty()) break;
      line("# {}: {} {} bytes {} blocks", format::kKeyKind, name, sum_.kinds[i].live_bytes(),
           sum_.kinds[i].live_blocks());
    }
    write_modules();
    const std::string node = util::array_text(header_.node);
    const std::string boot = util::array_text(header_.boot_id);
    line("# {}: {}{}{} arch={}", format::kKeyHost, util::escaped(node.empty() ? "?" : node, " "),
         boot.empty() ? "" : " boot-id=", util::escaped(boot, " "),
         format::processor_name(header_.machine));
    write_calls();
    line("# {}: written={} failed={}", format::kKeyReports, header_.seq, header_.failures);
    if (occasion_.rss != 0) {
      line("# {}: {} bytes", format::kKeyRss, occasion_.rss);
      line("# {}: {} bytes", format::kKeyRssMax, occasion_.rss_max);
      line("# {}: {} bytes", format::kKeyVirtual, occasion_.virtual_size);
    }
    write_cost();
    line("# {}: no", format::kKeyResolved);
    const std::string library = util::array_text(header_.library);
    line("# {}: mtrace {} {}", format::kKeyLibrary, MTRACE_VERSION, util::escaped(library, ""));
    out_ += format::kEndLine;
    out_ += '\n';
  }

  void write_cost() {
    const bool sampled = header_.sampled != 0;
    const TracingCost cost = tracing_cost(header_.cost, counted_calls(state_), sampled);
    line("# {}: memory={} shadow={} stopped-us={}{}", format::kKeyCost, cost.memory, cost.shadow,
         cost.stopped / 1000,
         sampled ? "" : fmt::format(" processor-ms={}", cost.processor / 1'000'000));
  }

  void write_modules() {
    std::vector<std::string> lines;
    for (size_t i = 0; i < used_.size(); ++i) {
      if (!used_[i]) continue;
      const format::LedgerModule& entry = state_.modules[i].entry;
      const std::string id(reinterpret_cast<const char*>(entry.build_id), entry.build_id_size);
      std::string text =
          fmt::format("# {}: {}{}{} base=0x{:x}", format::kKeyModule, module_name(i),
                      id.empty() ? "" : " build-id=", util::hex_bytes(id), entry.base);
      // A file that was unloaded and loaded again at its place has two equal entries.
      if (std::find(lines.begin(), lines.end(), text) != lines.end()) continue;
      line("{}", text);
      lines.push_back(std::move(text));
    }
    for (const std::string& file : python_files_) {
      line("# {}: {} base=0x0 {}", format::kKeyModule, file, format::kModulePython);
    }
  }

  void write_calls() {
    if (header_.sampled != 0) return;
    std::string calls;
    for (unsigned call = 0; call < format::kLedgerCalls; ++call) {
      if (state_.calls[call] != 0)
        calls += fmt::format(" {}={}", format::kCallNames[call], state_.calls[call]);
    }
    if (!calls.empty()) line("# {}:{}", format::kKeyCalls, calls);
    line("# {}: {}", format::kKeyFailed, state_.failed_allocations);
    line("# {}: {}", format::kKeyUnknownFrees, state_.unknown_frees);
  }

  const LedgerFile& file_;
  const LedgerHeader& header_;
  const LedgerState& state_;
  const LedgerOccasion& occasion_;
  LedgerSummary sum_;
  LedgerModules modules_;
  std::vector<bool> used_;
  std::set<std::string> python_files_;  // escaped
  std::vector<Entry> entries_;
  uint64_t now_ = 0;  // ticks
};

}  // namespace

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

std::string ledger_memlog(const LedgerFile& file, const LedgerState& state,
                          const LedgerOccasion& occasion) {
  return Text(file, state, occasion).write();
}

}  // namespace mtrace::ledger
