// The blocks that a search has found and not followed yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mtrace::analyze {

// A few blocks are a list, more are bits: so many blocks take little memory, and come in the order
// of addresses, in which they are read fastest.
class Frontier {
 public:
  // `all`: how many blocks there may be.
  explicit Frontier(size_t all) : all_(all) {}

  // Each block must be added only once before it is taken.
  void add(uint32_t block) {
    list_.push_back(block);
    if (list_.size() == kMostListed) mark();
  }
  bool empty() const { return list_.empty() && !marked_; }
  // Whether there are so few blocks that reading them together gains nothing.
  bool is_small() const { return list_.size() <= kSmall && !marked_; }
  // Hands all blocks to visit(block), which must not add any, and forgets them.
  template <typename Visit>
  void take(const Visit& visit) {
    if (!marked_) sort();
    if (marked_ && !list_.empty()) mark();
    for (const uint32_t block : list_) visit(block);
    list_.clear();
    if (!marked_) return;
    marked_ = false;
    for (size_t i = 0; i < bits_.size(); ++i) {
      for (uint64_t word = bits_[i]; word != 0; word &= word - 1) {
        visit(static_cast<uint32_t>(i * kBits + static_cast<size_t>(__builtin_ctzll(word))));
      }
      bits_[i] = 0;
    }
  }

 private:
  static constexpr size_t kBits = 64;
  static constexpr size_t kSmall = 32;
  static constexpr size_t kMostListed = 1 << 14;

  void sort();
  void mark();

  size_t all_;
  std::vector<uint32_t> list_;
  bool marked_ = false;         // some of bits_ are set
  std::vector<uint64_t> bits_;  // by block
};

}  // namespace mtrace::analyze
