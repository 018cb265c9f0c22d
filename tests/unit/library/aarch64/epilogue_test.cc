#include <gtest/gtest.h>

#include <vector>

#include "unwind/code.h"

namespace mtrace::unwind {
namespace {

using Code = std::vector<uint32_t>;

constexpr uint32_t kRet = 0xd65f03c0;
constexpr uint32_t kRetaa = 0xd65f0bff;
constexpr uint32_t kAutiasp = 0xd50323bf;
constexpr uint32_t kJump = 0x14000000;
constexpr uint32_t kMovSpX29 = 0x910003bf;
constexpr uint32_t kMovX0X19 = 0xaa1303e0;
constexpr uint32_t kNop = 0xd503201f;
constexpr uint32_t kLdpX29X30 = 0xa9407bfd;           // ldp x29, x30, [sp]
constexpr uint32_t kLdpX29X30After48 = 0xa8c37bfd;    // ldp x29, x30, [sp], #48
constexpr uint32_t kLdpX19X20At16 = 0xa94153f3;       // ldp x19, x20, [sp, #16]
constexpr uint32_t kLdrX21At32 = 0xf94013f5;          // ldr x21, [sp, #32]
constexpr uint32_t kLdrX30After16 = 0xf84107fe;       // ldr x30, [sp], #16
constexpr uint32_t kAddSp640 = 0x910a03ff;            // add sp, sp, #0x280
constexpr uint32_t kLdrW1X0 = 0xb9400001;             // ldr w1, [x0]
constexpr uint32_t kStpX29X30Before352 = 0xa9aa7bfd;  // stp x29, x30, [sp, #-352]!
constexpr uint32_t kStpX29X30 = 0xa9007bfd;           // stp x29, x30, [sp]
constexpr uint32_t kStrX30Before32 = 0xf81e0ffe;      // str x30, [sp, #-32]!
constexpr uint32_t kSubSp896 = 0xd10e03ff;            // sub sp, sp, #0x380
constexpr uint32_t kSubSp4096 = 0xd14007ff;           // sub sp, sp, #0x1000

const unsigned char* bytes(const uint32_t* word) {
  return reinterpret_cast<const unsigned char*>(word);
}

bool read_from(const Code& code, Epilogue* epilogue) {
  return read_epilogue(bytes(code.data()), bytes(code.data() + code.size()), epilogue);
}

void expect_end(const Code& code, bool by_fp, int32_t fp, int32_t pc, int32_t sp) {
  Epilogue epilogue;
  ASSERT_TRUE(read_from(code, &epilogue));
  EXPECT_EQ(epilogue.by_fp, by_fp);
  EXPECT_EQ(epilogue.fp, fp);
  EXPECT_EQ(epilogue.pc, pc);
  EXPECT_EQ(epilogue.sp, sp);
  for (size_t size = 0; size < code.size(); ++size) {
    EXPECT_FALSE(read_from(Code(code.begin(), code.begin() + static_cast<long>(size)), &epilogue));
  }
}

TEST(EpilogueTest, ReadsWhatCompilersWrite) {
  constexpr int32_t kNone = Epilogue::kUnchanged;
  expect_end({kLdpX19X20At16, kLdrX21At32, kLdpX29X30After48, kRet}, false, 0, 8, 48);
  expect_end({kLdpX29X30, kMovX0X19, kLdpX19X20At16, kAddSp640, kJump}, false, 0, 8, 640);
  expect_end({kLdrX30After16, kAutiasp, kRet}, false, kNone, 0, 16);
  expect_end({kMovSpX29, kLdpX29X30After48, kRetaa}, true, 0, 8, 48);
}

TEST(EpilogueTest, NothingElse) {
  Epilogue epilogue;
  EXPECT_FALSE(read_from({kRet}, &epilogue)) << "its frame is not known to be empty";
  EXPECT_FALSE(read_from({kAddSp640, kRet}, &epilogue)) << "the return address is in a register";
  EXPECT_FALSE(read_from({kLdpX29X30, kRet}, &epilogue)) << "keeps its frame";
  EXPECT_FALSE(read_from({kLdpX29X30After48, kLdrW1X0, kRet}, &epilogue));
  EXPECT_FALSE(read_from({kMovX0X19, kLdpX29X30After48, kRet}, &epilogue)) << "begins later";
}

int32_t size_before_end(const Code& code) {
  return frame_size(bytes(code.data() + code.size()), bytes(code.data()));
}

TEST(EpilogueTest, SizeOfAFrame) {
  EXPECT_EQ(size_before_end({kSubSp896, kRet, kStpX29X30Before352, kMovX0X19, kNop}), 352);
  EXPECT_EQ(size_before_end({kStrX30Before32, kSubSp4096, kMovX0X19}), 4096 + 32);
  EXPECT_EQ(size_before_end({kStpX29X30Before352, kJump, kSubSp896, kStpX29X30, kMovX0X19}), 896);
  EXPECT_EQ(size_before_end({kRet, kMovX0X19}), 0);
  EXPECT_EQ(size_before_end({}), 0);
}

}  // namespace
}  // namespace mtrace::unwind
