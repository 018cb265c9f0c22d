// The library's own functions of <cstring> beside libc's, on every size and alignment, at the end
// of readable memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "pages.h"

// By other names, so that this program keeps libc's.
#define memcpy own_memcpy
#define memmove own_memmove
#define memset own_memset
#define memcmp own_memcmp
#define memchr own_memchr
#define strlen own_strlen
#define strnlen own_strnlen
#define strcmp own_strcmp
#define strncmp own_strncmp
#define strchr own_strchr
#define strrchr own_strrchr
#define strcspn own_strcspn
#define strcpy own_strcpy
#define strncpy own_strncpy
#define strstr own_strstr
#include "life/string_functions.cc"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef memchr
#undef strlen
#undef strnlen
#undef strcmp
#undef strncmp
#undef strchr
#undef strrchr
#undef strcspn
#undef strcpy
#undef strncpy
#undef strstr

namespace mtrace {
namespace {

int sign(int value) { return (value > 0) - (value < 0); }

// The text at the end of what can be read.
char* copy(const Guarded& page, const std::string& text) {
  char* const at = page.end() - text.size() - 1;
  std::copy(text.c_str(), text.c_str() + text.size() + 1, at);
  return at;
}

TEST(StringFunctions, CopyEverySize) {
  const Guarded source(kPage), target(kPage);
  for (size_t size = 0; size <= 300; ++size) {
    char* from = source.end() - size;
    char* to = target.end() - size;
    for (size_t i = 0; i < size; ++i) from[i] = static_cast<char>(i * 7 + size);
    to[-1] = 'x';
    EXPECT_EQ(own_memcpy(to, from, size), to);
    EXPECT_EQ(memcmp(to, from, size), 0) << size;
    EXPECT_EQ(to[-1], 'x');
    own_memset(to, 0x1a5, size);
    EXPECT_EQ(std::count(to, to + size, '\xa5'), static_cast<long>(size)) << size;
    EXPECT_EQ(to[-1], 'x');
  }
}

TEST(StringFunctions, MoveToEveryDistance) {
  for (size_t size : {0, 1, 7, 8, 15, 16, 33, 127, 128, 200}) {
    for (int distance = -40; distance <= 40; ++distance) {
      std::string own(400, '.');
      for (size_t i = 0; i < own.size(); ++i) own[i] = static_cast<char>('a' + i % 23);
      std::string libcs = own;
      own_memmove(own.data() + 100 + distance, own.data() + 100, size);
      memmove(libcs.data() + 100 + distance, libcs.data() + 100, size);
      EXPECT_EQ(own, libcs) << size << " bytes by " << distance;
    }
  }
}

TEST(StringFunctions, AreLibcsOnRandomTexts) {
  std::mt19937 random(1);
  const Guarded pages[2] = {Guarded(kPage), Guarded(kPage)};
  for (int round = 0; round < 20000; ++round) {
    std::string texts[2];
    for (std::string& text : texts) {
      text.resize(random() % 12);
      for (char& c : text) c = "ab\xff"[random() % 3];
    }
    char* a = copy(pages[0], texts[0]);
    char* b = copy(pages[1], texts[1]);
    const size_t most = random() % 14;
    const int wanted = "ab\xff"[random() % 3];
    const size_t both = std::min(texts[0].size(), texts[1].size());
    ASSERT_EQ(own_strlen(a), strlen(a));
    ASSERT_EQ(own_strnlen(a, most), strnlen(a, most));
    ASSERT_EQ(sign(own_strcmp(a, b)), sign(strcmp(a, b)));
    ASSERT_EQ(sign(own_strncmp(a, b, most)), sign(strncmp(a, b, most)));
    ASSERT_EQ(sign(own_memcmp(a, b, both)), sign(memcmp(a, b, both)));
    ASSERT_EQ(own_memchr(a, wanted, texts[0].size()), memchr(a, wanted, texts[0].size()));
    ASSERT_EQ(own_strchr(a, wanted), strchr(a, wanted));
    ASSERT_EQ(own_strchr(a, 0), strchr(a, 0));
    ASSERT_EQ(own_strrchr(a, wanted), strrchr(a, wanted));
    ASSERT_EQ(own_strcspn(a, b), strcspn(a, b));
    ASSERT_EQ(own_strstr(a, b), strstr(a, b));
    char own[32] = "0123456789abcdef0123456789abcde";
    char libcs[32] = "0123456789abcdef0123456789abcde";
    own_strncpy(own, a, most);
    strncpy(libcs, a, most);
    ASSERT_EQ(memcmp(own, libcs, sizeof own), 0);
    own_strcpy(own, a);
    ASSERT_STREQ(own, a);
  }
}

}  // namespace
}  // namespace mtrace
