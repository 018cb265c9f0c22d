// Arrays that the library keeps in chunks (base/growing_array.h), as another process reads them.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <vector>

#include "live/ledger_file.h"

namespace mtrace::live {

// Elements by number, in chunks of kChunk; what was never written is zero.
template <typename T, uint32_t kChunk>
class ChunkedCopy {
 public:
  ChunkedCopy(const LedgerFile& file, uint64_t chunks) : file_(file), chunks_(chunks) {}
  T get(uint32_t index) {
    auto [at, fresh] = copies_.try_emplace(index / kChunk);
    if (fresh) load(index / kChunk, at->second);
    return at->second.empty() ? T{} : at->second[index % kChunk];
  }

 private:
  void load(uint32_t chunk, std::vector<T>& copy) {
    uint64_t address = 0;
    if (!file_.read(chunks_ + uint64_t{chunk} * sizeof address, address) || address == 0) return;
    copy.resize(kChunk);
    if (!file_.read(address, copy.data(), kChunk * sizeof(T))) copy.clear();
  }

  const LedgerFile& file_;
  uint64_t chunks_;  // address of the array of their addresses
  absl::flat_hash_map<uint32_t, std::vector<T>> copies_;
};

}  // namespace mtrace::live
