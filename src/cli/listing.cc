#include "cli/listing.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <iterator>

#include "analyze/short_name.h"
#include "format/escape.h"
#include "format/memlog.h"
#include "profile/text.h"
#include "profile/writer.h"

namespace mtrace::cli {
namespace {

using analyze::Row;
using analyze::Table;
using profile::Frame;
using profile::Place;

constexpr char kRed[] = "\033[31m";
constexpr char kGreen[] = "\033[32m";
constexpr char kBold[] = "\033[1m";
constexpr char kFaint[] = "\033[2m";
constexpr char kYellow[] = "\033[33m";

std::string coloured(const std::string& text, const char* colour, const Style& style) {
  return style.colour && !text.empty() ? colour + text + "\033[0m" : text;
}

std::string plain(const std::string& text) { return profile::escaped(text, ""); }

// A command as one would type it: arguments with spaces in quotes, the rest as in the memlog.
std::string command_text(const std::string& command) {
  std::string out;
  for (const std::string_view part : profile::split(command, ' ')) {
    const std::string argument =
        part == "''" ? "" : plain(profile::unescaped(part).value_or(std::string(part)));
    const bool quote = argument.empty() || argument.find_first_of(" '\"") != std::string::npos;
    if (!out.empty()) out += ' ';
    if (!quote) {
      out += argument;
      continue;
    }
    out += '\'';
    for (const char c : argument) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += '\'';
  }
  return out;
}

// The place with the module's name alone: its directory says nothing while reading.
std::string short_place(const Table& table, const Frame& frame, bool with_offset) {
  if (frame.place != Place::kModule) return profile::place(table.names(), frame);
  const profile::Module& module = table.modules()[frame.module];
  const std::string path = plain(module.path);
  const std::string name = path.substr(path.rfind('/') + 1);
  return with_offset ? fmt::format("({}+0x{:x})", name, frame.offset) : fmt::format("({})", name);
}

std::string function_text(const Table& table, const Frame& frame, const Style& style) {
  if (!frame.function.empty()) {
    return plain(style.full_names ? frame.function : analyze::short_name(frame.function));
  }
  return frame.source.empty() ? short_place(table, frame, true) : format::kUnknownFunction;
}

std::string frame_text(const Table& table, const Frame& frame, const Style& style) {
  std::string text = function_text(table, frame, style);
  if (!frame.source.empty()) {
    text += "  " + coloured(plain(frame.source), kFaint, style);
  } else if (!frame.function.empty()) {
    text += "  " + coloured(short_place(table, frame, false), kFaint, style);
  }
  return text;
}

std::string percent_text(const Row& row, int64_t growth) {
  if (!row.kind.empty() || row.bytes <= 0 || growth <= 0) return {};
  return fmt::format("{:.1f}%",
                     100.0 * static_cast<double>(row.bytes) / static_cast<double>(growth));
}

const char* sign_colour(int64_t bytes) { return bytes > 0 ? kRed : bytes < 0 ? kGreen : kFaint; }

std::string long_entry(const Table& table, const Row& row, int64_t growth, const Style& style) {
  std::string out = coloured(bytes_text(row.bytes, style), sign_colour(row.bytes), style);
  out += fmt::format("  {:+} blocks", row.blocks);
  const std::string percent = style.percent ? percent_text(row, growth) : "";
  if (!percent.empty()) out += "  " + coloured(percent, kBold, style);
  if (row.live) {
    out += "  live " + bytes_text(static_cast<int64_t>(*row.live), style, false);
  }
  // Of a stack that only allocated, or only freed, the numbers above say it all.
  const profile::Activity& did = row.activity;
  if (did.allocations != 0 && did.frees != 0) {
    out += fmt::format("  {} allocations {}, {} frees {}", profile::grouped(did.allocations),
                       bytes_text(static_cast<int64_t>(did.allocated_bytes), style, false),
                       profile::grouped(did.frees),
                       bytes_text(static_cast<int64_t>(did.freed_bytes), style, false));
  }
  if (row.stack != 0) out += coloured(fmt::format("  stack={:016x}", row.stack), kFaint, style);
  out += '\n';
  for (const Frame& frame : row.frames) {
    out += fmt::format("    {}\n", frame_text(table, frame, style));
  }
  if (row.cut) out += fmt::format("    {}\n", format::kCutLine);
  return out;
}

std::string short_entry(const Table& table, const Row& row, int64_t growth, const Style& style) {
  const std::string number =
      style.units ? bytes_text(row.bytes, style) : fmt::format("{:+}", row.bytes);
  std::string out = coloured(fmt::format("{:>14}", number), sign_colour(row.bytes), style);
  out += fmt::format(" {:>+10}", row.blocks);
  if (style.percent) out += fmt::format(" {:>6}", percent_text(row, growth));
  const std::string id = row.stack == 0 ? "" : fmt::format("{:016x}", row.stack);
  out += ' ' + coloured(fmt::format("{:>16}", id), kFaint, style) + ' ';
  const char* between = " ";
  for (const Frame& frame : row.frames) {
    out += between + function_text(table, frame, style);
    between = " < ";
  }
  if (row.cut) out += fmt::format("{}{}", between, format::kCutLine);
  return out + '\n';
}

// The rows of one kind.
std::string kind_text(const Table& table, const std::string& kind, const Style& style) {
  std::string out;
  const int64_t growth = analyze::gross_growth(table.rows());
  size_t shown = 0;
  size_t more = 0;
  __int128 net = 0;  // of 64-bit numbers: cannot overflow
  for (const Row& row : table.rows()) {
    if (row.kind != kind) continue;
    if (style.limit != 0 && shown == style.limit) {
      ++more;
      net += row.bytes;
      continue;
    }
    ++shown;
    if (style.oneline) {
      out += short_entry(table, row, growth, style);
    } else {
      out += long_entry(table, row, growth, style);
    }
  }
  if (more != 0) {
    const auto fits = static_cast<int64_t>(net);
    const std::string sum = net == fits ? profile::grouped(fits, true) : "more than 2^63";
    out += fmt::format("... {} more, net {} bytes (-n 0)\n", profile::grouped(more), sum);
  }
  return out;
}

// "1 block", "2 blocks".
std::string count_text(uint64_t number, const char* what) {
  return fmt::format("{} {}{}", profile::grouped(number), what, number == 1 ? "" : "s");
}

std::string lost_words(const profile::Field& count) {
  const uint64_t number = profile::read_unsigned(count.value).value_or(0);
  if (count.key == "frames") {
    return count_text(number, "walk") + " up the stack ended early, at a frame without a way on";
  }
  if (count.key == "stacks") {
    return count_text(number, "allocation") +
           " found no room in the stack table; what they hold stands under \"...\"";
  }
  if (count.key == "blocks") {
    return count_text(number, "block") +
           " found no room in the block table; what became of that is not known";
  }
  if (count.key == "inflight") {
    return count_text(number, "operation") + " cut off by a fork; the outcome is not known";
  }
  return fmt::format("lost: {} {}", profile::grouped(number), plain(count.key));
}

}  // namespace

std::string bytes_text(int64_t bytes, const Style& style, bool sign) {
  std::string exact = sign ? fmt::format("{:+} bytes", bytes) : fmt::format("{} bytes", bytes);
  if (!style.units) return exact;
  double value = static_cast<double>(bytes);
  if (std::abs(value) < 1024) return exact;
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}) {
    // What would be rounded to 1024.0 is 1.0 of the next unit.
    if (*unit != '\0' && std::abs(value) < 1023.95) break;
    value /= 1024;
    unit = next;
  }
  return sign ? fmt::format("{:+.1f} {}", value, unit) : fmt::format("{:.1f} {}", value, unit);
}

