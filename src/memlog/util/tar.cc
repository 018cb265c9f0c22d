#include "util/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "util/text.h"

namespace mtrace::util {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kNameField = 100;
constexpr size_t kLongestName = 4096;
constexpr size_t kMostBehind = 1 << 20;  // tar fills up its last record

// Bytes [begin, begin + size) of a header.
struct TarField {
  size_t begin;
  size_t size;
};
constexpr TarField kMode = {100, 8};
constexpr TarField kOwner = {108, 8};
constexpr TarField kGroup = {116, 8};
constexpr TarField kSize = {124, 12};
constexpr TarField kChanged = {136, 12};
constexpr TarField kCheck = {148, 8};
constexpr TarField kMagic = {257, 6};
constexpr TarField kPrefix = {345, 155};
constexpr size_t kType = 156;
constexpr char kRegular = '0';
constexpr char kDirectory = '5';
constexpr char kPax = 'x';

// Octal, or in base 256 where that has no room.
void put_number(char* header, TarField field, uint64_t number) {
  char* const at = header + field.begin;
  if (number >> (3 * (field.size - 1)) == 0) {
    const std::string text = fmt::format("{:0{}o}", number, field.size - 1);
    std::memcpy(at, text.c_str(), field.size);
    return;
  }
  at[0] = '\x80';
  for (size_t i = field.size; i-- > 1; number >>= 8) at[i] = static_cast<char>(number);
}

uint64_t number_in(const char* header, TarField field) {
  const auto* at = reinterpret_cast<const unsigned char*>(header + field.begin);
  uint64_t number = 0;
  if (at[0] == 0x80) {
    for (size_t i = 1; i < field.size; ++i) {
      if (number >> 56 != 0) throw TarError("is no archive of memlog pack: a number is too large");
      number = number << 8 | at[i];
    }
    return number;
  }
  for (size_t i = 0; i < field.size && at[i] != 0 && at[i] != ' '; ++i) {
    if (at[i] < '0' || at[i] > '7') throw TarError("is damaged: a header has no valid number");
    number = number << 3 | static_cast<uint64_t>(at[i] - '0');
  }
  return number;
}

// The sum of the header's bytes, its own field taken for blanks.
uint64_t check_of(const char* header) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kCheck.begin && i < kCheck.begin + kCheck.size;
    sum += own ? ' ' : static_cast<unsigned char>(header[i]);
  }
  return sum;
}

std::string text_in(const char* header, TarField field) {
  return {header + field.begin, ::strnlen(header + field.begin, field.size)};
}

// "LENGTH KEY=VALUE\n"; the length counts itself.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::string rest = fmt::format(" {}={}\n", key, value);
  size_t length = rest.size();
  while (length != rest.size() + std::to_string(length).size()) {
    length = rest.size() + std::to_string(length).size();
  }
  return fmt::format("{}{}", length, rest);
}

// What the header has no room for; empty: it has room for all.
std::string pax_of(const TarFile& file) {
  std::string pax;
  if (file.name.size() > kNameField) pax += pax_record("path", file.name);
  if (file.changed.tv_nsec != 0) {
    pax += pax_record("mtime", fmt::format("{}.{:09}", file.changed.tv_sec, file.changed.tv_nsec));
  }
  return pax;
}

void read_pax(std::string_view pax, TarFile& file) {
  while (!pax.empty()) {
    const size_t blank = std::min(pax.find(' '), pax.size());
    const auto length = read_unsigned(pax.substr(0, blank), pax.size());
    if (!length || *length < blank + 2) throw TarError("is damaged: a long name cannot be read");
    const std::string_view record = pax.substr(blank + 1, *length - blank - 2);
    const size_t equals = std::min(record.find('='), record.size());
    const std::string_view key = record.substr(0, equals);
    const std::string value(record.substr(std::min(equals + 1, record.size())));
    if (key == "path") file.name = value;
    if (key == "mtime") {
      const size_t dot = std::min(value.find('.'), value.size());
      std::string fraction = value.substr(std::min(dot + 1, value.size()));
      fraction.resize(9, '0');
      file.changed = {std::max(0L, std::atol(value.c_str())),
                      std::max(0L, std::atol(fraction.c_str()))};
    }
    pax.remove_prefix(*length);
  }
}

bool stays_below(const std::string& name) {
  for (const std::string_view part : split(name, '/')) {
    if (part.empty() || part == "." || part == ".." || part.find('\0') != part.npos) return false;
  }
  return name.size() <= kLongestName;
}

}  // namespace

