#include "text/stack_facts.h"

#include <fmt/format.h>

#include "format/memlog.h"
#include "profile/text.h"

namespace mtrace::text {
namespace {

using analyze::Order;
using analyze::Row;

std::string allocations_text(const Row& row, const Style& style) {
  return fmt::format("{} {}", count_text(row.allocations, "allocation"),
                     size_text(row.allocated_bytes, style));
}

std::string frees_text(const Row& row, const Style& style) {
  return fmt::format("{} {}", count_text(row.frees, "free"), size_text(row.freed_bytes, style));
}

std::string short_lived_text(const Row& row) {
  return row.short_lived == 0 ? "" : profile::grouped(row.short_lived) + " short-lived";
}

std::string temporary_text(const Row& row) {
  std::string out = profile::grouped(row.temporary) + " temporary";
  const std::string of_allocations = share_text(row.temporary, row.allocations);
  if (!of_allocations.empty()) {
    out += fmt::format(", {} of {}", of_allocations, count_text(row.allocations, "allocation"));
  }
  const std::string of_frees = share_text(row.temporary, row.frees);
  if (!of_frees.empty()) out += fmt::format(", {} of {}", of_frees, count_text(row.frees, "free"));
  return out;
}

std::string lifetime_text(const Row& row, const Style& style) {
  const analyze::Lifetimes& life = row.lifetimes;
  if (life.least == life.most) return "lifetime " + duration_text(life.most, style);
  return fmt::format("lifetime {} on average, {} to {}", duration_text(life.mean(), style),
                     duration_text(life.least, style), duration_text(life.most, style));
}

std::string age_text(const Row& row, const Style& style) {
  return "oldest " + duration_text(row.age, style);
}

std::string slack_text(const Row& row, const Style& style) {
  return "slack " + size_text(row.slack, style);
}

std::string peak_text(const Row& row, uint64_t peak, const Style& style) {
  const std::string share = row.kind.empty() ? share_text(row.peak, peak) : "";
  return fmt::format("at the peak {}{}", size_text(row.peak, style),
                     share.empty() ? "" : fmt::format(" ({})", share));
}

// malloc goes without saying.
std::string call_text(const Row& row) {
  if (row.call.empty() || row.call.text() == "malloc" || row.group != nullptr) return {};
  std::string calls;
  for (const char c : row.call.text()) {
    calls += c;
    if (c == ',') calls += ' ';
  }
  return "by " + profile::escaped(calls, "");
}

}  // namespace

std::string lead_text(const Row& row, uint64_t peak, const Style& style) {
  switch (style.order) {
    case Order::kBytes:
    case Order::kStack:
      return {};
    case Order::kBlocks:
      return fmt::format("{:+} blocks", row.blocks);
    case Order::kLive:
      return row.live ? "live " + size_text(*row.live, style) : "";
    case Order::kAllocations:
      return allocations_text(row, style);
    case Order::kTemporary: {
      const std::string brief = short_lived_text(row);
      return temporary_text(row) + (brief.empty() ? "" : ", " + brief);
    }
    case Order::kLifetime:
      return lifetime_text(row, style);
    case Order::kSlack:
      return slack_text(row, style);
    case Order::kPeak:
      return peak_text(row, peak, style);
    case Order::kAge:
      return age_text(row, style);
    case Order::kSize:
      return fmt::format("{} a block", size_text(analyze::block_size(row), style));
    case Order::kFailed:
      return profile::grouped(static_cast<uint64_t>(row.blocks)) + " failed";
  }
  return {};
}

std::string lead_column(const Row& row, const Style& style) {
  const auto number = static_cast<uint64_t>(analyze::quantity(row, style.order));
  switch (style.order) {
    case Order::kBytes:
    case Order::kBlocks:  // has a column of its own
    case Order::kStack:
      return {};
    case Order::kAllocations:
    case Order::kTemporary:
    case Order::kFailed:
      return profile::grouped(number);
    case Order::kLive:
      if (!row.live) return "-";
      [[fallthrough]];
    case Order::kSlack:
    case Order::kPeak:
    case Order::kSize:
      return style.units ? size_text(number, style) : fmt::format("{}", number);
    case Order::kLifetime:
    case Order::kAge:
      return duration_text(number, style);
  }
  return {};
}

std::string facts_text(const Row& row, uint64_t peak, const Style& style) {
  std::string out;
  const auto add = [&](const std::string& fact) {
    if (!fact.empty()) out += (out.empty() ? "" : "; ") + fact;
  };
  const Order order = style.order;
  // Of a stack that only allocated, or only freed, the change says it all.
  if (row.allocations != 0 && row.frees != 0) {
    add((order == Order::kAllocations ? "" : allocations_text(row, style) + ", ") +
        frees_text(row, style));
  }
  // A listing in the order of the stacks is for comparing: not with what changes by itself.
  if (order == Order::kStack) return out;
  if (order != Order::kTemporary) {
    if (row.temporary != 0) add(profile::grouped(row.temporary) + " temporary");
    add(short_lived_text(row));
  }
  if (order != Order::kLifetime && row.lifetimes.most != 0) add(lifetime_text(row, style));
  if (order != Order::kAge && row.age != 0) add(age_text(row, style));
  if (order != Order::kSlack && row.slack != 0) add(slack_text(row, style));
  if (order != Order::kPeak && row.peak != 0) add(peak_text(row, peak, style));
  add(call_text(row));
  for (const profile::Field& field : row.further) {
    if (field.key == format::kFieldBefore) add("freed before by stack " + field.value);
    if (field.key == format::kFieldProtection) add("mapped " + field.value);
    if (field.key == format::kFieldFlags) out += ", " + field.value;
  }
  return out;
}

const char* lack_text(Order order) {
  switch (order) {
    case Order::kTemporary:
      return "nothing temporary";
    case Order::kLifetime:
      return "nothing freed after a time that can be measured";
    case Order::kSlack:
      return "no slack";
    case Order::kPeak:
      return "no share in the peak";
    case Order::kFailed:
      return "no failed allocation";
    case Order::kAge:
      return "no live block, or none of an age that can be measured";
    case Order::kSize:
      return "no change that tells the size of blocks";
    default:
      return "no change";
  }
}

}  // namespace mtrace::text
