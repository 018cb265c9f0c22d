#include "model/ledger/ledger_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

namespace {

using format::LedgerThread;

// Writes the label for the next report. Writes the length last: it announces the text.
bool write_label(const LedgerWriter& out, const std::string& label) {
  const auto length =
      static_cast<uint32_t>(std::min(label.size(), sizeof(format::LedgerHeader::label)));
  return out.write_header(offsetof(format::LedgerHeader, label), label.data(), length) &&
         out.write_header(offsetof(format::LedgerHeader, label_length), &length, sizeof length);
}

bool offer_names(const LedgerWriter& out, uint32_t offered) {
  return out.write_header(offsetof(format::LedgerHeader, names_offered), &offered, sizeof offered);
}

bool add_to_asked(const LedgerFile& file, const LedgerWriter& out, uint32_t step) {
  uint32_t asked = 0;
  return file.read(file.header().roots.threads_asked, asked) &&
         out.write(file.header().roots.threads_asked, asked + step);
}

}  // namespace

bool request_report(const LedgerFile& file, const std::string& label, bool names) {
  const format::LedgerRoots& roots = file.header().roots;
  const LedgerWriter out(file);
  uint32_t used = 0;
  if (!out.valid() || !write_label(out, label) || !offer_names(out, names) ||
      !add_to_asked(file, out, 1) || !file.read(roots.threads_used, used)) {
    return false;
  }
  used = std::clamp(used, 1u, format::kLedgerThreads - 1);
  for (uint32_t number = 1; number <= used; ++number) {
    const uint64_t high =
        roots.threads + number * sizeof(LedgerThread) + offsetof(LedgerThread, high);
    int64_t limit = 0;
    // INT64_MIN has a meaning in the library (ledger/peak.h) and the same effect, so keep it.
    if (file.read(high, limit) && limit != INT64_MIN) out.write(high, INT64_MIN + 1);
    out.write(high - offsetof(LedgerThread, high) + offsetof(LedgerThread, low), INT64_MAX);
  }
  return true;
}

void withdraw_request(const LedgerFile& file) {
  const LedgerWriter out(file);
  if (!out.valid()) return;
  write_label(out, "");
  offer_names(out, 0);
  add_to_asked(file, out, ~0u);
}
namespace {

constexpr size_t place_of(HoldPoint point) {
  using format::LedgerHeader;
  switch (point) {
    case HoldPoint::kExit:
      return offsetof(LedgerHeader, exit_hold);
    case HoldPoint::kAfterExit:
      return offsetof(LedgerHeader, late_hold);
  }
  return 0;
}

}  // namespace

bool waits_at(const LedgerFile& file, HoldPoint point) {
  format::ExitHold hold;
  const auto place = static_cast<off_t>(place_of(point));
  return ::pread(file.descriptor(), &hold, sizeof hold, place) == sizeof hold &&
         hold == format::ExitHold::kWaits;
}

bool set_hold(const LedgerFile& file, HoldPoint point, format::ExitHold hold) {
  return LedgerWriter(file).write_header(place_of(point), &hold, sizeof hold);
}

}  // namespace mtrace::ledger
