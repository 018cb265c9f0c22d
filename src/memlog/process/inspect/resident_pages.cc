#include "process/inspect/resident_pages.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "process/inspect/proc_files.h"
#include "process/inspect/process.h"

namespace mtrace::process {
namespace {

// Debian 12's linux/fs.h has none of these; as in that of Linux 6.7 (struct pm_scan_arg, struct
// page_region) and Documentation/admin-guide/mm/pagemap.rst.
struct ScanArguments {
  uint64_t size;
  uint64_t flags;
  uint64_t start;
  uint64_t end;
  uint64_t walk_end;
  uint64_t vec;
  uint64_t vec_len;
  uint64_t max_pages;
  uint64_t category_inverted;
  uint64_t category_mask;
  uint64_t category_anyof_mask;
  uint64_t return_mask;
};
struct PageRegion {
  uint64_t start;
  uint64_t end;
  uint64_t categories;
};
constexpr unsigned long kScanRequest = _IOWR('f', 16, ScanArguments);
constexpr uint64_t kIsPresent = 1 << 3;
constexpr uint64_t kIsSwapped = 1 << 4;
constexpr uint64_t kIsZeroPage = 1 << 5;  // the kernel's own, which every process shares

// Of a word of the file.
constexpr uint64_t kPresentBit = uint64_t{1} << 63;
constexpr uint64_t kSwappedBit = uint64_t{1} << 62;

}  // namespace

void append_range(std::vector<Range>& ranges, Range range) {
  if (!ranges.empty() && ranges.back().end == range.begin) {
    ranges.back().end = range.end;
  } else {
    ranges.push_back(range);
  }
}

std::vector<Range> parts_within(Range range, const std::vector<Range>& ranges) {
  std::vector<Range> found;
  auto at = std::lower_bound(ranges.begin(), ranges.end(), range.begin,
                             [](const Range& one, uint64_t address) { return one.end <= address; });
  for (; at != ranges.end() && at->begin < range.end; ++at) {
    found.push_back({std::max(range.begin, at->begin), std::min(range.end, at->end)});
  }
  return found;
}

PageMap::PageMap(pid_t pid, Way way)
    : pid_(pid), file_(::open(proc_path(pid, "pagemap").c_str(), O_RDONLY | O_CLOEXEC)), way_(way) {
  std::vector<Range> none;
  if (way_ == Way::kScan && !scan({0, 0}, Pages::kFilled, none) && errno == ENOTTY) {
    way_ = Way::kRead;
  }
}

bool PageMap::find(const Mapping& mapping, Pages pages, std::vector<Range>& found) {
  const Range range = {mapping.begin, mapping.end};
  if (way_ == Way::kScan) return scan(range, pages, found);
  return mapping.resident + mapping.swapped == 0 || read(range, pages, found);
}

bool PageMap::read_filled(uint64_t address, void* to, size_t size) {
  Mapping pages;
  pages.begin = address / kPageBytes * kPageBytes;
  pages.end = (address + size + kPageBytes - 1) / kPageBytes * kPageBytes;
  pages.resident = pages.end - pages.begin;  // or so
  std::vector<Range> found;
  return find(pages, Pages::kFilled, found) && found.size() == 1 && found[0].begin == pages.begin &&
         found[0].end == pages.end && read_memory(pid_, address, to, size);
}

bool PageMap::scan(Range range, Pages pages, std::vector<Range>& found) const {
  std::vector<PageRegion> regions(512);
  ScanArguments arguments = {};
  arguments.size = sizeof arguments;
  arguments.start = range.begin;
  arguments.end = range.end;
  arguments.vec = reinterpret_cast<uint64_t>(regions.data());
  arguments.vec_len = regions.size();
  arguments.category_inverted = kIsZeroPage;
  arguments.category_mask = kIsZeroPage;
  arguments.category_anyof_mask = kIsPresent | (pages == Pages::kFilled ? kIsSwapped : 0);
  for (;;) {
    const int got = ::ioctl(file_.get(), kScanRequest, &arguments);
    if (got < 0) return false;
    for (int i = 0; i < got; ++i) append_range(found, {regions[i].start, regions[i].end});
    if (arguments.walk_end >= range.end) return true;
    arguments.start = arguments.walk_end;
  }
}

bool PageMap::read(Range range, Pages pages, std::vector<Range>& found) const {
  constexpr size_t kAtATime = 1 << 16;
  const uint64_t wanted = kPresentBit | (pages == Pages::kFilled ? kSwappedBit : 0);
  std::vector<uint64_t> words(std::min<uint64_t>(kAtATime, (range.end - range.begin) / kPageBytes));
  for (uint64_t page = range.begin / kPageBytes; page < range.end / kPageBytes;) {
    const size_t count = std::min<uint64_t>(words.size(), range.end / kPageBytes - page);
    const ssize_t got = ::pread(file_.get(), words.data(), count * sizeof words[0],
                                static_cast<off_t>(page * sizeof words[0]));
    if (got <= 0) return false;
    const size_t number = static_cast<size_t>(got) / sizeof words[0];
    for (size_t i = 0; i < number; ++i) {
      if ((words[i] & wanted) == 0) continue;
      append_range(found, {(page + i) * kPageBytes, (page + i + 1) * kPageBytes});
    }
    page += number;
  }
  return true;
}

}  // namespace mtrace::process