std::string remark(const std::string& text, const Style& style) {
  return coloured("note: " + text, kYellow, style) + '\n';
}

std::string header_text(const profile::Header& header, const Style& style) {
  const std::string command =
      header.command.empty() ? plain(header.program) : command_text(header.command);
  std::string out = coloured(command, kBold, style) + '\n';
  auto append = std::back_inserter(out);
  fmt::format_to(append, "pid {}{}{}, report {} ({}){}\n", header.pid,
                 header.host.empty() ? "" : " on ", plain(header.host), header.seq,
                 plain(header.trigger),
                 header.label.empty() ? "" : fmt::format(", \"{}\"", plain(header.label)));
  fmt::format_to(
      append, "taken {}{}\n", header.taken,
      header.uptime.empty() ? "" : fmt::format(", {} seconds after the start", header.uptime));
  fmt::format_to(append, "changed by {} in {:+} blocks\n", bytes_text(header.delta.bytes, style),
                 header.delta.blocks);
  fmt::format_to(append, "now {} in {} blocks{}\n", bytes_text(header.live.bytes, style, false),
                 header.live.blocks,
                 header.rss
                     ? fmt::format(", resident {}",
                                   bytes_text(static_cast<int64_t>(*header.rss), style, false))
                     : "");
  if (header.allocated && header.freed) {
    fmt::format_to(append, "in all allocated {} in {} blocks, freed {} in {} blocks\n",
                   bytes_text(header.allocated->bytes, style, false), header.allocated->blocks,
                   bytes_text(header.freed->bytes, style, false), header.freed->blocks);
  }
  if (header.inherited) {
    fmt::format_to(append, "inherited at fork: {} in {} blocks\n",
                   bytes_text(header.inherited->bytes, style, false), header.inherited->blocks);
  }
  for (const profile::Field& count : header.lost) {
    if (count.value != "0") out += remark(lost_words(count), style);
  }
  for (const std::string& note : header.notes) out += remark(plain(note), style);
  return out;
}

std::string resident_remark(const profile::Header& header, const Style& style) {
  constexpr uint64_t kFar = 64u << 20;
  const auto live = static_cast<uint64_t>(header.live.bytes);
  if (!header.rss || *header.rss < live || *header.rss - live <= kFar || *header.rss / 4 <= live) {
    return {};
  }
  const std::string all = bytes_text(static_cast<int64_t>(*header.rss), style, false);
  return remark(
      fmt::format("{} are resident, but malloc holds only {}. The rest may be in pools that the "
                  "program cuts up itself (Python's pymalloc: PYTHONMALLOC=malloc shows them), "
                  "mapped directly (mmap: files, stacks, JIT code), or freed but kept by the "
                  "allocator (fragmentation, its caches).",
                  all, bytes_text(header.live.bytes, style, false)),
      style);
}

std::string entries_text(const analyze::Table& table, const Style& style) {
  std::string out = kind_text(table, "", style);
  std::vector<std::string> kinds;
  for (const Row& row : table.rows()) {
    bool known = row.kind.empty();
    for (const std::string& kind : kinds) known |= kind == row.kind;
    if (!known) kinds.push_back(row.kind);
  }
  for (const std::string& kind : kinds) {
    if (style.header) {
      const std::string title = fmt::format("@{}: not part of the heap's totals", kind);
      out += '\n' + coloured(title, kBold, style) + '\n';
    }
    out += kind_text(table, kind, style);
  }
  return out;
}

}  // namespace mtrace::cli
