#include "symbolize/symbol_address.h"

#include <cstring>

#include "symbolize/worker.h"

namespace mtrace::symbolize {
namespace {

constexpr unsigned kSymbolAddressSeconds = 60;

void put(std::string& out, uint64_t number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

}  // namespace

std::vector<std::vector<uint64_t>> symbol_addresses(const SearchPath& where,
                                                    const std::string& path,
                                                    const std::string& build_id,
                                                    const std::vector<std::string>& names) {
  std::vector<std::vector<uint64_t>> found(names.size());
  // For each name the number of its addresses, then these.
  const auto work = [&] {
    ModuleSymbols module(where, path, build_id);
    std::string out;
    for (const std::string& name : names) {
      const std::vector<uint64_t> addresses = module.addresses(name);
      put(out, addresses.size());
      for (const uint64_t address : addresses) put(out, address);
    }
    return out;
  };
  const auto bytes = run_isolated(work, kSymbolAddressSeconds);
  if (!bytes) return found;
  size_t at = 0;
  const auto take = [&] {
    uint64_t number = 0;
    if (bytes->size() - at >= sizeof number) {
      std::memcpy(&number, bytes->data() + at, sizeof number);
      at += sizeof number;
    }
    return number;
  };
  for (std::vector<uint64_t>& addresses : found) {
    for (uint64_t left = take(); left != 0 && at < bytes->size(); --left) {
      addresses.push_back(take());
    }
  }
  return found;
}

}  // namespace mtrace::symbolize
