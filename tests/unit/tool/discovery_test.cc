// What answers memlog collect --discover: anybody on the network can send it.
#include <gtest/gtest.h>

#include <string>

#include "surface/serve/heaps.h"

namespace mtrace::test {
namespace {

using serve::read_announcement;

TEST(Discovery, AnAnnouncementIsReadAsItWasWritten) {
  const serve::Announcement own = {"10.0.0.9", 7040, true, "0.2.0", "web3"};
  EXPECT_EQ(own.text(), "memlog-here 1 7040 https 0.2.0 web3");
  const auto read = read_announcement(own.text() + " and words of later versions", "10.0.0.9");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->url(), "https://10.0.0.9:7040");
  EXPECT_EQ(read->text(), own.text());
}

TEST(Discovery, AnythingElseIsNone) {
  const std::string name(64, 'n');
  EXPECT_TRUE(read_announcement("memlog-here 1 7040 http 0.2.0 " + name, "10.0.0.9").has_value());
  for (const std::string& text : {std::string(), std::string("memlog-who 1"),
                                  std::string("memlog-here 2 7040 http 0.2.0 web3"),
                                  std::string("memlog-here 1 0 http 0.2.0 web3"),
                                  std::string("memlog-here 1 65536 http 0.2.0 web3"),
                                  std::string("memlog-here 1 -1 http 0.2.0 web3"),
                                  std::string("memlog-here 1 7040 ftp 0.2.0 web3"),
                                  std::string("memlog-here 1 7040 http 0.2.0"),
                                  std::string("memlog-here 1 7040 http 0.2.0 \x1b[2Jweb3"),
                                  std::string("memlog-here 1 7040 http 0.2.0 web3\n"),
                                  std::string("memlog-here 1 7040 http 0.2.0 web3\0", 37),
                                  "memlog-here 1 7040 http 0.2.0 " + name + 'n',
                                  "memlog-here 1 7040 http " + std::string(33, '1') + " web3"}) {
    EXPECT_FALSE(read_announcement(text, "10.0.0.9").has_value()) << text;
  }
}

}  // namespace
}  // namespace mtrace::test
