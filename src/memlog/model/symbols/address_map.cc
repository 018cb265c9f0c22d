#include "model/symbols/address_map.h"

#include <re2/re2.h>

#include <algorithm>
#include <set>

#include "model/symbols/elf_file.h"
#include "util/file.h"

namespace mtrace::symbols {

AddressMap::Description& AddressMap::description(size_t line) {
  if (!open_) {
    all_.emplace_back();
    open_ = true;
  }
  all_.back().line = line;
  return all_.back();
}

void AddressMap::begin_text() {
  if (all_.size() > 1) all_.erase(all_.begin(), all_.end() - 1);
  for (Description& one : all_) one.line = 0;
  open_ = false;
}

void AddressMap::add_mapping(size_t line, std::string_view text) {
  // begin-end access offset device inode path
  static const RE2 kMapping(
      R"((?:^|\s)([0-9a-f]{1,16})-([0-9a-f]{1,16}) [r-][w-]x[ps] ([0-9a-f]{1,16}) )"
      R"([0-9a-f]+:[0-9a-f]+ [0-9]+ +(/.*?)( \(deleted\))?\s*$)");
  if (text.find("-x") == std::string_view::npos && text.find("wx") == std::string_view::npos)
    return;
  Part part;
  uint64_t begin = 0;
  uint64_t end = 0;
  if (!RE2::PartialMatch(text, kMapping, RE2::Hex(&begin), RE2::Hex(&end),
                         RE2::Hex(&part.map_offset), &part.module.path)) {
    return;
  }
  part.mapping = {begin, end};
  description(line).parts.push_back(std::move(part));
}

void AddressMap::add_module(size_t line, const profile::Module& module) {
  Part part;
  part.module = module;
  description(line).parts.push_back(std::move(part));
}

void AddressMap::read_file(Part& part) {
  part.read = true;
  const util::Descriptor file(ElfFile::open(where_.sysroot + part.module.path).release());
  if (file.get() < 0) return;
  auto loaded = part.mapping.end == 0
                    ? loaded_file_at(file.get(), part.module.base)
                    : loaded_file(file.get(), part.mapping.begin, part.map_offset);
  if (!loaded) return;
  part.module.base = loaded->bias;
  part.code = std::move(loaded->code);
}

std::optional<AddressMap::Location> AddressMap::find_in(Description& description,
                                                        uint64_t address) {
  const auto within = [&](const Extent& extent) {
    return extent.begin <= address && address < extent.end;
  };
  for (Part& part : description.parts) {
    if (part.mapping.end != 0 && !within(part.mapping)) continue;
    if (part.mapping.end == 0 && address < part.module.base) continue;
    if (!part.read) read_file(part);
    if (!std::any_of(part.code.begin(), part.code.end(), within)) continue;
    return Location{&part.module, address - part.module.base};
  }
  return std::nullopt;
}

std::optional<AddressMap::Location> AddressMap::find(uint64_t address, size_t line) {
  const auto next =
      std::upper_bound(all_.begin(), all_.end(), line,
                       [](size_t number, const Description& one) { return number < one.line; });
  if (next != all_.end()) {
    if (const auto found = find_in(*next, address)) return found;
  }
  return next == all_.begin() ? std::nullopt : find_in(*std::prev(next), address);
}

std::string AddressMap::full_path(std::string_view path) const {
  while (path.starts_with("./") || path.starts_with("../")) path.remove_prefix(path.find('/') + 1);
  std::set<std::string> found;
  for (const Description& description : all_) {
    for (const Part& part : description.parts) {
      const std::string& full = part.module.path;
      const bool ends_so = full.size() > path.size() && full.ends_with(path) &&
                           full[full.size() - path.size() - 1] == '/';
      if (ends_so && !path.empty()) found.insert(full);
    }
  }
  return found.size() == 1 ? *found.begin() : std::string();
}

}  // namespace mtrace::symbols
