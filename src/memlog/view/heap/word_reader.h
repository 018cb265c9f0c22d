// Reads the aligned words of a process's memory for a scan: many pieces at a time, or a few with
// what is around them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "view/heap/reachability.h"

namespace mtrace::analyze {

class WordReader {
 public:
  // `read` must outlive this.
  explicit WordReader(const ReadPieces& read) : read_(read) {}

  // Hands the words of the piece to visit(words, count, address, tag), at the latest in finish(), a
  // large piece in several parts. Pieces in the order of addresses cost least: neighbours are read
  // at once. The visitor must not add pieces.
  template <typename Visit>
  void add(Piece piece, uint32_t tag, const Visit& visit) {
    piece = words_of(piece);
    while (piece.size != 0) {
      const uint64_t part = std::min(piece.size, kBatchBytes - bytes_);
      if (part != 0 && append({piece.address, part}, tag)) {
        piece.address += part;
        piece.size -= part;
      } else {
        finish(visit);
      }
    }
  }

  template <typename Visit>
  void finish(const Visit& visit) {
    if (parts_.empty()) return;
    read_batch();
    for (const Part& part : parts_) {
      visit(&words_[part.first], part.count, part.address, part.tag);
    }
    clear();
  }

  // Hands them over at once, from pages that are kept. For blocks of which each is known only when
  // the one before it was read, as the nodes of a list.
  template <typename Visit>
  void visit_now(Piece piece, uint32_t tag, const Visit& visit) {
    piece = words_of(piece);
    total_ += piece.size;
    while (piece.size != 0) {
      const uint64_t into = piece.address % kPage;
      const uint64_t part = std::min(piece.size, kPage - into);
      visit(page(piece.address / kPage) + into / sizeof(uint64_t), part / sizeof(uint64_t),
            piece.address, tag);
      piece.address += part;
      piece.size -= part;
    }
  }

  // Returns the words of the pieces, which must be aligned, one after the other.
  const std::vector<uint64_t>& read(const std::vector<Piece>& pieces);

  // The bytes that were handed over.
  uint64_t total() const { return total_; }

 private:
  static constexpr uint64_t kPage = 4096;
  static constexpr uint64_t kPages = 1024;  // that are kept
  static constexpr uint64_t kBatchBytes = 256 << 10;
  static constexpr size_t kBatchPieces = 1024;

  // Of the batch: `count` words from words_[first] on.
  struct Part {
    uint64_t address;
    uint32_t first;
    uint32_t count;
    uint32_t tag;
  };

  static Piece words_of(Piece piece);
  bool append(Piece piece, uint32_t tag);
  void read_batch();
  void clear();
  const uint64_t* page(uint64_t number);

  const ReadPieces& read_;
  std::vector<Piece> pieces_;  // of the batch: what is read
  std::vector<Part> parts_;    // what was asked for
  uint64_t bytes_ = 0;         // of pieces_
  uint64_t total_ = 0;
  std::vector<uint64_t> words_;
  std::vector<Piece> one_;         // a page being read: pieces_ may hold a batch meanwhile
  std::vector<uint64_t> pages_;    // words; empty: none was read yet
  std::vector<uint64_t> numbers_;  // 1 + the page in each place; 0: none
};

}  // namespace mtrace::analyze
