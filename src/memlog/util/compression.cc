#include "util/compression.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "format/memlog.h"
#include "util/error.h"
#include "util/file.h"

namespace mtrace::util {
namespace {

// Level 7 takes three times as long and saves a third; the program waits for it at its end.
constexpr int kLevel = 3;

}  // namespace

bool is_compressed(std::string_view head) {
  if (head.size() < kCompressedMagic) return false;
  uint32_t magic = 0;
  for (size_t i = kCompressedMagic; i-- != 0;) {
    magic = magic << 8 | static_cast<unsigned char>(head[i]);
  }
  // A file of several frames may begin with one that is to be skipped.
  constexpr uint32_t kSkippableMask = 0xfffffff0;
  return magic == ZSTD_MAGICNUMBER || (magic & kSkippableMask) == ZSTD_MAGIC_SKIPPABLE_START;
}

uint64_t claimed_size(std::string_view head) {
  const unsigned long long size = ZSTD_getFrameContentSize(head.data(), head.size());
  return size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR ? 0 : size;
}

struct Decompressor::State {
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context{ZSTD_createDCtx(), ZSTD_freeDCtx};
  std::vector<char> buffer;
  ZSTD_inBuffer in = {nullptr, 0, 0};
  bool in_frame = false;              // more of a frame is to come
  bool ended = false;                 // no more to read
  std::optional<std::string> damage;  // found, behind what was returned
};

Decompressor::Decompressor() : state_(std::make_unique<State>()) {
  if (state_->context == nullptr) throw std::bad_alloc();
  state_->buffer.resize(ZSTD_DStreamInSize());
  state_->in.src = state_->buffer.data();
}

Decompressor::~Decompressor() = default;

size_t Decompressor::read(char* to, size_t size, const Source& source) {
  State& state = *state_;
  ZSTD_outBuffer out = {to, size, 0};
  while (out.pos < out.size && !state.damage) {
    if (state.in.pos == state.in.size && !state.ended) {
      state.in.size = source(state.buffer.data(), state.buffer.size());
      state.in.pos = 0;
      state.ended = state.in.size == 0;
    }
    if (state.in.pos == state.in.size && !state.in_frame) break;
    const size_t before = out.pos;
    const size_t result = ZSTD_decompressStream(state.context.get(), &out, &state.in);
    if (ZSTD_isError(result) != 0) {
      state.damage =
          fmt::format("the compressed data is damaged (zstd: {})", ZSTD_getErrorName(result));
    } else {
      state.in_frame = result != 0;
      if (state.in_frame && state.ended && out.pos == before) {
        state.damage = "the compressed file is cut short";
      }
    }
  }
  if (out.pos == 0 && state.damage) throw DamagedCompression{*state.damage};
  return out.pos;
}

struct Compressor::State {
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context{ZSTD_createCCtx(), ZSTD_freeCCtx};
  std::vector<char> buffer = std::vector<char>(ZSTD_CStreamOutSize());
  Sink sink;
};

Compressor::Compressor(Sink sink, uint64_t size) : state_(std::make_unique<State>()) {
  if (state_->context == nullptr) throw std::bad_alloc();
  state_->sink = std::move(sink);
  ZSTD_CCtx_setParameter(state_->context.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(state_->context.get(), ZSTD_c_checksumFlag, 1);
  if (size != 0) ZSTD_CCtx_setPledgedSrcSize(state_->context.get(), size);
}

Compressor::~Compressor() = default;

void Compressor::put(std::string_view text, bool last) {
  ZSTD_inBuffer in = {text.data(), text.size(), 0};
  for (size_t left = 1; last ? left != 0 : in.pos < in.size;) {
    ZSTD_outBuffer out = {state_->buffer.data(), state_->buffer.size(), 0};
    left =
        ZSTD_compressStream2(state_->context.get(), &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(left) != 0) throw std::bad_alloc();  // nothing else can fail here
    state_->sink({state_->buffer.data(), out.pos});
  }
}

void compress(std::string_view text, const std::function<void(std::string_view)>& sink) {
  Compressor compressor(sink, text.size());
  compressor.write(text);
  compressor.finish();
}

namespace {

// Reports become a fortieth to a fifth of their size.
constexpr size_t kTypicalRatio = 20;
constexpr size_t kLargestRatio = 100;
constexpr size_t kLeast = 4096;

// Opens `path`, or the file that the report there has become; then changes `path`.
Descriptor open_report(std::string& path, int flags) {
  if (path == "-") return Descriptor(0);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (file >= 0 || errno != ENOENT || !path.ends_with(format::kSuffix)) return Descriptor(file);
  const std::string compressed = path + format::kCompressedSuffix;
  Descriptor other(::open(compressed.c_str(), O_RDONLY | O_CLOEXEC | flags));
  if (other.get() >= 0) path = compressed;
  errno = ENOENT;
  return other;
}

}  // namespace

Input::Input(const std::string& path) : path_(path) {
  file_ = open_report(path_, 0);
  if (file_.get() < 0) throw FileError("cannot open " + path_, errno);
  begin();
}

Input::Input(Descriptor file, std::string path) : path_(std::move(path)), file_(std::move(file)) {
  begin();
}

std::optional<Input> Input::of_file(const std::string& path) {
  std::string found = path;
  Descriptor file = open_report(found, O_NONBLOCK);
  struct stat state = {};
  if (file.get() < 0 || ::fstat(file.get(), &state) != 0 || !S_ISREG(state.st_mode)) return {};
  try {
    return Input(std::move(file), std::move(found));
  } catch (const FileError&) {
    return {};
  }
}

// Reads the first bytes and looks what they are.
void Input::begin() {
  head_.resize(kCompressedHead);
  size_t got = 0;
  // Pipes give as little as they like.
  for (size_t more = 1; more != 0 && got < head_.size(); got += more) {
    head_used_ = head_.size();
    more = read_raw(head_.data() + got, head_.size() - got);
  }
  head_.resize(got);
  head_used_ = 0;
  struct stat state = {};
  const bool regular = ::fstat(file_.get(), &state) == 0 && S_ISREG(state.st_mode);
  const size_t size = regular ? static_cast<size_t>(state.st_size) : 0;
  compressed_ = is_compressed(head_);
  expected_size_ = size;
  decompressor_.reset();
  if (!compressed_) return;
  const uint64_t claimed = claimed_size(head_);
  expected_size_ = claimed == 0
                       ? size * kTypicalRatio
                       : static_cast<size_t>(std::min<uint64_t>(claimed, size * kLargestRatio));
}

size_t Input::read_raw(char* to, size_t size) {
  if (head_used_ < head_.size()) {
    const size_t taken = std::min(size, head_.size() - head_used_);
    std::memcpy(to, head_.data() + head_used_, taken);
    head_used_ += taken;
    return taken;
  }
  if (head_.size() < kCompressedHead) return 0;  // the end was seen
  ssize_t got = 0;
  do {
    got = ::read(file_.get(), to, size);
  } while (got < 0 && errno == EINTR);
  if (got < 0) throw FileError("cannot read " + path_, errno);
  return static_cast<size_t>(got);
}

size_t Input::read(char* to, size_t size) {
  if (!compressed_) return read_raw(to, size);
  if (decompressor_ == nullptr) {
    decompressor_ = std::make_unique<Decompressor>();
  }
  return decompressor_->read(to, size,
                             [this](char* place, size_t room) { return read_raw(place, room); });
}

void Input::rewind() {
  if (::lseek(file_.get(), 0, SEEK_SET) != 0) {
    throw FileError("cannot read " + path_ + " twice", errno);
  }
  begin();
}

std::string Input::first(size_t size) {
  std::string text(size, '\0');
  size_t used = 0;
  try {
    for (size_t got = 1; got != 0 && used < size; used += got) {
      got = read(text.data() + used, size - used);
    }
  } catch (const FileError&) {
  } catch (const DamagedCompression&) {
  }
  text.resize(used);
  return text;
}

std::string Input::last(size_t size) {
  rewind();
  if (!compressed_ && expected_size_ > size + head_.size()) {
    head_used_ = head_.size();
    if (::lseek(file_.get(), -static_cast<off_t>(size), SEEK_END) < 0) {
      throw FileError("cannot read the end of " + path_, errno);
    }
  }
  std::string text;
  size_t kept = 0;
  try {
    for (size_t got = 1; got != 0;) {
      text.erase(0, text.size() - kept);
      text.resize(kept + std::max(size, kLeast));
      got = read(text.data() + kept, text.size() - kept);
      text.resize(kept + got);
      kept = std::min(text.size(), size);
    }
  } catch (const DamagedCompression&) {
    text.resize(kept);
  }
  return text.substr(text.size() - kept);
}

FormatError damage_in(const std::string& file, size_t lines, const DamagedCompression& damage) {
  return {
      file, std::max<size_t>(lines, 1),
      fmt::format("{}: {}", damage.what,
                  lines == 0 ? "no line can be read" : "only the lines up to this can be read")};
}

Text read_text(const std::string& path) {
  Input input(path);
  Text out = {input.path(), {}, input.compressed()};
  // No more than there is to read: what is not used has to be zeroed, and is kept.
  out.text.resize(std::max(input.expected_size() + 1, kLeast));
  size_t size = 0;
  try {
    for (size_t got = 1; got != 0; size += got) {
      if (size == out.text.size()) out.text.resize(2 * size);
      got = input.read(out.text.data() + size, out.text.size() - size);
    }
  } catch (const DamagedCompression& damage) {
    out.text.resize(size);
    const auto lines = static_cast<size_t>(std::count(out.text.begin(), out.text.end(), '\n'));
    throw damage_in(path == "-" ? "<stdin>" : input.path(), lines, damage);
  }
  out.text.resize(size);
  return out;
}

Window::Window(const std::string& path) : input_(std::in_place, path) {
  size_ = input_->expected_size();
}

bool Window::more(size_t keep) {
  if (!input_ || ended_) return false;
  buffer_.erase(0, keep - start_);
  start_ = keep;
  const size_t held = buffer_.size();
  // A line that does not fit takes twice the room each time, so that it is not moved too often.
  const size_t step = std::max(kStep, held);
  buffer_.resize(held + step);
  size_t got = 0;
  try {
    got = input_->read(buffer_.data() + held, step);
  } catch (...) {
    buffer_.resize(held);
    text_ = buffer_;
    throw;
  }
  buffer_.resize(held + got);
  text_ = buffer_;
  ended_ = got == 0;
  return !ended_;
}

void Window::rewind() {
  input_->rewind();
  buffer_.clear();
  text_ = buffer_;
  start_ = 0;
  ended_ = false;
}

}  // namespace mtrace::util
