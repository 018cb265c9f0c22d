#include <gtest/gtest.h>

#include <vector>

#include "unwind/code.h"

namespace mtrace::unwind {
namespace {

using Code = std::vector<unsigned char>;

bool read_from(const Code& code, Epilogue* epilogue) {
  return read_epilogue(code.data(), code.data() + code.size(), epilogue);
}

void expect_end(const Code& code, bool by_fp, int32_t fp, int32_t pc) {
  Epilogue epilogue;
  ASSERT_TRUE(read_from(code, &epilogue));
  EXPECT_EQ(epilogue.by_fp, by_fp);
  EXPECT_EQ(epilogue.fp, fp);
  EXPECT_EQ(epilogue.pc, pc);
  EXPECT_EQ(epilogue.sp, pc + 8);
  for (size_t size = 0; size < code.size(); ++size) {
    EXPECT_FALSE(read_from(Code(code.begin(), code.begin() + static_cast<long>(size)), &epilogue));
  }
}

TEST(EpilogueTest, ReadsWhatCompilersWrite) {
  constexpr int32_t kNone = Epilogue::kUnchanged;
  expect_end({0x48, 0x83, 0xc4, 0x18, 0xc3}, false, kNone, 24);                      // add; ret
  expect_end({0x48, 0x81, 0xc4, 0x08, 0x10, 0, 0, 0x5b, 0xc3}, false, kNone, 4112);  // pop %rbx
  expect_end({0x5b, 0x5d, 0x41, 0x5c, 0xc3}, false, 8, 24);                          // %rbp, %r12
  expect_end({0x41, 0x5d, 0xe9}, false, kNone, 8);                                   // a tail call
  expect_end({0x48, 0x8d, 0x65, 0xf0, 0x5b, 0x41, 0x5c, 0x5d, 0xc3}, true, 0, 8);    // lea
  expect_end({0xc9, 0xc3}, true, 0, 8);                                              // leave
}

TEST(EpilogueTest, NothingElse) {
  Epilogue epilogue;
  EXPECT_FALSE(read_from({0xc3}, &epilogue)) << "its frame is not known to be empty";
  EXPECT_FALSE(read_from({0x48, 0x83, 0xc4, 0xf8, 0xc3}, &epilogue)) << "takes more stack";
  EXPECT_FALSE(read_from({0x5c, 0xc3}, &epilogue)) << "pop %rsp";
  EXPECT_FALSE(read_from({0x5b, 0x90, 0xc3}, &epilogue));
}

}  // namespace
}  // namespace mtrace::unwind
