#include "model/events/event_code.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <string_view>

#include "format/calls.h"
#include "format/event_log.h"

namespace mtrace::events {
namespace {

using format::EventCode;

struct CodedKind {
  Kind kind = Kind::kUnknown;
  bool has_stack = false;
};

// By the code of the event, those below EventCode::kAllocation.
constexpr CodedKind kWithoutCall[] = {
    {},
    {Kind::kReallocBegin},
    {Kind::kReallocFailed},
    {Kind::kMap, true},
    {Kind::kUnmap},
    {Kind::kRemap, true},
    {Kind::kThreadBegin},
    {Kind::kThreadEnd},
    {Kind::kNote},
    {Kind::kReport},
    {Kind::kStart},
    {Kind::kStop},
    {Kind::kMemory},
    {Kind::kLost},
    {Kind::kEnd},
    {Kind::kFork},
};
// By the highest four bits of the others, from kAllocation on.
constexpr CodedKind kWithCall[] = {
    {Kind::kAllocation, true}, {Kind::kFree},
    {Kind::kUnknownFree},      {Kind::kRealloc, true},
    {Kind::kFree, true},       {Kind::kUnknownFree, true},
    {Kind::kUnmap, true},      {Kind::kInherited, true},
    {Kind::kAllocatedLeftOut},
};
constexpr uint8_t kFirstWithCall = static_cast<uint8_t>(EventCode::kAllocation);

CodedKind coded(uint8_t code) {
  if (code < kFirstWithCall) return kWithoutCall[code];
  const size_t index = (code >> 4) - 1u;
  return index < std::size(kWithCall) ? kWithCall[index] : CodedKind();
}

bool has_number(Kind kind) {
  return kind == Kind::kReport || kind == Kind::kMemory || kind == Kind::kLost ||
         kind == Kind::kFork || kind == Kind::kEnd;
}
bool has_text(Kind kind) { return kind == Kind::kReport || kind == Kind::kNote; }

}  // namespace

uint8_t code_of(const Event& event) {
  const auto with_call = [&](EventCode code) {
    return static_cast<uint8_t>(static_cast<uint8_t>(code) | event.call);
  };
  if (event.kind == Kind::kAllocation) return with_call(EventCode::kAllocation);
  if (event.kind == Kind::kFree && event.stack == 0) return with_call(EventCode::kFree);
  // Only of these are there two codes.
  const bool may_have_none =
      event.kind == Kind::kFree || event.kind == Kind::kUnknownFree || event.kind == Kind::kUnmap;
  const auto fits = [&](const CodedKind& one) {
    return one.kind == event.kind && (!may_have_none || one.has_stack == (event.stack != 0));
  };
  const auto* const without =
      std::find_if(std::begin(kWithoutCall) + 1, std::end(kWithoutCall), fits);
  if (without != std::end(kWithoutCall)) return static_cast<uint8_t>(without - kWithoutCall);
  const auto* const with = std::find_if(std::begin(kWithCall), std::end(kWithCall), fits);
  if (with == std::end(kWithCall)) return 0;
  return static_cast<uint8_t>((with - kWithCall + 1) << 4 | event.call);
}

void set_code(Event& event, uint8_t code) {
  event.kind = kind_of(code);
  if (code >= kFirstWithCall) {
    event.call = std::min<uint8_t>(code & 0xf, format::kEventCalls - 1);
  }
}

Kind kind_of(uint8_t code) { return coded(code).kind; }
bool has_stack(uint8_t code) { return coded(code).has_stack; }

bool aligns(uint8_t call) {
  static const auto kAligning = [] {
    std::array<bool, format::kEventCalls> found = {};
    for (uint8_t i = 0; i < found.size(); ++i) {
      const std::string_view name = format::kCallNames[i];
      found[i] = name == "memalign" || name == "posix_memalign" || name == "aligned_alloc" ||
                 name == "valloc" || name == "pvalloc";
    }
    return found;
  }();
  return call < kAligning.size() && kAligning[call];
}

bool reallocates(uint8_t call) {
  static constexpr auto kReallocating = [] {
    std::array<bool, format::kEventCalls> found = {};
    for (uint8_t i = 0; i < found.size(); ++i) {
      found[i] = std::string_view(format::kCallNames[i]).starts_with("realloc");
    }
    return found;
  }();
  return call < kReallocating.size() && kReallocating[call];
}

uint8_t alignment_of(const Event& event) {
  const int own = event.alignment != 0 ? event.alignment : std::countr_zero(event.address);
  return static_cast<uint8_t>(std::clamp<int>(own, kLeastAlignment, kMostAlignment));
}

void put_usable(Column& out, uint64_t requested, uint64_t usable) {
  out.put_signed(static_cast<int64_t>(usable - format::usual_usable_size(requested)));
}
uint64_t read_usable(ColumnReader& in, uint64_t requested) {
  const auto more = static_cast<uint64_t>(in.signed_number());
  return std::max(requested, format::usual_usable_size(requested) + more);
}

void put_more(Column& out, const Event& event) {
  if (has_number(event.kind)) out.put(event.number);
  if (has_text(event.kind)) out.put_text(event.text);
}
void read_more(ColumnReader& in, Event& event) {
  if (has_number(event.kind)) event.number = in.number();
  if (has_text(event.kind)) event.text = in.text();
}

}  // namespace mtrace::events
