#include "view/text/header_text.h"

#include "format/memlog.h"
#include "model/profile/reader.h"
#include "util/text.h"
#include "view/json/views.h"
#include "view/text/stack_names.h"
#include "view/text/style.h"

namespace mtrace::text {
namespace {

// Arguments with spaces in quotes, the rest as in the memlog.
std::string typed(const std::string& command) {
  std::string out;
  for (const std::string_view part : util::split(command, ' ')) {
    const std::string argument =
        part == "''" ? "" : plain(util::unescaped(part).value_or(std::string(part)));
    out += (out.empty() ? "" : " ") + util::shell_word(argument);
  }
  return out;
}

uint64_t number_of(const profile::Field& count) {
  return util::read_unsigned(count.value).value_or(0);
}

// By the key of a count: what was lost, and why or with what effect.
struct LostWords {
  const char* key;
  const char* what;
  const char* more;
};
constexpr LostWords kLost[] = {
    {"frames", "walk", " up the stack ended early, at code without CFI or a frame pointer"},
    {"stacks", "allocation",
     " found no room in the stack table; the entry \"...\" has their memory"},
    {"blocks", "block", " not recorded: no memory for more, or MTRACE_MAX_MEMORY was reached"},
    {"inflight", "operation", " cut off by a fork; the outcome is not known"},
    {"modules", "module", " found no room in the list; their frames have no name"},
    {"notes", "note", " of the program dropped: too many waited for a report"},
    {"resources", "resource", " found no room in the table"},
    {"frees", "block",
     " freed where the library did not see it; they counted until their addresses came back"},
    {"regions", "mapping", " incomplete in @mmap"},
};

std::string lost_words(const profile::Field& count) {
  const uint64_t number = number_of(count);
  for (const LostWords& words : kLost) {
    if (count.key == words.key) return count_text(number, words.what) + words.more;
  }
  return fmt::format("lost: {} {}", util::grouped(number), plain(count.key));
}

std::string calls_text(const profile::Header& header) {
  std::string out;
  for (const profile::Field& count : header.calls) {
    out += fmt::format("{}{} {}", out.empty() ? "calls: " : ", ", count.key,
                       util::grouped(number_of(count)));
  }
  return out.empty() ? out : out + '\n';
}

// What went wrong, in the program or in the library.
std::string trouble_text(const profile::Header& header, const Style& style) {
  std::string out;
  if (header.stopped) {
    out += remark("the program stopped recording: allocations since then are missing", style);
  }
  out += lost_remarks(header, style, true);
  if (header.failed_allocations.value_or(0) != 0) {
    out +=
        remark(count_text(*header.failed_allocations, "allocation") + " failed: no memory", style);
  }
  if (header.unknown_frees.value_or(0) != 0) {
    out += remark(count_text(*header.unknown_frees, "free") +
                      " of unknown blocks: allocated before recording began, while it was "
                      "stopped, or lost",
                  style);
  }
  for (const profile::Field& count : header.misuse) {
    if (count.value == "0") continue;
    out += remark(fmt::format("misuse of the C interface: {} ({})", count.key,
                              count_text(number_of(count), "time")),
                  style);
  }
  for (const profile::Field& count : header.reports) {
    if (count.key != "failed" || count.value == "0") continue;
    out += remark(count_text(number_of(count), "report") + " could not be written", style);
  }
  return out;
}

}  // namespace

std::string lost_remarks(const profile::Header& header, const Style& style, bool with_frames) {
  std::string out;
  for (const profile::Field& count : header.lost) {
    if (count.value != "0" && (with_frames || count.key != "frames")) {
      out += remark(lost_words(count), style);
    }
  }
  return out;
}

std::string command_text(const profile::Header& header) {
  return header.command.empty() ? plain(header.program) : typed(header.command);
}

std::string peak_text(const profile::Header& header, const Style& style) {
  return filled("[peak {peak.bytes:size}[{peak_error_bytes:error}] at {peak.time}\n]",
                json::header(header), style);
}

std::string header_text(const profile::Header& header, const Style& style) {
  const json::Value facts = json::header(header);
  std::string out =
      coloured(command_text(header), kBold, style) + '\n' +
      filled(
          "pid {pid}[ on {host}], report {seq} ({trigger})[, \"{label}\"]\n"
          "taken {taken}[, {uptime_s:.3} seconds after the start]\n"
          "[sampled, a block in about every {sample_bytes:size}: estimates with standard errors\n]"
          "changed by {delta.bytes:+size}{delta_error_bytes:error} in {delta.blocks:+blocks}\n"
          "now {live.bytes:size}{live_error_bytes:error} in {live.blocks:blocks}"
          "[, usable {usable_bytes:size}][, resident {rss_bytes:size}]"
          "[ (at most {rss_max_bytes:size})][, virtual {virtual_bytes:size}]\n",
          facts, style) +
      peak_text(header, style);
  for (const profile::KindTotal& total : header.kinds) {
    out += fmt::format("besides, @{}: {} in {}\n", total.kind,
                       bytes_text(total.live.bytes, style, false), blocks_text(total.live.blocks));
  }
  if (header.allocated && header.freed) {
    out += filled(
        "in all allocated {allocated.bytes:size} in {allocated.blocks:blocks}, "
        "freed {freed.bytes:size} in {freed.blocks:blocks}\n",
        facts, style);
  }
  out += calls_text(header) +
         filled("[inherited at fork: {inherited.bytes:size} in {inherited.blocks:blocks}\n]", facts,
                style) +
         trouble_text(header, style);
  for (const std::string& note : header.notes) {
    if (!note.starts_with(format::kResident)) out += remark(plain(note), style);
  }
  return out;
}

std::string coverage_remarks(const profile::Header& header, const Style& style) {
  std::string out;
  for (const std::string& note : header.notes) {
    if (note.starts_with(format::kNotCovered)) out += remark(plain(note), style);
  }
  return out;
}

std::string not_covered(const profile::Header& header) {
  for (const std::string& note : header.notes) {
    if (note.starts_with(format::kNotCovered) && !note.starts_with(format::kNotCoveredBefore)) {
      return note;
    }
  }
  return {};
}

std::string cut_short_remark(const profile::Header& header,
                             const std::optional<profile::CutShort>& cut, const Style& style) {
  if (!cut) return {};
  const profile::Total& all = header.delta;
  std::string text =
      fmt::format("PARTIAL: the file ends at line {}. Read: {} in {} and {}", cut->line,
                  bytes_text(cut->sum.bytes, style), count_text(cut->stacks, "stack"),
                  blocks_text(cut->sum.blocks, true));
  text += cut->sum == all
              ? "; this is all of the heap"
              : fmt::format("; missing: {} and {}", bytes_text(all.bytes - cut->sum.bytes, style),
                            blocks_text(all.blocks - cut->sum.blocks, true));
  return remark(text, style);
}

namespace {

// Whether so much more is resident than malloc holds, in bytes, that something else must hold it.
bool is_far(uint64_t resident, uint64_t held) {
  constexpr uint64_t kFar = 64u << 20;
  return resident > held && resident - held > kFar && resident / 4 > held;
}

// What the library has found out; empty: nothing.
std::string named_remark(const profile::Header& header, const Style& style) {
  std::string out;
  for (const std::string& note : header.notes) {
    if (!note.starts_with(format::kResident)) continue;
    const bool is_hint = note.find(profile::kUnnamedRegion) != std::string::npos &&
                         std::none_of(header.kinds.begin(), header.kinds.end(),
                                      [](const auto& total) { return total.kind == "mmap"; });
    out +=
        remark(plain(note) + (is_hint ? "; the stacks that mapped it: MTRACE_MMAP=1 memlog run " +
                                            command_text(header)
                                      : ""),
               style);
  }
  return out;
}

}  // namespace

void add_holders(const profile::Header& header, const analyze::Table& table, const Style& style,
                 Holders& holders) {
  if (style.responsible == nullptr || header.heap_stacks.empty()) return;
  std::set<uint64_t> ids;
  for (const profile::Field& stack : header.heap_stacks) {
    ids.insert(util::read_stack_id(stack.key).value_or(0));
  }
  for (const analyze::Row& row : table.rows()) {
    if (row.frames.empty() || !ids.contains(row.stack)) continue;
    holders.try_emplace(row.stack, caller_names(table, row, 1, style)[0]);
  }
}

std::optional<HeapUse> heap_use(const profile::Header& header, const Holders& holders) {
  if (header.heap.empty()) return std::nullopt;
  const auto number = [&](const char* key) {
    const std::string* const value = profile::find_field(header.heap, key);
    return value == nullptr ? std::nullopt : util::read_unsigned(*value);
  };
  HeapUse use;
  use.resident = number("resident").value_or(0);
  use.live = number("live").value_or(0);
  use.free = number("free").value_or(0);
  use.empty = number("empty");
  use.arenas = number("arenas").value_or(0);
  use.arenas_empty = number("arenas-empty").value_or(0);
  use.process = header.trigger == "exit" ? "PID" : fmt::format("{}", header.pid);
  std::map<std::string, uint64_t> held;
  for (const profile::Field& stack : header.heap_stacks) {
    const auto holder = holders.find(util::read_stack_id(stack.key).value_or(0));
    if (holder == holders.end()) continue;
    use.add_holder(holder->second, held[holder->second] += number_of(stack));
  }
  return use;
}

std::string heap_text(const HeapUse& use, const Style& style) {
  std::string out =
      fmt::format("heaps of malloc: {} resident, {} live, {} free", size_text(use.resident, style),
                  size_text(use.live, style), size_text(use.free, style));
  if (use.empty) {
    out += fmt::format("; malloc_trim(3) frees at most {}", size_text(*use.empty, style));
  }
  if (use.arenas_empty != 0) {
    out += fmt::format(", fewer arenas (MALLOC_ARENA_MAX, now {} of threads) {}", use.arenas,
                       size_text(use.arenas_empty, style));
  }
  constexpr uint64_t kLeastPart = 20;  // of what is resident
  if (use.held > use.resident / kLeastPart) {
    out += fmt::format("; blocks of {} keep {}", use.holder, size_text(use.held, style));
  }
  return out + fmt::format("; for details while it runs: memlog map {}", use.process);
}

std::string resident_remark(const profile::Header& header, const Holders& holders,
                            const Style& style) {
  const auto size = [&](uint64_t bytes) {
    return bytes_text(static_cast<int64_t>(bytes), style, false);
  };
  const auto live = static_cast<uint64_t>(header.live.bytes);
  const uint64_t peak = std::max(live, header.peak ? header.peak->bytes : 0);
  const auto heap = heap_use(header, holders);
  const std::string named =
      (heap ? remark(heap_text(*heap, style), style) : "") + named_remark(header, style);
  std::string what;
  if (header.rss && is_far(*header.rss, live)) {
    if (!named.empty()) return named;
    what = fmt::format("{} are resident, but malloc holds only {}.", size(*header.rss), size(live));
  } else if (header.rss_max && is_far(*header.rss_max, peak)) {
    what = fmt::format("Up to {} were resident, but malloc never held more than {}.",
                       size(*header.rss_max), size(peak));
  } else {
    return named;
  }
  return named +
         remark(what +
                    " The rest may be in pools that the program cuts up itself (Python's pymalloc: "
                    "PYTHONMALLOC=malloc shows them), mapped directly (mmap: files, stacks, JIT "
                    "code), freed but kept by the allocator (fragmentation, its caches), or "
                    "allocated before tracing began (memlog attach).",
                style);
}

}  // namespace mtrace::text
