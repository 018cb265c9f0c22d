#include <zlib.h>

#include <stdexcept>

#include "export/pprof.h"

namespace mtrace::exporting {

std::string gzip(const std::string& text) {
  constexpr int kGzip = 16;  // added to the window's bits: a header of gzip's
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + kGzip, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw std::runtime_error("cannot compress");
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool good = text.size() <= UINT32_MAX && deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (!good) throw std::runtime_error("cannot compress");
  return out;
}

}  // namespace mtrace::exporting
