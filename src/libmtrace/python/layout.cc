#include "python/layout.h"

#include <algorithm>

namespace mtrace::unwind {
namespace {

// Numbers of the words of _Py_DebugOffsets in CPython 3.13.
enum Word : unsigned {
  kCookie = 0,
  kVersion = 1,
  kFreeThreaded = 2,
  kFinalizing = 4,
  kStateFrame = 23,
  kFramePrevious = 29,
  kFrameExecutable = 30,
  kFrameInstruction = 31,
  kFrameOwner = 33,
  kCodeFile = 35,
  kCodeQualifiedName = 37,
  kCodeLineTable = 38,
  kCodeFirstLine = 39,
  kCodeInstructions = 43,
  kObjectType = 45,
  kBytesSize = 65,
  kBytesData = 66,
  kTextState = 68,
  kTextLength = 69,
  kTextHead = 70,
};
static_assert(kTextHead < kPythonExportedWords);

constexpr uint64_t kCookieText = 0x7970677562656478u;  // "xdebugpy"
constexpr uint32_t kExportingVersion = 0x030d;
constexpr uint8_t kOwnedByCStack = 3;      // FRAME_OWNED_BY_CSTACK
constexpr unsigned kTextBeyondAscii = 16;  // PyCompactUnicodeObject has two more words

// Copies offsets, each of which must name a place of `size` bytes below `most`.
class Taker {
 public:
  explicit Taker(const uint64_t* words) : words_(words) {}
  void take(Word which, uint64_t size, uint64_t most, uint16_t* to) {
    const uint64_t offset = words_[which];
    fits_ = fits_ && most >= size && offset <= most - size && offset % (size < 8 ? size : 8) == 0;
    *to = static_cast<uint16_t>(offset);
  }
  void expect(Word which, uint64_t value) { fits_ = fits_ && words_[which] == value; }
  bool fits() const { return fits_; }

 private:
  const uint64_t* const words_;
  bool fits_ = true;
};

}  // namespace

bool exported_layout(const uint64_t* words, uint32_t version, PythonLayout* layout) {
  constexpr uint64_t kMostState = 60'000;  // what 16 bits hold
  Taker taker(words);
  taker.expect(kCookie, kCookieText);
  taker.expect(kVersion, version);
  taker.expect(kFreeThreaded, 0);
  taker.expect(kObjectType, kPythonType);
  taker.expect(kBytesSize, kPythonSize);
  taker.expect(kBytesData, kPythonBytes);
  taker.expect(kTextState, kPythonTextState);
  taker.expect(kTextLength, kPythonSize);
  *layout = {};
  layout->version = version >> 16;
  layout->is_tried = true;
  layout->entry_mark = kOwnedByCStack;
  layout->entry_is_empty = true;
  taker.take(kFinalizing, 8, kMostState, &layout->finalizing);
  taker.take(kStateFrame, 8, kMostState, &layout->state_frame);
  taker.take(kFrameExecutable, 8, kPythonMostFrame, &layout->frame_code);
  taker.take(kFramePrevious, 8, kPythonMostFrame, &layout->frame_previous);
  taker.take(kFrameInstruction, 8, kPythonMostFrame, &layout->frame_instruction);
  taker.take(kFrameOwner, 1, kPythonMostFrame, &layout->frame_entry);
  for (const uint16_t last :
       {layout->frame_code, layout->frame_previous, layout->frame_instruction}) {
    layout->frame_bytes = std::max<uint16_t>(layout->frame_bytes, last + 8);
  }
  layout->frame_bytes = std::max<uint16_t>(layout->frame_bytes, layout->frame_entry + 1);
  taker.take(kCodeInstructions, 8, kPythonMostCode + 8, &layout->code_instructions);
  taker.take(kCodeFirstLine, 4, layout->code_instructions, &layout->code_first_line);
  taker.take(kCodeFile, 8, layout->code_instructions, &layout->code_file);
  taker.take(kCodeQualifiedName, 8, layout->code_instructions, &layout->code_name);
  taker.take(kCodeLineTable, 8, layout->code_instructions, &layout->code_table);
  taker.take(kTextHead, 8, kMostState, &layout->text_ascii);
  layout->text_other = static_cast<uint16_t>(layout->text_ascii + kTextBeyondAscii);
  return taker.fits() && layout->version == kExportingVersion;
}

}  // namespace mtrace::unwind
