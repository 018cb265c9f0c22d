// Names that tell nothing in place of all texts of a memlog.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "format/escape.h"
#include "format/mapping_form.h"
#include "format/memlog.h"
#include "model/profile/pseudonyms.h"
#include "model/profile/stack_id.h"
#include "model/profile/writer.h"
#include "util/text.h"

namespace mtrace::profile {
namespace {

// Lines and fields that have numbers, times and words of the format only.
constexpr std::array<std::string_view, 30> kPlainLines = {
    format::kKeyPid,        format::kKeyParent,       format::kKeySeq,       format::kKeyMerged,
    format::kKeyStarted,    format::kKeyTaken,        format::kKeyInherited, format::kKeySampled,
    format::kKeyDelta,      format::kKeyLive,         format::kKeyUsable,    format::kKeyPeak,
    format::kKeyPeakError,  format::kKeyAllocated,    format::kKeyFreed,     format::kKeyRecording,
    format::kKeyFailed,     format::kKeyUnknownFrees, format::kKeyReports,   format::kKeyRss,
    format::kKeyRssMax,     format::kKeyVirtual,      format::kKeyCost,      format::kKeyPerfMap,
    format::kKeyResolution, format::kKeyUptime,       format::kKeyResolved,  format::kKeyLost,
    format::kKeyMisuse,     format::kKeyHeap};
constexpr std::array<std::string_view, 15> kPlainFields = {
    format::kFieldBlocks,       format::kFieldLive,        format::kFieldAllocations,
    format::kFieldAllocated,    format::kFieldFrees,       format::kFieldFreed,
    format::kFieldTemporary,    format::kFieldShortLived,  format::kFieldLifetimeMin,
    format::kFieldLifetimeMean, format::kFieldLifetimeMax, format::kFieldAge,
    format::kFieldSlack,        format::kFieldPeak,        format::kFieldSaturated};

bool is_plain(const auto& list, std::string_view key) {
  return std::find(std::begin(list), std::end(list), key) != std::end(list);
}

// As mapping_form.h has them.
bool are_flags(std::string_view value) {
  for (const std::string_view word : util::split(value, ',')) {
    const bool known =
        std::any_of(std::begin(format::kMappingFlags), std::end(format::kMappingFlags),
                    [&](const auto& flag) { return word == flag.name; });
    if (!known && !(word.starts_with("0x") && util::read_hex(word.substr(2)))) return false;
  }
  return true;
}

uint64_t id_of(const Frames& frames, const std::vector<uint64_t>& identities) {
  const auto identity = [&](ModuleIndex number) { return identities[number]; };
  return stack_ids({frames.begin(), frames.end()}, identity).value();
}

class AnonymousMemlog {
 public:
  AnonymousMemlog(Memlog& memlog, Pseudonyms& names) : memlog_(memlog), names_(names) {}

  void all() {
    for (Module& module : memlog_.modules) {
      before_.push_back(identity_of(module));
      kept_.push_back(names_.module(module));
      after_.push_back(identity_of(module));
    }
    for (Entry& entry : memlog_.entries) {
      const uint64_t id = new_id(entry);
      if (ids_.try_emplace(entry.stack, id).second && entry.stack != 0 && id != entry.stack) {
        names_.remember(fmt::format("{:016x}", id), fmt::format("stack={:016x}", entry.stack));
      }
      entry.stack = id;
    }
    for (Entry& entry : memlog_.entries) change(entry);
    sort_equal();
    for (auto* lines : {&memlog_.before, &memlog_.after}) change(*lines);
  }

 private:
  // That of the new modules, if it was that of the modules; it is the same in an event log.
  uint64_t new_id(const Entry& entry) const {
    return id_of(entry.frames, before_) == entry.stack ? id_of(entry.frames, after_)
                                                       : names_.stack(entry.stack);
  }

  std::string new_id(std::string_view text) const {
    const uint64_t id = util::read_stack_id(text).value_or(0);
    const auto known = ids_.find(id);
    return fmt::format("{:016x}", known == ids_.end() ? names_.stack(id) : known->second);
  }

  void change(Entry& entry) {
    entry.kind = names_.kind(entry.kind);
    std::string fields;
    for (const std::string_view field : util::split(entry.fields, '\t')) {
      const size_t equals = std::min(field.find('='), field.size());
      const auto value = new_value(field.substr(0, equals),
                                   field.substr(std::min(equals + 1, field.size())), entry);
      if (!value) continue;
      fields += fmt::format("{}{}={}", fields.empty() ? "" : "\t", field.substr(0, equals), *value);
    }
    entry.fields = fields;
    if (entry.frames.empty()) return;
    Frames::List& frames = entry.frames.edit();
    bool kept = false;  // the module of the next frame that has one
    for (size_t i = frames.size(); i-- != 0;) {
      Frame& frame = frames[i];
      if (frame.place == Place::kAddress) kept = false;
      if (frame.place == Place::kModule) kept = kept_[frame.module];
      if (kept) continue;
      const bool python = frame.place == Place::kModule && memlog_.modules[frame.module].python;
      frame.function = python && frame.function.text()[0] != '<'
                           ? names_.of('f', frame.function.text())
                           : names_.function(frame.function.text());
      frame.source = names_.source(frame.source.text());
    }
  }

