// zstd, the form in which reports are compressed (RFC 8878).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace mtrace::util {

// Compressed data is damaged or ends too early. The text says which, and completes a sentence that
// begins with the name of the file.
struct DamagedCompression {
  std::string what;
};

// Returns whether a file that begins with `head` is compressed. Four bytes are enough to tell.
bool is_compressed(std::string_view head);
inline constexpr size_t kCompressedMagic = 4;  // bytes

// Returns how much the beginning of a compressed file says that it holds, in bytes; 0: it does not
// say. May be a lie.
uint64_t claimed_size(std::string_view head);
inline constexpr size_t kCompressedHead = 18;  // bytes that claimed_size() needs

// Decompresses a file from its beginning.
class Decompressor {
 public:
  // Writes the next bytes of the file to `to`, at most `size`; returns their number, 0 at the end.
  using Source = std::function<size_t(char* to, size_t size)>;

  Decompressor();
  ~Decompressor();
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  // Writes the next bytes of the text to `to`, at most `size`, which is not 0; returns their
  // number, 0 at the end. Throws DamagedCompression once all that came before the damage was
  // returned, and whatever `source` throws.
  size_t read(char* to, size_t size, const Source& source);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Compresses `text` and gives the pieces of the result to `sink`. Throws std::bad_alloc, and
// whatever `sink` throws.
void compress(std::string_view text, const std::function<void(std::string_view)>& sink);

// The same for a text that comes in pieces.
class Compressor {
 public:
  using Sink = std::function<void(std::string_view)>;

  // Readers learn from `size`, the bytes of the whole text, whether to read it in pieces; 0: it is
  // not known.
  explicit Compressor(Sink sink, uint64_t size = 0);
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  void write(std::string_view text) { put(text, false); }
  void finish() { put({}, true); }

 private:
  struct State;
  void put(std::string_view text, bool last);

  std::unique_ptr<State> state_;
};

}  // namespace mtrace::util
