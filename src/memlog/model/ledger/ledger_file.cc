#include "model/ledger/ledger_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "util/error.h"
#include "util/file.h"

namespace mtrace::ledger {
namespace {

int open_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) throw util::FileError("cannot open " + path, errno);
  struct stat state = {};
  if (::fstat(file, &state) != 0 || !S_ISREG(state.st_mode)) {
    ::close(file);
    throw util::FileError("cannot read " + path, S_ISDIR(state.st_mode) ? EISDIR : EINVAL);
  }
  return file;
}

bool read_all(int file, uint64_t offset, void* to, size_t size) {
  if (offset > INT64_MAX || size > INT64_MAX - offset) return false;
  return util::read_at(file, offset, to, size) == size;
}

}  // namespace

LedgerFile::LedgerFile(const std::string& path) : LedgerFile(open_file(path), path) {}

LedgerFile::LedgerFile(int descriptor, std::string name)
    : descriptor_(descriptor), name_(std::move(name)) {
  try {
    refresh();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

LedgerFile::~LedgerFile() { ::close(descriptor_); }

void LedgerFile::fail(const std::string& what) const { throw LedgerError(name_ + ": " + what); }

void LedgerFile::refresh() {
  struct stat state = {};
  size_ = ::fstat(descriptor_, &state) == 0 ? static_cast<uint64_t>(state.st_size) : 0;
  open_header();
  read_extents();
}

void LedgerFile::open_header() {
  using format::LedgerHeader;
  // Check the first words before interpreting the rest.
  constexpr char kNone[] = ": not a ledger, or its process had not allocated yet";
  if (!read_all(descriptor_, 0, header_.get(), offsetof(LedgerHeader, size)) ||
      header_->magic == 0) {
    throw EmptyLedger(name_ + kNone);
  }
  if (header_->magic != format::kLedgerMagic) throw LedgerError(name_ + kNone);
  if (header_->version != format::kLedgerVersion) {
    fail(fmt::format("a ledger of version {}, but this memlog reads version {}", header_->version,
                     format::kLedgerVersion));
  }
  if (!read_all(descriptor_, 0, header_.get(), sizeof *header_)) {
    fail("truncated: its header is incomplete");
  }
}

void LedgerFile::read_extents() {
  if (header_->extents_used > format::kMostLedgerExtents) fail("damaged: too many extents");
  extents_.resize(header_->extents_used);
  if (!read_all(descriptor_, offsetof(format::LedgerFileHead, extents), extents_.data(),
                extents_.size() * sizeof extents_[0])) {
    fail("truncated: its header is incomplete");
  }
  std::sort(extents_.begin(), extents_.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  uint64_t end = 0;
  for (const format::LedgerExtent& extent : extents_) {
    const bool good = extent.size != 0 && extent.address >= end &&
                      extent.size <= UINT64_MAX - extent.address &&
                      extent.offset >= format::kLedgerHeaderBytes && extent.offset <= INT64_MAX &&
                      extent.size <= INT64_MAX - extent.offset;
    if (!good) fail("damaged: an extent is invalid");
    end = extent.address + extent.size;
  }
}

bool LedgerFile::offset_of(uint64_t address, size_t size, uint64_t& offset) const {
  auto at = std::upper_bound(extents_.begin(), extents_.end(), address,
                             [](uint64_t a, const auto& extent) { return a < extent.address; });
  if (at == extents_.begin()) return false;
  --at;
  const uint64_t into = address - at->address;
  if (into > at->size || size > at->size - into) return false;
  offset = at->offset + into;
  return true;
}

std::string LedgerFile::command() const {
  constexpr uint64_t kMost = 64 * 1024;
  std::string command(std::min(header_->command_length, kMost), '\0');
  const bool kept = header_->command != 0 && read(header_->command, command.data(), command.size());
  return kept ? command : std::string();
}

bool LedgerFile::read(uint64_t address, void* to, size_t size) const {
  uint64_t offset = 0;
  return offset_of(address, size, offset) && read_all(descriptor_, offset, to, size);
}

}  // namespace mtrace::ledger
