#include "export/gperftools.h"

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "export/sites.h"
#include "profile/text.h"

namespace mtrace::exporting {
namespace {

constexpr uint64_t kPage = 4096;

// Without the mark between the functions of an address.
std::string symbol(std::string name) {
  for (size_t at = 0; (at = name.find("--", at)) != std::string::npos;) name.insert(at + 1, 1, ' ');
  return name;
}

class Writer {
 public:
  Writer(const Stacks& stacks, const analyze::Table& table)
      : stacks_(stacks), table_(table), sites_(stacks.locations) {}

  std::string write() {
    std::string entries;
    for (const Stack& stack : stacks_.stacks) entry(stack, entries);
    std::string out = fmt::format("--- symbol\nbinary={}\n", stacks_.program);
    for (size_t i = 0; i < addresses_.size(); ++i) {
      out += fmt::format("0x{:x} ", addresses_[i]);
      const char* between = "";
      for (const size_t line : sites_.all()[i].lines) {
        out += between + symbol(stacks_.locations[line].function);
        between = "--";
      }
      out += '\n';
    }
    out += fmt::format("---\nheap profile: {}: {} [{}: {}] @ heapprofile\n", blocks_, stacks_.total,
                       allocations_, allocated_);
    return out + entries + mappings();
  }

 private:
  void entry(const Stack& stack, std::string& out) {
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
    for (const size_t site : sites_.of(stack.locations)) {
      if (site == addresses_.size()) addresses_.push_back(address(sites_.all()[site]));
      out += fmt::format(" 0x{:016x}", addresses_[site]);
    }
    out += '\n';
  }

  // The address in the process; where that is not known, or taken by something of the same address
  // in another process, the next number that no address has: low ones are never code.
  uint64_t address(const Site& site) {
    uint64_t at = site.offset;
    if (site.module != Location::kNoModule) {
      const profile::Module& module = table_.modules()[site.module];
      at += module.base;
      uint64_t& last = last_[site.module];
      last = std::max(last, site.offset);
    }
    while (at == 0 || !taken_.insert(at).second) at = ++made_;
    return at;
  }

  // As /proc/PID/maps has it, as far as the stacks show: from the module's start to the last page
  // in it that a frame is in.
  std::string mappings() const {
    std::string out = "\nMAPPED_LIBRARIES:\n";
    for (const auto& [index, offset] : last_) {
      const profile::Module& module = table_.modules()[index];
      out += fmt::format("{:016x}-{:016x} r-xp 00000000 00:00 0 {}\n", module.base,
                         module.base + (offset / kPage + 1) * kPage,
                         profile::escaped(module.path, ""));
    }
    return out;
  }

  const Stacks& stacks_;
  const analyze::Table& table_;
  Sites sites_;
  std::vector<uint64_t> addresses_;  // by site
  absl::flat_hash_set<uint64_t> taken_;
  uint64_t made_ = 0;
  std::map<size_t, uint64_t> last_;  // offset in each module
  uint64_t blocks_ = 0;
  uint64_t allocations_ = 0;
  uint64_t allocated_ = 0;
};

}  // namespace

std::string gperftools(const Stacks& stacks, const analyze::Table& table) {
  return Writer(stacks, table).write();
}

}  // namespace mtrace::exporting
