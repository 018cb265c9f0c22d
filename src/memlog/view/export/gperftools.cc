#include "view/export/gperftools.h"

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "format/memlog.h"
#include "util/text.h"
#include "view/export/stacks.h"

namespace mtrace::exporting {
namespace {

constexpr uint64_t kPage = 4096;
// Made addresses lie in the kernel's half, where no code of a program is.
constexpr uint64_t kMade = 0xffff800000000000;

// Without the mark between the functions of an address.
std::string symbol(std::string name) {
  for (size_t at = 0; (at = name.find("--", at)) != std::string::npos;) name.insert(at + 1, 1, ' ');
  return name;
}

class GperftoolsWriter {
 public:
  GperftoolsWriter(const Stacks& stacks, const analyze::Table& table)
      : stacks_(stacks), table_(table), sites_(stacks.locations) {}

  // Symbols and profile.
  std::string write() {
    const std::string profile = write_profile(0);
    std::string out = fmt::format("--- symbol\nbinary={}\n", stacks_.program);
    for (size_t i = 0; i < addresses_.size(); ++i) {
      out += fmt::format("0x{:x} {}\n", addresses_[i], names(i));
    }
    return out + "---\n" + profile;
  }

  // `beyond`: added to the addresses of callers.
  std::string write_profile(uint64_t beyond) {
    std::string entries;
    for (const Stack& stack : stacks_.stacks) entry(stack, beyond, entries);
    return fmt::format("heap profile: {}: {} [{}: {}] @ heapprofile\n", blocks_, stacks_.total,
                       allocations_, allocated_) +
           entries + mappings();
  }

  absl::flat_hash_map<uint64_t, std::string> symbols() {
    for (const Stack& stack : stacks_.stacks) sites(stack);
    absl::flat_hash_map<uint64_t, std::string> out;
    for (size_t i = 0; i < addresses_.size(); ++i) out[addresses_[i]] = names(i);
    return out;
  }

 private:
  // Gives addresses to those that are new.
  std::vector<size_t> sites(const Stack& stack) {
    std::vector<size_t> all = sites_.of(stack.locations);
    for (const size_t site : all) {
      if (site == addresses_.size()) addresses_.push_back(address(sites_.all()[site]));
    }
    return all;
  }

  std::string names(size_t site) const {
    std::string out;
    const char* between = "";
    for (const size_t line : sites_.all()[site].lines) {
      out += between + symbol(stacks_.locations[line].function);
      between = "--";
    }
    return out;
  }

  void entry(const Stack& stack, uint64_t beyond, std::string& out) {
    const analyze::Row& row = *stack.row;
    // How many blocks there are is known of no other number.
    const bool plain = stacks_.column == "bytes";
    const uint64_t blocks = plain ? static_cast<uint64_t>(std::max<int64_t>(row.blocks, 0)) : 0;
    const bool told = row.allocations != 0 || !plain;
    const uint64_t allocations = told ? row.allocations : blocks;
    const uint64_t allocated = told ? row.allocated_bytes : stack.value;
    blocks_ += blocks;
    allocations_ += allocations;
    allocated_ += allocated;
    out += fmt::format("{}: {} [{}: {}] @", blocks, stack.value, allocations, allocated);
    uint64_t add = 0;
    for (const size_t site : sites(stack)) {
      out += fmt::format(" 0x{:016x}", addresses_[site] + add);
      add = beyond;
    }
    out += '\n';
  }

  // The address in the process; where that is not known, or taken by something of the same address
  // in another process, one that is made of the names.
  uint64_t address(const Site& site) {
    uint64_t at = site.offset;
    if (site.module != Location::kNoModule) {
      const profile::Module& module = table_.modules()[site.module];
      at = module.python ? 0 : at + module.base;
      uint64_t& last = last_[site.module];
      last = std::max(last, site.offset);
    }
    if (at != 0 && taken_.insert(at).second) return at;
    std::string names;
    for (const size_t line : site.lines) names += stacks_.locations[line].function + '\n';
    // The same in every process, and so in every answer of a server.
    at = kMade | format::fnv1a(names.data(), names.size()) >> 17;
    while (!taken_.insert(at).second) ++at;
    return at;
  }

  // As /proc/PID/maps has it, as far as the stacks show: from the module's start to the last page
  // in it that a frame is in.
  std::string mappings() const {
    std::string out = "\nMAPPED_LIBRARIES:\n";
    for (const auto& [index, offset] : last_) {
      const profile::Module& module = table_.modules()[index];
      out +=
          fmt::format("{:016x}-{:016x} r-xp 00000000 00:00 0 {}\n", module.base,
                      module.base + (offset / kPage + 1) * kPage, util::escaped(module.path, ""));
    }
    return out;
  }

  const Stacks& stacks_;
  const analyze::Table& table_;
  Sites sites_;
  std::vector<uint64_t> addresses_;  // by site
  absl::flat_hash_set<uint64_t> taken_;
  std::map<size_t, uint64_t> last_;  // offset in each module
  uint64_t blocks_ = 0;
  uint64_t allocations_ = 0;
  uint64_t allocated_ = 0;
};

}  // namespace

std::string gperftools(const Stacks& stacks, const analyze::Table& table) {
  return GperftoolsWriter(stacks, table).write();
}

std::string gperftools_profile(const Stacks& stacks, const analyze::Table& table) {
  return GperftoolsWriter(stacks, table).write_profile(1);
}

absl::flat_hash_map<uint64_t, std::string> gperftools_symbols(const Stacks& stacks,
                                                              const analyze::Table& table) {
  return GperftoolsWriter(stacks, table).symbols();
}

}  // namespace mtrace::exporting
