#include "view/heap/word_reader.h"

#include <cstring>

namespace mtrace::analyze {
namespace {

constexpr uint64_t kWordBytes = sizeof(uint64_t);
// A piece of its own costs about as much as copying so many bytes. Less than a page, so a gap
// between two blocks has no page of its own, which might not be readable.
constexpr uint64_t kMostGap = 1024;
constexpr size_t kFewPieces = 32;

}  // namespace

Piece WordReader::words_of(Piece piece) {
  const uint64_t begin = (piece.address + kWordBytes - 1) & ~(kWordBytes - 1);
  const uint64_t skipped = begin - piece.address;
  if (piece.size < skipped + kWordBytes) return {begin, 0};
  return {begin, (piece.size - skipped) / kWordBytes * kWordBytes};
}

// Returns false when the batch is full.
bool WordReader::append(Piece piece, uint32_t tag) {
  uint64_t gap = kMostGap + 1;
  if (!pieces_.empty()) {
    const uint64_t end = pieces_.back().address + pieces_.back().size;
    if (piece.address >= end) gap = piece.address - end;
  }
  if (gap > kMostGap) {
    if (pieces_.size() == kBatchPieces) return false;
    pieces_.push_back(piece);
  } else {
    if (bytes_ + gap + piece.size > kBatchBytes) return false;
    pieces_.back().size += gap + piece.size;
    bytes_ += gap;
  }
  parts_.push_back({piece.address, static_cast<uint32_t>(bytes_ / kWordBytes),
                    static_cast<uint32_t>(piece.size / kWordBytes), tag});
  bytes_ += piece.size;
  total_ += piece.size;
  return true;
}

void WordReader::read_batch() {
  words_.resize(std::max<size_t>(words_.size(), bytes_ / kWordBytes));
  read_(pieces_, reinterpret_cast<char*>(words_.data()));
}

void WordReader::clear() {
  pieces_.clear();
  parts_.clear();
  bytes_ = 0;
}

const uint64_t* WordReader::page(uint64_t number) {
  if (pages_.empty()) {
    pages_.resize(kPages * kPage / kWordBytes);
    numbers_.resize(kPages);
  }
  const uint64_t place = number % kPages;
  uint64_t* const words = &pages_[place * kPage / kWordBytes];
  if (numbers_[place] != number + 1) {
    one_.assign(1, {number * kPage, kPage});
    read_(one_, reinterpret_cast<char*>(words));
    numbers_[place] = number + 1;
  }
  return words;
}

const std::vector<uint64_t>& WordReader::read(const std::vector<Piece>& pieces) {
  uint64_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.size;
  words_.resize(std::max<size_t>(words_.size(), bytes / kWordBytes));
  if (pieces.size() > kFewPieces) {
    read_(pieces, reinterpret_cast<char*>(words_.data()));
    return words_;
  }
  size_t at = 0;
  for (const Piece& piece : pieces) {
    for (uint64_t i = 0; i < piece.size; i += kWordBytes) {
      const uint64_t address = piece.address + i;
      words_[at++] = page(address / kPage)[address % kPage / kWordBytes];
    }
  }
  return words_;
}

}  // namespace mtrace::analyze
