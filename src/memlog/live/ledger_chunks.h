// Reads the library's chunked arrays (base/growing_array.h) from another process.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <vector>

#include "live/ledger_file.h"

namespace mtrace::live {

// An array in chunks of kChunk elements. Elements never written, or not in the file, read as zero.
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
  uint64_t chunks_;  // address of the array of chunk addresses
  absl::flat_hash_map<uint32_t, std::vector<T>> copies_;
};

}  // namespace mtrace::live
