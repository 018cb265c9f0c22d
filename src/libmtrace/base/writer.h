// Text into a bounded buffer, and from there into a file if there is one. No locale, no stdio, no
// allocation; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/file.h"

namespace mtrace {

class Writer {
 public:
  // With fd -1 the text stays in the buffer (terminated), and text that does not fit is an error.
  // `own`: the identity that the file must have at each write, else the error is -ESTALE.
  Writer(char* buffer, size_t capacity, int fd = -1, const base::FileIdentity* own = nullptr);

  Writer& put(char c) {
    if (error_ != 0 || (used_ + 1 >= capacity_ && !make_room())) return *this;
    buffer_[used_++] = c;
    return *this;
  }
  Writer& text(const char* s) { return bytes(s, __builtin_strlen(s)); }
  Writer& bytes(const char* s, size_t size) {
    if (error_ != 0 || size >= capacity_ - used_) return bytes_in_pieces(s, size);
    __builtin_memcpy(buffer_ + used_, s, size);
    used_ += size;
    return *this;
  }
  // Writes the text escaped as a memlog needs it: see format/escape.h.
  Writer& escaped(const char* s, size_t size, const char* reserved);
  Writer& escaped(const char* s, const char* reserved = "") {
    return escaped(s, __builtin_strlen(s), reserved);
  }
  // Begins a line of a memlog's header or trailer: "# key: ".
  Writer& meta(const char* key) { return text("# ").text(key).text(": "); }
  Writer& number(uint64_t value) { return padded(value, 1); }
  Writer& signed_number(int64_t value);              // always with a sign, zero is +0
  Writer& hex(uint64_t value, unsigned digits = 0);  // lower case, padded to `digits`
  Writer& time(uint64_t nanoseconds_since_1970);     // 2026-11-20T20:15:31.123456Z
  Writer& padded(uint64_t value, unsigned digits);   // decimal with leading zeros
  Writer& reason(int error);  // why a file could not be made or written, from errno

  // Writes the buffer out (with a file) or terminates the text. 0 or a negative errno: -ENOBUFS
  // when the text did not fit.
  long finish();
  size_t size() const { return used_; }

 private:
  bool make_room();
  long write_out() const;
  Writer& bytes_in_pieces(const char* s, size_t size);

  char* buffer_;
  size_t capacity_;
  size_t used_ = 0;
  int fd_;
  const base::FileIdentity* own_;
  long error_ = 0;
};

}  // namespace mtrace
