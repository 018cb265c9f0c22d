#include "view/heap/block_sizes.h"

namespace mtrace::analyze {

size_t SizeHistogram::class_of(uint64_t size) { return static_cast<size_t>(std::bit_width(size)); }

uint64_t SizeHistogram::least(size_t number) {
  return number == 0 ? 0 : uint64_t{1} << (number - 1);
}

uint64_t SizeHistogram::most(size_t number) { return number == 0 ? 0 : least(number) * 2 - 1; }

void SizeHistogram::add(uint64_t size) {
  SizeClass& one = classes_[class_of(size)];
  ++one.blocks;
  one.bytes += size;
  ++blocks_;
  bytes_ += size;
}

void SizeHistogram::add(const SizeHistogram& more) {
  for (size_t i = 0; i < kClasses; ++i) {
    classes_[i].blocks += more.classes_[i].blocks;
    classes_[i].bytes += more.classes_[i].bytes;
  }
  blocks_ += more.blocks_;
  bytes_ += more.bytes_;
}

void BlockSizes::add(uint32_t stack, uint64_t size) { stacks_[stack].add(size); }

std::vector<StackSizes> BlockSizes::stacks(bool by_size) const {
  std::vector<StackSizes> out;
  for (const auto& [stack, sizes] : stacks_) out.push_back({stack, sizes});
  const auto key = [by_size](const StackSizes& one) {
    return std::tuple(by_size ? one.sizes.average() : one.sizes.bytes(), one.sizes.bytes());
  };
  std::sort(out.begin(), out.end(), [&](const StackSizes& a, const StackSizes& b) {
    return key(a) != key(b) ? key(a) > key(b) : a.stack < b.stack;
  });
  return out;
}

}  // namespace mtrace::analyze
