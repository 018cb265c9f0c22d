#include "model/symbols/text_place.h"

#include <algorithm>

#include "model/profile/line.h"
#include "model/profile/model.h"
#include "util/text.h"

namespace mtrace::symbols {
namespace {

constexpr std::string_view kBlank = " \t\r";
constexpr std::string_view kOffset = "+0x";
constexpr std::string_view kAddress = "[0x";
constexpr std::string_view kHex = "0x";
// A line that only looks like having a place is not to be searched without end.
constexpr int kMostTries = 16;

// Absolute, or relative with a directory: "(a+0x1)" may be arithmetic.
bool is_path(std::string_view text) {
  return text.starts_with('/') || text.starts_with('[') || text.starts_with("./") ||
         text.starts_with("../");
}

// "PATH[#G]+0xHEX" as in a memlog.
std::optional<TextPlace> memlog_place(std::string_view inner, TextPlace::Form form) {
  const size_t plus = inner.rfind(kOffset);
  if (plus == std::string_view::npos || !is_path(inner)) return std::nullopt;
  const auto offset = util::read_hex(inner.substr(plus + kOffset.size()));
  if (!offset) return std::nullopt;
  TextPlace place;
  place.form = form;
  place.offset = *offset;
  try {
    profile::ModuleTable table;
    const profile::Module& module = table[table.index(inner.substr(0, plus))];
    place.module = module.path;
    place.generation = module.generation;
  } catch (const profile::LineError&) {
    return std::nullopt;
  }
  return place;
}

// What stands before the "(": the module, or a log's prefix and the module. A path may hold
// blanks; a prefix holds no path.
std::string_view module_before(std::string_view text) {
  if (text.starts_with('/')) return text;
  const size_t path = text.find(" /");
  if (path != std::string_view::npos) return text.substr(path + 1);
  const size_t blank = text.find_last_of(kBlank);
  return blank == std::string_view::npos ? text : text.substr(blank + 1);
}

// "SYMBOL+0xHEX" or "+0xHEX". Nothing at all: glibc leaves out the offset in a program that is
// loaded where it was linked to, where it is the address.
bool backtrace_offset(std::string_view inner, TextPlace& place) {
  if (inner.empty()) {
    place.offset = place.address;
    return true;
  }
  const size_t plus = inner.rfind(kOffset);
  if (plus == std::string_view::npos) return false;
  const auto offset = util::read_hex(inner.substr(plus + kOffset.size()));
  place.symbol = inner.substr(0, plus);
  place.offset = offset.value_or(0);
  return offset.has_value();
}

std::optional<TextPlace> backtrace_place(std::string_view text) {
  const size_t bracket = text.rfind(kAddress);
  if (bracket == std::string_view::npos || !text.ends_with(']')) return std::nullopt;
  const size_t digits = bracket + kAddress.size();
  const auto address = util::read_hex(text.substr(digits, text.size() - digits - 1));
  if (!address) return std::nullopt;
  TextPlace place;
  place.form = TextPlace::Form::kBacktrace;
  place.address = *address;
  std::string_view before = text.substr(0, bracket);
  if (before.ends_with(") ")) before.remove_suffix(1);
  std::string_view inner;
  if (before.ends_with(')')) {
    const size_t open = before.rfind('(');
    if (open == std::string_view::npos) return std::nullopt;
    inner = before.substr(open + 1, before.size() - open - 2);
    before = before.substr(0, open);
  } else if (before.ends_with(' ') || before.ends_with(']') ||
             before.find('/') == std::string_view::npos) {
    return std::nullopt;
  }
  place.module = module_before(before);
  if (place.module.empty() || !backtrace_offset(inner, place)) return std::nullopt;
  return place;
}

// Each "(MODULE+0xHEX)" of a line.
std::vector<TextPlace> embedded_places(std::string_view text) {
  std::vector<TextPlace> found;
  size_t plus = text.size();
  for (int tries = 0; tries < kMostTries && plus != 0; ++tries) {
    plus = text.rfind(kOffset, plus - 1);
    if (plus == std::string_view::npos) break;
    const size_t close = text.find(')', plus);
    const size_t open = std::max(
        {text.rfind("(/", plus) + 1, text.rfind("([", plus) + 1, text.rfind("(.", plus) + 1});
    if (close == std::string_view::npos || open == 0) continue;
    if (auto place = memlog_place(text.substr(open, close - open), TextPlace::Form::kText)) {
      found.push_back(std::move(*place));
    }
  }
  std::reverse(found.begin(), found.end());
  return found;
}

// Each "[0xHEX]" of a line, and each "0xHEX" between blanks, commas and colons.
std::vector<TextPlace> raw_addresses(std::string_view text) {
  constexpr std::string_view kBefore = " \t[,:";
  constexpr std::string_view kBehind = " \t,:;";
  std::vector<TextPlace> found;
  for (size_t at = 0; (at = text.find(kHex, at)) != std::string_view::npos;) {
    const size_t digits = at + kHex.size();
    const size_t end = std::min(text.find_first_not_of("0123456789abcdef", digits), text.size());
    const char before = at == 0 ? ' ' : text[at - 1];
    const char behind = end == text.size() ? ' ' : text[end];
    at = end;
    if (kBefore.find(before) == std::string_view::npos) continue;
    if (before == '[' ? behind != ']' : kBehind.find(behind) == std::string_view::npos) continue;
    // Programs that print with %016lx put zeros in front.
    const size_t first = std::min(text.find_first_not_of('0', digits), end - 1);
    const auto address = util::read_hex(text.substr(first, end - first));
    if (!address || end == digits) continue;
    found.emplace_back();
    found.back().form = TextPlace::Form::kAddress;
    found.back().address = *address;
  }
  return found;
}

}  // namespace

std::vector<TextPlace> find_places(std::string_view line) {
  // Every form has it, and few lines of a log do.
  if (line.find(kHex) == std::string_view::npos) return {};
  const std::string_view text = util::trimmed(line);
  const bool named = line.starts_with('\t') && text.find('\t') != std::string_view::npos;
  if (named) return {};
  const auto alone = [](std::optional<TextPlace> place) {
    return place ? std::vector{std::move(*place)} : std::vector<TextPlace>();
  };
  if (text.starts_with('(') && text.ends_with(')')) {
    return alone(memlog_place(text.substr(1, text.size() - 2), TextPlace::Form::kFrame));
  }
  if (auto place = backtrace_place(text)) return alone(std::move(place));
  auto places = embedded_places(text);
  return places.empty() ? raw_addresses(text) : places;
}

}  // namespace mtrace::symbols
