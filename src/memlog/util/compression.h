// zstd, the form in which reports are compressed (RFC 8878).
#pragma once

#include "util/error.h"
#include "util/file.h"
#include "util/prelude.h"

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

// The text of a file or of standard input, which may be compressed (util/compression.h). What is
// compressed is known by its first bytes, whatever its name.
class Input {
 public:
  // Opens the file at `path`; "-" is standard input. If there is no X.memlog but X.memlog.zst, that
  // is opened: the report was compressed meanwhile. All functions throw FileError.
  explicit Input(const std::string& path);
  // Returns nothing unless `path` is a regular file that can be read. Never waits.
  static std::optional<Input> of_file(const std::string& path);

  // Writes the next bytes of the text to `to`, at most `size`, which is not 0; returns their
  // number, 0 at the end. Throws DamagedCompression once all before the damage was returned.
  size_t read(char* to, size_t size);
  // Goes back to the beginning. Not for a pipe.
  void rewind();
  // Return the first or last bytes of the text up to any damage, at most `size`. first() reads from
  // where read() would and ends where reading fails; last() is not for a pipe, and reads all of
  // what is compressed.
  std::string first(size_t size);
  std::string last(size_t size);

  // What was opened.
  const std::string& path() const { return path_; }
  bool compressed() const { return compressed_; }
  // Bytes of the text, about, if that is known before its end; else 0. Never more than a hundred
  // times the size of the file.
  size_t expected_size() const { return expected_size_; }

 private:
  Input(Descriptor file, std::string path);
  void begin();
  size_t read_raw(char* to, size_t size);

  std::string path_;
  Descriptor file_;
  std::string head_;  // read already, to know whether it is compressed
  size_t head_used_ = 0;
  bool compressed_ = false;
  size_t expected_size_ = 0;
  std::unique_ptr<Decompressor> decompressor_;
};

// Returns the error for damaged compressed data, behind so many lines that could be read.
FormatError damage_in(const std::string& file, size_t lines, const DamagedCompression& damage);

// Returns the whole text of the file at `path`. Throws FileError, also for a directory, and
// FormatError for damaged compressed data, which says how many lines come before the damage.
struct Text {
  std::string path;  // of the file, see Input
  std::string text;
  bool compressed = false;  // the file is
};
Text read_text(const std::string& path);

// A text read from beginning to end, with only a part in memory.

// Positions are bytes from the beginning of the text.
class Window {
 public:
  // Reads `text`, which must outlive this.
  explicit Window(std::string_view text) : text_(text), size_(text.size()) {}
  // Reads the file at `path`, see Input. All functions throw FileError.
  explicit Window(const std::string& path);

  // The file; empty: the text is in memory.
  std::string path() const { return input_ ? input_->path() : ""; }

  // Returns what is in memory from `position` on. Valid until more() is called.
  std::string_view from(size_t position) const { return text_.substr(position - start_); }
  // Reads more of the text; may drop what is before `keep`. Returns false at the end of the text.
  // Throws DamagedCompression, and keeps what was read before the damage.
  bool more(size_t keep);
  // Goes back to the beginning. Not for a pipe.
  void rewind();
  // Size of the text in bytes, about, if it is known before the end; else 0.
  size_t size() const { return size_; }

 private:
  static constexpr size_t kStep = 1 << 20;

  std::optional<Input> input_;  // none: the text is in memory
  std::string buffer_;
  std::string_view text_;  // what is in memory
  size_t start_ = 0;       // position of its first byte
  bool ended_ = false;
  size_t size_ = 0;
};

}  // namespace mtrace::util
