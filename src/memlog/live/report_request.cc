#include "live/report_request.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mtrace::live {
namespace {

using format::LedgerThread;

// Opens the ledger for writing through the existing descriptor.
class Writable {
 public:
  explicit Writable(const LedgerFile& file)
      : file_(file),
        descriptor_(::open(fmt::format("/proc/self/fd/{}", file.descriptor()).c_str(),
                           O_RDWR | O_CLOEXEC)) {}
  ~Writable() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Writable(const Writable&) = delete;
  Writable& operator=(const Writable&) = delete;
  bool valid() const { return descriptor_ >= 0; }

  template <typename T>
  bool write(uint64_t address, T value) const {
    uint64_t offset = 0;
    return file_.offset_of(address, sizeof value, offset) && put(offset, &value, sizeof value);
  }
  // Writes the label for the next report. Writes the length last: it announces the text.
  bool write_label(const std::string& label) const {
    const auto length =
        static_cast<uint32_t>(std::min(label.size(), sizeof(format::LedgerHeader::label)));
    return put(offsetof(format::LedgerHeader, label), label.data(), length) &&
           put(offsetof(format::LedgerHeader, label_length), &length, sizeof length);
  }
  bool offer_names(uint32_t offered) const {
    return put(offsetof(format::LedgerHeader, names_offered), &offered, sizeof offered);
  }

 private:
  bool put(uint64_t offset, const void* data, size_t size) const {
    return ::pwrite(descriptor_, data, size, static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(size);
  }

  const LedgerFile& file_;
  int descriptor_;
};

bool add_to_asked(const LedgerFile& file, const Writable& out, uint32_t step) {
  uint32_t asked = 0;
  return file.read(file.header().roots.threads_asked, asked) &&
         out.write(file.header().roots.threads_asked, asked + step);
}

}  // namespace

bool request_report(const LedgerFile& file, const std::string& label, bool names) {
  const format::LedgerRoots& roots = file.header().roots;
  const Writable out(file);
  uint32_t used = 0;
  if (!out.valid() || !out.write_label(label) || !out.offer_names(names) ||
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
  const Writable out(file);
  if (!out.valid()) return;
  out.write_label("");
  out.offer_names(0);
  add_to_asked(file, out, ~0u);
}

}  // namespace mtrace::live