  // Nothing: the field is left out.
  std::optional<std::string> new_value(std::string_view key, std::string_view value,
                                       const Entry& entry) const {
    if (is_plain(kPlainFields, key)) return std::string(value);
    if (key == format::kFieldStack) return fmt::format("{:016x}", entry.stack);
    if (key == format::kFieldCall) {
      return util::escaped(names_.call(util::unescaped(value).value_or("")), "");
    }
    if (key == format::kFieldProtection && value.find_first_not_of("rwx-") == value.npos) {
      return std::string(value);
    }
    if (key == format::kFieldFlags && are_flags(value)) return std::string(value);
    return std::nullopt;
  }

  // Of equal bytes, that with the smaller id comes first.
  void sort_equal() {
    auto& all = memlog_.entries;
    for (auto begin = all.begin(); begin != all.end();) {
      const auto end = std::find_if(begin, all.end(), [&](const Entry& one) {
        return one.kind != begin->kind || one.bytes != begin->bytes;
      });
      std::stable_sort(begin, end,
                       [](const Entry& a, const Entry& b) { return a.stack < b.stack; });
      begin = end;
    }
  }

  void change(std::vector<Field>& lines) {
    std::vector<Field> out;
    for (const Field& line : lines) {
      if (line.key == format::kKeyModule) {
        put_modules(out);
      } else if (line.key == format::kKeyRegion) {
        put_regions(out);
      } else if (is_plain(kPlainLines, line.key)) {
        out.push_back(line);
      } else if (auto value = new_line(line.key, line.value)) {
        out.push_back({line.key, *value});
      }
    }
    lines = std::move(out);
  }

  void put_modules(std::vector<Field>& out) {
    if (std::exchange(modules_put_, true)) return;
    for (const Module& module : memlog_.modules) {
      if (module.described) out.push_back({format::kKeyModule, module_text(module)});
    }
  }

  // By what they are: that is known from names of files which now change.
  void put_regions(std::vector<Field>& out) {
    if (std::exchange(regions_put_, true)) return;
    for (const RegionUse& region : memlog_.header.regions) {
      out.push_back(
          {format::kKeyRegion, fmt::format("resident={} size={} {}", region.resident, region.size,
                                           util::escaped(names_.region(region.name), ""))});
    }
  }

  std::string new_holders(std::string_view value) const {
    std::string out;
    for (const std::string_view word : util::split(value, ' ')) {
      const size_t equals = std::min(word.find('='), word.size());
      out += fmt::format("{}{}{}", out.empty() ? "" : " ", new_id(word.substr(0, equals)),
                         word.substr(equals));
    }
    return out;
  }

  // Nothing: the line is left out.
  std::optional<std::string> new_line(std::string_view key, std::string_view value) {
    const std::string text = util::unescaped(value).value_or("");
    const size_t blank = std::min(value.find(' '), value.size());
    const std::string rest(value.substr(blank));
    if (key == format::kKeyProgram) return util::escaped(names_.path(text), "");
    if (key == format::kKeyCommand) return names_.command(value);
    if (key == format::kKeyTrigger) return names_.trigger(text);
    if (key == format::kKeyLabel) return util::escaped(names_.label(text), "");
    if (key == format::kKeyNote) return util::escaped(names_.note(text), "");
    if (key == format::kKeyKind) return names_.kind(value.substr(0, blank)) + rest;
    if (key == format::kKeyLibrary) return names_.library(value);
    if (key == format::kKeyHost) return new_host(value);
    if (key == format::kKeyCalls) return new_calls(value);
    if (key == format::kKeyHeapStacks) return new_holders(value);
    if (key == format::kKeyJitDump) {
      const size_t at = value.find(" bytes ");
      if (at == value.npos) return std::nullopt;
      const size_t path = at + 7;
      return fmt::format("{}{}", value.substr(0, path),
                         names_.path(util::unescaped(value.substr(path)).value_or("")));
    }
    return std::nullopt;
  }

  std::string new_host(std::string_view value) {
    std::string out;
    for (const std::string_view word : util::split(value, ' ')) {
      constexpr std::string_view kBoot = "boot-id=";
      if (out.empty()) {
        out = names_.of('h', word);
      } else if (word.starts_with(kBoot)) {
        out += fmt::format(" {}{}", kBoot, names_.boot_id(word.substr(kBoot.size())));
      } else if (word == "arch=x86_64" || word == "arch=aarch64") {
        out += fmt::format(" {}", word);
      }
    }
    return out;
  }

  std::string new_calls(std::string_view value) {
    std::string out;
    for (const std::string_view word : util::split(value, ' ')) {
      const size_t equals = std::min(word.rfind('='), word.size());
      out += fmt::format("{}{}{}", out.empty() ? "" : " ", names_.call(word.substr(0, equals)),
                         word.substr(equals));
    }
    return out;
  }

  Memlog& memlog_;
  Pseudonyms& names_;
  std::vector<bool> kept_;        // by module; so are the next two
  std::vector<uint64_t> before_;  // identities in stack ids
  std::vector<uint64_t> after_;
  absl::flat_hash_map<uint64_t, uint64_t> ids_;  // new ones of stacks
  bool modules_put_ = false;
  bool regions_put_ = false;
};

}  // namespace

void anonymise(Memlog& memlog, Pseudonyms& names) { AnonymousMemlog(memlog, names).all(); }

}  // namespace mtrace::profile
