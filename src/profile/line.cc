#include "profile/line.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/escape.h"
#include "format/memlog.h"
#include "profile/module_table.h"
#include "profile/text.h"

namespace mtrace::profile {
namespace {

constexpr uint32_t kMaxGeneration = 1u << 30;
constexpr uint64_t kMaxLine = UINT32_MAX;

// Where a field stands that is a plain number.
uint64_t* number_field(Entry& entry, std::string_view key) {
  Activity& activity = entry.activity;
  if (key == format::kFieldAllocations) return &activity.allocations;
  if (key == format::kFieldAllocated) return &activity.allocated_bytes;
  if (key == format::kFieldFrees) return &activity.frees;
  if (key == format::kFieldFreed) return &activity.freed_bytes;
  if (key == format::kFieldTemporary) return &activity.temporary;
  if (key == format::kFieldShortLived) return &activity.short_lived;
  if (key == format::kFieldLifetimeMin) return &activity.lifetime.least;
  if (key == format::kFieldLifetimeMean) return &activity.lifetime.mean;
  if (key == format::kFieldLifetimeMax) return &activity.lifetime.most;
  if (key == format::kFieldError) return &entry.error;
  if (key == format::kFieldLiveError) return &entry.live_error;
  if (key == format::kFieldAge) return &entry.age;
  if (key == format::kFieldSlack) return &entry.slack;
  if (key == format::kFieldPeak) return &entry.peak;
  return nullptr;
}

void set_field(Entry& entry, const Field& field) {
  const std::string_view key = field.key;
  const auto bad = [&](const char* expected) {
    throw LineError{fmt::format("{}={} is not {}", field.key, quoted(field.value), expected)};
  };
  if (key == format::kFieldBlocks) {
    const auto value = read_signed(field.value);
    if (!value) bad("a signed number of 64 bits");
    entry.blocks = *value;
  } else if (key == format::kFieldLive) {
    const auto value = read_unsigned(field.value, INT64_MAX);
    if (!value) bad("a number of bytes");
    entry.live = *value;
  } else if (uint64_t* count = number_field(entry, key)) {
    const auto value = read_unsigned(field.value, INT64_MAX);
    if (!value) bad("a number");
    *count = *value;
  } else if (key == format::kFieldStack) {
    const auto value = read_stack_id(field.value);
    if (!value) bad("16 hex digits");
    entry.stack = *value;
  }
}

std::string read_source(std::string_view text) {
  const size_t colon = text.rfind(':');
  const auto line = colon == std::string_view::npos || colon == 0
                        ? std::nullopt
                        : read_unsigned(text.substr(colon + 1), kMaxLine);
  if (!line || *line == 0) {
    throw LineError{fmt::format("{} is not FILE:LINE", quoted(text))};
  }
  return unescape_or_throw(text);
}

void read_place(std::string_view text, ModuleTable& modules, Frame& frame) {
  const auto bad = [&] {
    throw LineError{fmt::format("{} is not (MODULE+0xHEX), (0xHEX) or (inlined)", quoted(text))};
  };
  if (text == format::kInlined) {
    frame.place = Place::kInlined;
    return;
  }
  if (text.size() < 5 || text.front() != '(' || text.back() != ')') bad();
  const std::string_view inner = text.substr(1, text.size() - 2);
  const size_t plus = inner.rfind("+0x");
  const bool address = plus == std::string_view::npos;
  if (address ? !inner.starts_with("0x") : plus == 0) bad();
  const auto offset = read_hex(inner.substr(address ? 2 : plus + 3));
  if (!offset) bad();
  frame.offset = *offset;
  frame.place = address ? Place::kAddress : Place::kModule;
  if (!address) frame.module = modules.index(inner.substr(0, plus));
}

}  // namespace

bool knows_field(std::string_view key) {
  Entry none;
  return key == format::kFieldBlocks || key == format::kFieldLive || key == format::kFieldStack ||
         number_field(none, key) != nullptr;
}

std::string quoted(std::string_view text) {
  constexpr size_t kLongest = 60;
  if (text.size() <= kLongest) return '"' + escaped(text, "\"") + '"';
  return '"' + escaped(text.substr(0, kLongest), "\"") + "...\"";
}

std::string unescape_or_throw(std::string_view text) {
  auto plain = unescaped(text);
  if (!plain) throw LineError{"a backslash that begins neither \\\\ nor \\xHH in " + quoted(text)};
  return std::move(*plain);
}

void check_bytes(std::string_view line, bool tabs) {
  if (is_printable(line, tabs)) return;
  const auto* bytes = reinterpret_cast<const unsigned char*>(line.data());
  for (size_t i = 0; i < line.size();) {
    const size_t length = format::utf8_length(bytes + i, line.size() - i);
    const bool control = bytes[i] == 0x7f || (bytes[i] < 0x20 && !(tabs && bytes[i] == '\t'));
    if (length == 0 || control) {
      throw LineError{fmt::format("byte {} is 0x{:02x}, which must be escaped", i + 1, bytes[i])};
    }
    i += length;
  }
}

Field read_meta(std::string_view line) {
  const size_t colon = line.find(": ");
  if (!line.starts_with("# ") || colon == std::string_view::npos ||
      !is_key(line.substr(2, colon - 2))) {
    throw LineError{"not a line of the form \"# key: value\""};
  }
  const std::string_view value = line.substr(colon + 2);
  unescape_or_throw(value);
  return {std::string(line.substr(2, colon - 2)), std::string(value)};
}

Entry read_entry(std::string_view line) {
  Entry entry;
  entry.fields.reserve(static_cast<size_t>(std::count(line.begin(), line.end(), '\t')));
  const auto parts = split(line, '\t');
  size_t next = 0;
  if (parts[0].starts_with('@')) {
    entry.kind = parts[0].substr(1);
    if (!is_kind(entry.kind))
      throw LineError{fmt::format("{} is not a kind of entry", quoted(parts[0]))};
    if (parts.size() == 1) throw LineError{"the kind is not followed by a number of bytes"};
    next = 1;
  }
  const auto bytes = read_signed(parts[next]);
  if (!bytes) {
    throw LineError{
        fmt::format("{} is not a signed number of bytes of 64 bits", quoted(parts[next]))};
  }
  entry.bytes = *bytes;
  while (++next < parts.size()) {
    const size_t equals = parts[next].find('=');
    if (equals == std::string_view::npos || !is_key(parts[next].substr(0, equals))) {
      throw LineError{fmt::format("{} is not key=value", quoted(parts[next]))};
    }
    Field field{std::string(parts[next].substr(0, equals)),
                std::string(parts[next].substr(equals + 1))};
    if (field.value.find('\\') != std::string::npos) unescape_or_throw(field.value);
    if (find_field(entry.fields, field.key) != nullptr) {
      throw LineError{fmt::format("{}= stands there twice", field.key)};
    }
    set_field(entry, field);
    entry.fields.push_back(std::move(field));
  }
  if (entry.heap()) {
    for (const char* key : {format::kFieldBlocks, format::kFieldLive, format::kFieldStack}) {
      if (find_field(entry.fields, key) == nullptr) {
        throw LineError{fmt::format("the entry has no {}=", key)};
      }
    }
  }
  if (entry.fields.empty()) throw LineError{"the entry has no field"};
  return entry;
}

Frame read_frame(std::string_view line, ModuleTable& modules) {
  Frame frame;
  const size_t last = line.rfind('\t');
  if (last == std::string_view::npos) {
    read_place(line, modules, frame);
    return frame;
  }
  const auto tabs = std::count(line.begin(), line.end(), '\t');
  if (tabs > 2) {
    throw LineError{
        fmt::format("a frame of {} fields: at most function, source and place", tabs + 1)};
  }
  read_place(line.substr(last + 1), modules, frame);
  const size_t first = line.find('\t');
  const std::string_view function = line.substr(0, first);
  if (function.empty()) throw LineError{"the name of the function is empty"};
  if (function != format::kUnknownFunction) frame.function = unescape_or_throw(function);
  if (first != last) frame.source = read_source(line.substr(first + 1, last - first - 1));
  return frame;
}

ModuleIndex ModuleTable::index(std::string_view escaped_name) {
  if (!last_name_.empty() && escaped_name == last_name_) return last_;
  const auto known = by_name_.find(escaped_name);
  if (known != by_name_.end()) {
    last_name_ = escaped_name;
    return last_ = known->second;
  }

  const size_t hash = escaped_name.find('#');
  uint32_t generation = 1;
  if (hash != std::string_view::npos) {
    const auto number = read_unsigned(escaped_name.substr(hash + 1), kMaxGeneration);
    if (!number || *number < 2) {
      throw LineError{fmt::format("{} is not a module's generation (from 2)",
                                  quoted(escaped_name.substr(hash)))};
    }
    generation = static_cast<uint32_t>(*number);
  }
  std::string path = unescape_or_throw(escaped_name.substr(0, hash));
  if (path.empty()) throw LineError{"the module's path is empty"};
  const auto [place, added] =
      by_path_.try_emplace(std::pair(path, generation), static_cast<ModuleIndex>(modules_.size()));
  if (added) {
    Module module;
    module.path = std::move(path);
    module.generation = generation;
    modules_.push_back(std::move(module));
  }
  by_name_.emplace(escaped_name, place->second);
  return place->second;
}

}  // namespace mtrace::profile