void TarWriter::header(const TarFile& file, char type) {
  char block[kBlock] = {};
  std::memcpy(block, file.name.data(), std::min(file.name.size(), kNameField));
  put_number(block, kMode, 0600);
  put_number(block, kOwner, 0);
  put_number(block, kGroup, 0);
  put_number(block, kSize, file.size);
  put_number(block, kChanged, static_cast<uint64_t>(std::max<time_t>(file.changed.tv_sec, 0)));
  block[kType] = type;
  std::memcpy(block + kMagic.begin, "ustar\00000", 8);
  put_number(block, {kCheck.begin, kCheck.size - 1}, check_of(block));
  block[kCheck.begin + kCheck.size - 1] = ' ';
  sink_({block, sizeof block});
}

void TarWriter::begin(const TarFile& file) {
  pad();
  if (const std::string pax = pax_of(file); !pax.empty()) {
    header({"pax", pax.size(), file.changed}, kPax);
    write(pax);
    pad();
  }
  header(file, kRegular);
}

void TarWriter::pad() {
  sink_(std::string((kBlock - written_ % kBlock) % kBlock, '\0'));
  written_ = 0;
}

void TarWriter::write(std::string_view content) {
  sink_(content);
  written_ += content.size();
}

void TarWriter::finish() {
  pad();
  sink_(std::string(2 * kBlock, '\0'));
}

// False: the archive has no more.
bool TarReader::block(char (&to)[kBlock]) {
  size_t done = 0;
  for (size_t got = 1; got != 0 && done < kBlock; done += got) {
    got = source_(to + done, kBlock - done);
  }
  if (done != 0 && done != kBlock) throw TarError("is cut short in a header");
  return done != 0;
}

void TarReader::skip() {
  char rest[4096];
  while (read(rest, sizeof rest) != 0) {
  }
  while (padding_ != 0) {
    const size_t got = source_(rest, padding_);
    if (got == 0) throw TarError(fmt::format("is cut short behind {}", escaped(name_, "")));
    padding_ -= got;
  }
}

// Reads to the end: the checksum of compressed data is there.
void TarReader::drain() {
  char rest[4096];
  size_t most = kMostBehind;
  for (size_t got = 1; got != 0; most -= got) {
    got = source_(rest, sizeof rest);
    if (got > most) throw TarError("has something else behind its end");
  }
}

bool TarReader::next(TarFile& file) {
  std::string pax;
  for (;;) {
    skip();
    char header[kBlock];
    if (!block(header)) throw TarError("is cut short: its end is missing");
    if (std::all_of(std::begin(header), std::end(header), [](char c) { return c == 0; })) {
      drain();
      return false;
    }
    if (text_in(header, kMagic) != "ustar" && text_in(header, kMagic) != "ustar ") {
      throw TarError("is no archive of memlog pack");
    }
    if (number_in(header, kCheck) != check_of(header)) {
      throw TarError("is damaged: the checksum of a header is wrong");
    }
    const std::string prefix = text_in(header, kPrefix);
    const std::string name = text_in(header, {0, kNameField});
    file.name = prefix.empty() ? name : fmt::format("{}/{}", prefix, name);
    file.size = number_in(header, kSize);
    file.changed = {static_cast<time_t>(number_in(header, kChanged)), 0};
    const char type = header[kType] == '\0' ? kRegular : header[kType];
    if (type != kPax) read_pax(pax, file);
    name_ = file.name;
    left_ = file.size;
    padding_ = (kBlock - file.size % kBlock) % kBlock;
    if (type == kPax) {
      if (file.size > 2 * kLongestName) throw TarError("is damaged: a name is too long");
      pax.assign(file.size, '\0');
      for (size_t at = 0, got = 1; got != 0; at += got) {
        got = read(pax.data() + at, pax.size() - at);
      }
      continue;
    }
    pax.clear();
    if (type == kDirectory) continue;
    if (type != kRegular) {
      throw TarError(
          fmt::format("has {}, which is a link or a device: memlog unpack makes only "
                      "files",
                      escaped(name_, "")));
    }
    if (stays_below(file.name)) return true;
    throw TarError(
        fmt::format("has a file that would lie outside of the directory: {}", escaped(name_, "")));
  }
}

size_t TarReader::read(char* to, size_t size) {
  size = static_cast<size_t>(std::min<uint64_t>(size, left_));
  if (size == 0) return 0;
  const size_t got = source_(to, size);
  if (got == 0) throw TarError(fmt::format("is cut short in {}", escaped(name_, "")));
  left_ -= got;
  return got;
}

}  // namespace mtrace::util
