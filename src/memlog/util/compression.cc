#include "util/compression.h"

#include <fmt/format.h>
#include <zstd.h>

#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace mtrace::util {
namespace {

// Level 7 takes three times as long and saves a third (doc/performance.md); the program waits for
// it at its end.
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

}  // namespace mtrace::util
