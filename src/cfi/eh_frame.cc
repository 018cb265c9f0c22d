#include "cfi/cursor.h"
#include "cfi/row.h"

namespace mtrace::cfi {
namespace {

constexpr uint8_t kEncodingAbsolute = 0;
constexpr uint8_t kPlainTable = 0x3b;  // of linkers: 4 signed bytes, from the header on
constexpr uint64_t kMaxColumn = 255;

// The header of one entry, CIE or FDE.
struct Entry {
  uintptr_t id_place;
  uint64_t id;
  uintptr_t body;
  uintptr_t end;
};

// False at the terminator and on a length that leaves the segment.
bool read_entry(const Bounds& bounds, uintptr_t at, Entry* entry) {
  const uintptr_t limit = bounds.end_of(at, 4);
  if (limit == 0) return false;
  Cursor in(at, limit);
  uint64_t length = in.fixed<uint32_t>();
  const bool wide = length == 0xffffffffu;
  if (wide) length = in.fixed<uint64_t>();
  if (!in.ok() || length == 0 || length > in.left()) return false;
  entry->end = in.position() + length;
  entry->id_place = in.position();
  Cursor body(in.position(), entry->end);
  // The id of the 64-bit form has eight bytes by the LSB, four as some GNU tools wrote it. Neither
  // occurs in practice on x86_64.
  entry->id = wide ? body.fixed<uint64_t>() : body.fixed<uint32_t>();
  entry->body = body.position();
  return body.ok();
}

bool read_cie(const Bounds& bounds, uintptr_t at, Fde* fde) {
  Entry entry;
  if (!read_entry(bounds, at, &entry) || entry.id != 0) return false;
  Cursor in(entry.body, entry.end);
  const uint8_t version = in.u8();
  if (version != 1 && version != 3 && version != 4) return false;
  const uintptr_t augmentation = in.position();
  while (in.u8() != 0) {
    if (!in.ok()) return false;
  }
  if (version == 4) {
    const uint8_t address_size = in.u8();
    const uint8_t segment_size = in.u8();
    if (address_size != 8 || segment_size != 0) return false;
  }
  fde->code_align = in.uleb();
  fde->data_align = in.sleb();
  fde->return_column = version == 1 ? in.u8() : in.uleb();
  fde->pointer_encoding = kEncodingAbsolute;
  fde->signal_frame = false;
  const auto* letter = reinterpret_cast<const char*>(augmentation);
  fde->augmented = *letter == 'z';
  if (fde->augmented) {
    const uint64_t size = in.uleb();
    if (!in.ok() || size > in.left()) return false;
    Cursor data(in.position(), in.position() + size);
    in.skip(size);
    // An unknown letter ends the list: its data has no known size, but 'z' says where it ends.
    for (++letter; *letter != '\0'; ++letter) {
      if (*letter == 'R') {
        fde->pointer_encoding = data.u8();
      } else if (*letter == 'P') {
        const uint8_t encoding = data.u8();
        if ((encoding & 0x70) == 0x50) return false;
        data.number(encoding);
      } else if (*letter == 'L') {
        data.u8();
      } else if (*letter == 'S') {
        fde->signal_frame = true;
      } else if (*letter != 'B') {
        break;
      }
    }
    if (!data.ok()) return false;
  } else if (*letter != '\0') {
    return false;  // "eh" of GCC 2
  }
  fde->initial = {in.position(), entry.end};
  return in.ok() && fde->return_column <= kMaxColumn && fde->code_align != 0;
}

bool covers(const Fde& fde, uintptr_t pc) { return pc >= fde.pc_begin && pc < fde.pc_end; }

unsigned fixed_size(uint8_t encoding) {
  switch (encoding & 0x0f) {
    case 0x03:
    case 0x0b:
      return 4;
    case 0x00:
    case 0x04:
    case 0x0c:
      return 8;
    default:
      return 0;
  }
}

}  // namespace

bool next_fde(const Bounds& bounds, uintptr_t* at, Fde* fde) {
  Entry entry;
  const bool is_entry = read_entry(bounds, *at, &entry);
  *at = is_entry ? entry.end : 0;
  if (!is_entry || entry.id == 0 || entry.id > entry.id_place) return false;
  if (!read_cie(bounds, entry.id_place - entry.id, fde)) return false;
  Cursor in(entry.body, entry.end);
  fde->pc_begin = in.pointer(fde->pointer_encoding, bounds, 0, 0);
  fde->pc_end = fde->pc_begin + in.number(fde->pointer_encoding);
  if (fde->augmented) in.skip(in.uleb());
  fde->own = {in.position(), entry.end};
  return in.ok();
}

bool find_fde(const Bounds& bounds, uintptr_t header, uintptr_t pc, Fde* fde) {
  const uintptr_t limit = header == 0 ? 0 : bounds.end_of(header, 4);
  if (limit == 0) return false;
  Cursor in(header, limit);
  const uint8_t version = in.u8();
  const uint8_t frame_encoding = in.u8();
  const uint8_t count_encoding = in.u8();
  const uint8_t table_encoding = in.u8();
  if (version != 1) return false;
  const uintptr_t eh_frame = in.pointer(frame_encoding, bounds, header, 0);
  const uint64_t count = in.pointer(count_encoding, bounds, header, 0);
  const unsigned size = fixed_size(table_encoding);
  if (!in.ok()) return false;
  if (table_encoding == kPointerOmit || count_encoding == kPointerOmit || size == 0 ||
      count > in.left() / (2 * size)) {
    // Without a usable table: reads every entry. Each step moves forward by at least four bytes
    // within one segment.
    for (uintptr_t at = eh_frame; at != 0;) {
      if (next_fde(bounds, &at, fde) && covers(*fde, pc)) return true;
    }
    return false;
  }
  const uintptr_t table = in.position();
  auto value_at = [&](uint64_t index, unsigned half) {
    const uintptr_t place = table + index * 2 * size + half * size;
    if (table_encoding == kPlainTable) [[likely]] {
      int32_t distance;
      __builtin_memcpy(&distance, reinterpret_cast<const void*>(place), sizeof distance);
      return header + static_cast<uintptr_t>(intptr_t{distance});
    }
    return Cursor(place, limit).pointer(table_encoding, bounds, header, 0);
  };
  // The last entry that begins at or before pc is in [low, high).
  uint64_t low = 0;
  uint64_t high = count;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    if (value_at(middle, 0) <= pc) {
      low = middle;
    } else {
      high = middle;
    }
  }
  if (count == 0) return false;
  uintptr_t at = value_at(low, 1);
  return next_fde(bounds, &at, fde) && covers(*fde, pc);
}

}  // namespace mtrace::cfi
