#include "base/writer.h"

#include <errno.h>

#include "format/escape.h"

namespace mtrace {

Writer::Writer(char* buffer, size_t capacity, int fd, const base::FileIdentity* own)
    : buffer_(buffer), capacity_(capacity), fd_(fd), own_(own) {}

long Writer::write_out() const {
  if (own_ != nullptr && base::opened_identity(fd_) != *own_) return -ESTALE;
  return base::write_all(fd_, buffer_, used_);
}

bool Writer::make_room() {
  if (fd_ < 0 && error_ == 0) error_ = -ENOBUFS;
  if (error_ != 0) return false;
  error_ = write_out();
  used_ = 0;
  return error_ == 0;
}

Writer& Writer::bytes_in_pieces(const char* s, size_t size) {
  for (size_t i = 0; i < size; ++i) put(s[i]);
  return *this;
}

Writer& Writer::escaped(const char* s, size_t size, const char* reserved) {
  // Most names need no escape.
  const size_t plain = format::plain_bytes(s, size, reserved);
  bytes(s, plain);
  format::escape(s + plain, size - plain, reserved, [this](const char* unit, size_t length) {
    // Half an escape would be read as something else.
    if (fd_ < 0 && capacity_ - used_ <= length && error_ == 0) error_ = -ENOBUFS;
    bytes(unit, length);
  });
  return *this;
}

template <unsigned kBase>
static Writer& put_digits(Writer& out, uint64_t value, unsigned least) {
  char text[20];
  unsigned begin = sizeof text;
  do {
    text[--begin] = "0123456789abcdef"[value % kBase];
    value /= kBase;
  } while (begin > 0 && (value != 0 || sizeof text - begin < least));
  return out.bytes(text + begin, sizeof text - begin);
}

Writer& Writer::padded(uint64_t value, unsigned digits) {
  return put_digits<10>(*this, value, digits);
}

Writer& Writer::hex(uint64_t value, unsigned digits) {
  return put_digits<16>(*this, value, digits);
}

Writer& Writer::reason(int error) {
  switch (error) {
    case ENOENT:
      return text("no such directory");
    case ENOTDIR:
      return text("not a directory");
    case EACCES:
    case EPERM:
      return text("permission denied");
    case EROFS:
      return text("read-only file system");
    case ENOSPC:
      return text("no space left on device");
    case EDQUOT:
      return text("disk quota exceeded");
    case EFBIG:
      return text("file size limit reached");
    case ENOMEM:
      return text("no memory");
    default:
      return text("error ").number(static_cast<unsigned>(error));
  }
}

Writer& Writer::signed_number(int64_t value) {
  put(value < 0 ? '-' : '+');
  return number(value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
}

// Days to year, month, day: Howard Hinnant's chrono-compatible low-level date algorithms
// (civil_from_days), for days since 1970-01-01.
Writer& Writer::time(uint64_t nanoseconds) {
  const uint64_t seconds = nanoseconds / 1'000'000'000u;
  const uint64_t days = seconds / 86400 + 719468;  // since 0000-03-01
  const uint64_t era = days / 146097;
  const uint64_t day_of_era = days % 146097;
  const uint64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const uint64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const uint64_t from_march = (5 * day_of_year + 2) / 153;
  const uint64_t day = day_of_year - (153 * from_march + 2) / 5 + 1;
  const uint64_t month = from_march < 10 ? from_march + 3 : from_march - 9;
  const uint64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  padded(year, 4).put('-').padded(month, 2).put('-').padded(day, 2).put('T');
  const uint64_t second_of_day = seconds % 86400;
  padded(second_of_day / 3600, 2).put(':').padded(second_of_day / 60 % 60, 2).put(':');
  padded(second_of_day % 60, 2).put('.').padded(nanoseconds % 1'000'000'000u / 1000, 6);
  return put('Z');
}

long Writer::finish() {
  if (fd_ >= 0) {
    if (error_ == 0) error_ = write_out();
    used_ = 0;
  } else if (capacity_ > 0) {
    buffer_[used_] = '\0';
  }
  return error_;
}

}  // namespace mtrace
