// Which pages are found to hold something, on pages whose use is known.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "process/inspect/memory_view.h"

namespace mtrace::test {
namespace {

using process::Mapping;
using process::PageMap;
using process::Range;

const uint64_t kPage = process::kPageBytes;

// Pages of this process: 'w' is written, 'r' only read, '.' neither.
class Pages {
 public:
  explicit Pages(const std::string& pages) : size_((pages.size() + 2) * kPage) {
    char* const all =
        static_cast<char*>(::mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    EXPECT_NE(all, MAP_FAILED);
    // So that it is no part of another mapping.
    ::mprotect(all, kPage, PROT_NONE);
    ::mprotect(all + size_ - kPage, kPage, PROT_NONE);
    begin_ = reinterpret_cast<uint64_t>(all);
    for (size_t i = 0; i < pages.size(); ++i) {
      volatile char* const page = all + (i + 1) * kPage;
      if (pages[i] == 'w') *page = 1;
      if (pages[i] == 'r') (void)*page;
    }
  }
  ~Pages() { ::munmap(reinterpret_cast<void*>(begin_), size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  Mapping mapping() const {
    const auto map = process::memory_map(::getpid(), process::Detail::kSmaps);
    return *std::find_if(map->begin(), map->end(),
                         [&](const Mapping& one) { return one.begin == begin_ + kPage; });
  }
  // As "w.w": what is found of each page.
  std::string found(PageMap::Way way) const {
    const Mapping mapping = this->mapping();
    std::vector<Range> ranges;
    EXPECT_TRUE(PageMap(::getpid(), way).find(mapping, PageMap::Pages::kFilled, ranges));
    std::string text(size_ / kPage - 2, '.');
    for (const Range& range : ranges) {
      for (uint64_t at = range.begin; at < range.end; at += kPage) {
        text[(at - mapping.begin) / kPage] = 'w';
      }
    }
    return text;
  }

 private:
  uint64_t begin_ = 0;
  size_t size_;
};

#define SKIP_WITHOUT_ZERO_PAGE()                                       \
  if (Pages("r").mapping().resident != 0) {                            \
    GTEST_SKIP() << "this kernel has no page of zeros that all share"; \
  }

TEST(ResidentPagesTest, PagesThatWereOnlyReadHoldNothing) {
  SKIP_WITHOUT_ZERO_PAGE();
  if (PageMap(::getpid()).way() != PageMap::Way::kScan) {
    GTEST_SKIP() << "this kernel has no PAGEMAP_SCAN (Linux 6.7)";
  }
  EXPECT_EQ(Pages("w.wwr.r..w").found(PageMap::Way::kScan), "w.ww.....w");
  EXPECT_EQ(Pages("r.r..").found(PageMap::Way::kScan), ".....");
}

TEST(ResidentPagesTest, WithoutAScanTheyCountWhereOthersAreWritten) {
  SKIP_WITHOUT_ZERO_PAGE();
  EXPECT_EQ(Pages("w.wwr.r..w").found(PageMap::Way::kRead), "w.www.w..w");
  EXPECT_EQ(Pages("r.r..").found(PageMap::Way::kRead), ".....");
}

TEST(ResidentPagesTest, PartsWithinRanges) {
  const std::vector<Range> ranges = {{10, 20}, {30, 40}, {50, 60}};
  const auto text = [&](Range range) {
    std::string all;
    for (const Range& one : process::parts_within(range, ranges)) {
      all += std::to_string(one.begin) + "-" + std::to_string(one.end) + " ";
    }
    return all;
  };
  EXPECT_EQ(text({0, 100}), "10-20 30-40 50-60 ");
  EXPECT_EQ(text({15, 55}), "15-20 30-40 50-55 ");
  EXPECT_EQ(text({20, 30}), "");
  EXPECT_EQ(text({35, 36}), "35-36 ");
}

}  // namespace
}  // namespace mtrace::test
