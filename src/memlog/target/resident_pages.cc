#include "target/resident_pages.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "profile/descriptor.h"
#include "target/proc_files.h"

namespace mtrace::target {

std::optional<std::vector<bool>> resident_pages(pid_t pid, Range range) {
  constexpr uint64_t kPresent = uint64_t{1} << 63;  // Documentation/admin-guide/mm/pagemap.rst
  constexpr size_t kAtATime = 1 << 16;
  const profile::Descriptor file(::open(proc_path(pid, "pagemap").c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return std::nullopt;
  std::vector<bool> found;
  std::vector<uint64_t> words(kAtATime);
  const uint64_t end = range.end / kPageBytes;
  for (uint64_t page = range.begin / kPageBytes; page < end;) {
    const size_t count = std::min<uint64_t>(kAtATime, end - page);
    const ssize_t got = ::pread(file.get(), words.data(), count * sizeof words[0],
                                static_cast<off_t>(page * sizeof words[0]));
    if (got <= 0) return std::nullopt;
    const size_t pages = static_cast<size_t>(got) / sizeof words[0];
    for (size_t i = 0; i < pages; ++i) found.push_back((words[i] & kPresent) != 0);
    page += pages;
  }
  return found;
}

}  // namespace mtrace::target
