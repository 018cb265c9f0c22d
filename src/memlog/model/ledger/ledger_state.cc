#include "model/ledger/ledger_state.h"

#include <bitset>

#include "format/memlog.h"
#include "format/python.h"
#include "model/ledger/ledger_file.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::ledger {
namespace {

using format::LedgerCounterSet;

constexpr size_t kMostPath = 16384;
constexpr uint32_t kMostModules = 16384;

// Keeps two copies of each piece of the arena, made when it is first needed: one with what must be
// read first and, some microseconds later, one with what must be read afterwards.
class ArenaCopy {
 public:
  explicit ArenaCopy(const LedgerFile& file) : file_(file) {}

  enum Look { kFirst, kSecond };
  // Returns the `size` bytes that begin at unit `index`; nullptr: not in the file.
  const char* at(uint32_t index, size_t size, Look look) {
    constexpr uint32_t kUnits = format::kArenaChunk / format::kArenaUnit;
    const uint32_t chunk = index / kUnits;
    const size_t into = size_t{index % kUnits} * format::kArenaUnit;
    if (index == 0 || chunk >= format::kArenaChunks || size > format::kArenaChunk - into) {
      return nullptr;
    }
    if (chunk >= chunks_.size()) chunks_.resize(chunk + 1);
    Chunk& copy = chunks_[chunk];
    if (!copy.asked) prepare(chunk, copy);
    if (copy.looks[look] == nullptr) return nullptr;
    for (size_t piece = into / kPiece; piece * kPiece < into + size; ++piece) {
      if (!copy.tried[piece]) load(copy, piece);
      if (!copy.there[piece]) return nullptr;
    }
    return copy.looks[look].get() + into;
  }
  template <typename T>
  bool get(uint32_t index, T& to, Look look) {
    const char* bytes = at(index, sizeof to, look);
    if (bytes != nullptr) std::memcpy(&to, bytes, sizeof to);
    return bytes != nullptr;
  }

  uint32_t machine() const { return file_.header().machine; }

 private:
  // Only what is asked for is read: most processes use little of their last chunk.
  static constexpr size_t kPiece = 4096;
  struct Chunk {
    bool asked = false;
    uint64_t address = 0;
    std::unique_ptr<char[]> looks[2];
    std::bitset<format::kArenaChunk / kPiece> tried;
    std::bitset<format::kArenaChunk / kPiece> there;
  };
  void prepare(uint32_t chunk, Chunk& copy) {
    copy.asked = true;
    // A damaged table may name the same place again and again; limit the copies.
    if (++loaded_ > file_.size() / format::kArenaChunk) return;
    const uint64_t at = file_.header().roots.arena + uint64_t{chunk} * sizeof copy.address;
    if (!file_.read(at, copy.address)) return;
    for (auto& look : copy.looks) {
      look = std::make_unique_for_overwrite<char[]>(format::kArenaChunk);
    }
  }
  void load(Chunk& copy, size_t piece) {
    copy.tried[piece] = true;
    const size_t at = piece * kPiece;
    copy.there[piece] = file_.read(copy.address + at, copy.looks[kFirst].get() + at, kPiece) &&
                        file_.read(copy.address + at, copy.looks[kSecond].get() + at, kPiece);
  }

  const LedgerFile& file_;
  std::vector<Chunk> chunks_;
  uint64_t loaded_ = 0;
};

// Calls visit(set) for each set of a stack.
template <typename Visit>
bool each_set(ArenaCopy& arena, const format::LedgerStack& record, ArenaCopy::Look look,
              Visit&& visit) {
  visit(record.own);
  bool whole = true;
  const auto visit_at = [&](uint32_t index) {
    LedgerCounterSet set;
    if (index == 0) return;
    if (arena.get(index, set, look)) {
      visit(set);
    } else {
      whole = false;
    }
  };
  visit_at(record.second);
  uint32_t next = record.others;
  // A damaged table may lead in a circle.
  for (unsigned piece = 0; next != 0 && piece < format::kLedgerMostOtherSets; ++piece) {
    format::LedgerOtherSets others;
    if (!arena.get(next, others, look)) return false;
    for (const uint32_t index : others.sets) visit_at(index);
    visit_at(others.shared);
    next = others.next;
  }
  return whole;
}

void add_frames(const char* bytes, unsigned count, uint32_t machine, std::vector<uint64_t>& out) {
  for (; count != 0; --count, bytes += format::kLedgerFrameBytes) {
    uint64_t frame = 0;
    std::memcpy(&frame, bytes, format::kLedgerFrameBytes);
    out.push_back(format::whole_frame(frame, machine));
  }
}

// Reads what the stack at `stack.index` is, but no counters. `get(index, offset, to, size)` copies
// bytes from behind the start of a unit of the arena, and returns false when the file does not have
// them; so does this.
template <typename Get>
bool read_frames(Get&& get, uint32_t machine, format::LedgerStack& record,
                 LedgerStackState& stack) {
  if (!get(stack.index, 0, &record, sizeof record) || record.ordinal == 0 ||
      record.own_frames + record.tails * format::kLedgerTailFrames > format::kMaxDepth) {
    return false;
  }
  char bytes[format::kMaxDepth * format::kLedgerFrameBytes];
  if (!get(stack.index, sizeof record, bytes, record.own_frames * format::kLedgerFrameBytes)) {
    return false;
  }
  stack.frames.clear();
  add_frames(bytes, record.own_frames, machine, stack.frames);
  uint32_t next = record.tail;
  for (unsigned i = 0; i < record.tails; ++i) {
    format::LedgerTail tail;
    if (next == 0 || !get(next, 0, &tail, sizeof tail)) return false;
    add_frames(tail.frames, format::kLedgerTailFrames, machine, stack.frames);
    next = tail.parent;
  }
  stack.ordinal = record.ordinal;
  stack.kind = record.kind <= format::kLedgerKinds ? record.kind : 0;
  stack.call = record.call;
  stack.cut = record.cut != 0;
  stack.guessed = record.guessed;
  stack.retired = record.retired;
  return true;
}

// Reads everything but the allocated totals. Returns false when the record is incomplete.
bool read_record(ArenaCopy& arena, uint64_t height, LedgerStackState& stack) {
  const auto get = [&](uint32_t index, size_t offset, void* to, size_t size) {
    const char* bytes = arena.at(index, offset + size, ArenaCopy::kFirst);
    if (bytes != nullptr) std::memcpy(to, bytes + offset, size);
    return bytes != nullptr;
  };
  const uint32_t ordinal = stack.ordinal;
  format::LedgerStack record;
  if (!read_frames(get, arena.machine(), record, stack) || stack.ordinal != ordinal) return false;
  if (stack.kind != 0 && (record.own.set_aside & format::kLedgerMappingForm) != 0) {
    stack.mapping_form = static_cast<uint32_t>(record.own.set_aside);
  }
  return each_set(arena, record, ArenaCopy::kFirst, [&](const LedgerCounterSet& set) {
    stack.now.freed_bytes += set.freed_bytes;
    stack.now.freed_blocks += set.freed_blocks;
    stack.now.temporary += set.temporary;
    if (set.long_lived < set.freed_blocks) {
      stack.now.short_lived += set.freed_blocks - set.long_lived;
    }
    stack.now.lifetime += set.lifetime;
    stack.slack += set.slack;
    stack.shortest = std::max(stack.shortest, set.shortest);
    stack.longest = std::max(stack.longest, set.longest);
    constexpr uint64_t kHeightBits = (uint64_t{1} << format::kLedgerMarkBits) - 1;
    stack.share += (set.mark & kHeightBits) == (height & kHeightBits)
                       ? set.set_aside
                       : set.allocated_bytes - set.freed_bytes;
  });
}

// Reads the allocated totals; call it after read_record().
void read_allocated(ArenaCopy& arena, LedgerStackState& stack) {
  format::LedgerStack record;
  if (!arena.get(stack.index, record, ArenaCopy::kSecond)) return;
  each_set(arena, record, ArenaCopy::kSecond, [&](const LedgerCounterSet& set) {
    stack.now.allocated_bytes += set.allocated_bytes;
    stack.now.allocated_blocks += set.allocated_blocks;
  });
  // A damaged file, or one after a power loss, can hold any numbers.
  LedgerCounts& now = stack.now;
  if (now.live_bytes() < 0) now.allocated_bytes = now.freed_bytes;
  if (now.live_blocks() < 0) now.allocated_blocks = now.freed_blocks;
  if (static_cast<int64_t>(stack.slack) < 0) stack.slack = 0;
  if (static_cast<int64_t>(stack.share) < 0) stack.share = 0;
}

void read_stacks(const LedgerFile& file, LedgerState& state) {
  const format::LedgerRoots& roots = file.header().roots;
  uint32_t count = 0;
  if (!file.read(roots.stack_count, count)) {
    throw LedgerError(file.name() + ": damaged: its stacks are missing");
  }
  ChunkedCopy<uint32_t, format::kStacksChunk> records(file, roots.stacks);
  ChunkedCopy<format::LedgerCounters, format::kReportedChunk> reported(file, roots.reported);
  ArenaCopy arena(file);
  // There can be no more stacks than the file has room for.
  constexpr uint64_t kLeast = sizeof(format::LedgerStack);
  const uint64_t most = file.size() / kLeast;
  for (uint32_t ordinal = 1; ordinal <= std::min<uint64_t>(count, most); ++ordinal) {
    LedgerStackState stack;
    stack.ordinal = ordinal;
    stack.index = records.get(ordinal - 1);
    if (stack.index == 0) continue;  // being added, or without room
    if (!read_record(arena, state.peak, stack)) {
      ++state.unread;
      continue;
    }
    stack.reported = reported.get(ordinal);
    read_allocated(arena, stack);
    state.stacks.push_back(std::move(stack));
  }
}

void read_threads(const LedgerFile& file, LedgerState& state) {
  const format::LedgerRoots& roots = file.header().roots;
  uint32_t used = 0;
  uint32_t several = 0;
  file.read(roots.threads_used, used);
  file.read(roots.threads_several, several);
  state.several_threads = several != 0;
  std::vector<format::LedgerThread> threads(
      std::min(std::max(used, 1u), format::kLedgerThreads - 1) + size_t{1});
  if (!file.read(roots.threads, threads.data(), threads.size() * sizeof threads[0])) {
    ++state.unread;
    return;
  }
  for (const format::LedgerThread& thread : threads) {
    for (unsigned call = 0; call < format::kLedgerCalls; ++call) {
      state.calls[call] += thread.calls[call];
    }
    state.failed_allocations += thread.failed_allocations;
    state.unknown_frees += thread.unknown_frees;
    state.kept += thread.most_kept;
  }
}

// Reads the modules in the list from `address` to `until`, which is not one of them.
void read_modules(const LedgerFile& file, uint64_t address, uint64_t until, LedgerState& state) {
  std::vector<bool> known(kMostModules);
  for (const LedgerModuleState& module : state.modules) known[module.entry.number] = true;
  while (address != until && state.modules.size() < kMostModules) {
    LedgerModuleState module;
    module.address = address;
    if (!file.read(address, module.entry) || module.entry.path_length > kMostPath ||
        module.entry.number >= kMostModules || known[module.entry.number] ||
        module.entry.build_id_size > sizeof module.entry.build_id) {
      ++state.unread;
      break;
    }
    module.path.resize(module.entry.path_length);
    if (!file.read(address + sizeof module.entry, module.path.data(), module.path.size()) ||
        module.path.empty()) {
      ++state.unread;
      break;
    }
    known[module.entry.number] = true;
    address = module.entry.next;
    state.modules.push_back(std::move(module));
  }
  std::sort(state.modules.begin(), state.modules.end(),
            [](const auto& a, const auto& b) { return a.entry.number < b.entry.number; });
}

// Like read_modules(), for code objects of Python.
void read_python(const LedgerFile& file, uint64_t address, uint64_t until, LedgerState& state) {
  constexpr uint32_t kMostText = 1024;
  constexpr uint32_t kMostTable = 64 * 1024;
  while (address != until) {
    LedgerCodeState code;
    if (!file.read(address, code.entry) || code.entry.number > format::kMostPythonCode ||
        code.entry.name_bytes > kMostText || code.entry.file_bytes > kMostText ||
        code.entry.file_bytes == 0 || code.entry.table_bytes > kMostTable) {
      ++state.unread;
      return;
    }
    address += sizeof code.entry;
    bool whole = true;
    for (auto [text, size] : {std::pair{&code.name, code.entry.name_bytes},
                              {&code.table, code.entry.table_bytes},
                              {&code.file, code.entry.file_bytes}}) {
      text->resize(size);
      whole &= file.read(address, text->data(), size);
      address += size;
    }
    address = code.entry.next;
    // Each number once, so a list that leads in a circle ends.
    if (!whole || !state.python.emplace(code.entry.number, std::move(code)).second) {
      ++state.unread;
      return;
    }
  }
}

}  // namespace

uint64_t counted_calls(const LedgerState& state) {
  return std::accumulate(std::begin(state.calls), std::end(state.calls), uint64_t{0});
}

LedgerState read_ledger(const LedgerFile& file) {
  const format::LedgerRoots& roots = file.header().roots;
  LedgerState state;
  file.read(roots.peak, state.peak);
  file.read(roots.peak_when, state.peak_when);
  read_stacks(file, state);
  read_threads(file, state);
  read_modules(file, file.header().first_module, 0, state);
  read_python(file, file.header().first_python_code, 0, state);
  file.read(roots.lost_stacks, state.lost_stacks);
  file.read(roots.lost_frames, state.lost_frames);
  file.read(roots.lost_blocks, state.lost_blocks);
  file.read(roots.lost_inflight, state.lost_inflight);
  file.read(file.header().lost_frees, state.lost_frees);
  return state;
}

using format::kLedgerAlive;
using format::LedgerModule;

// Chooses as the library does (modules/modules.cc). Of two modules there in turn: the later one. Of
// two there at once: the one in the other's hole. If none is alive: one that is about to be
// retired.
size_t LedgerModules::find(uint64_t address, uint32_t retired) {
  const auto [at, fresh] = known_.try_emplace({address, retired}, kNone);
  if (!fresh) return at->second;
  size_t dying = kNone;
  for (size_t i = 0; i < modules_.size(); ++i) {
    const LedgerModule& entry = modules_[i].entry;
    if (address < entry.start || address >= entry.end) continue;
    const bool loaded = retired == kLedgerAlive ? entry.died == kLedgerAlive
                                                : entry.born < retired && retired <= entry.died;
    if (!loaded) {
      dying = i;
      continue;
    }
    const size_t found = at->second;
    const bool wider = found != kNone && entry.end - entry.start > modules_[found].entry.end -
                                                                       modules_[found].entry.start;
    if (!wider) at->second = i;
  }
  if (at->second == kNone && retired == kLedgerAlive) at->second = dying;
  return at->second;
}

profile::StackIds LedgerModules::stack_ids(const LedgerStackState& stack) {
  for (size_t i = identities_.size(); i < modules_.size(); ++i) {
    const LedgerModule& entry = modules_[i].entry;
    const std::string& path = modules_[i].path;
    identities_.push_back(entry.build_id_size != 0
                              ? format::module_identity(entry.build_id, entry.build_id_size)
                              : format::module_identity(path.data(), path.size()));
  }
  profile::StackIds ids;
  for (auto at = stack.frames.rbegin(); at != stack.frames.rend(); ++at) {
    const uint64_t frame = *at;
    if (format::PythonFrame::is_one(frame)) {
      const PythonFrameText python = python_frame(state_, frame);
      ids.add(python.identity, python.module.empty() ? frame : python.offset);
      continue;
    }
    const size_t module = find(frame, stack.retired);
    if (module == kNone) {
      ids.add(0, frame);
    } else {
      ids.add(identities_[module], frame - modules_[module].entry.base);
    }
  }
  return ids;
}

template <typename T>
T LedgerStacks::header_word(size_t offset) const {
  T word = 0;
  util::read_at(file_.descriptor(), offset, &word, sizeof word);
  return word;
}

bool LedgerStacks::has_grown() {
  const auto extents = header_word<uint32_t>(offsetof(format::LedgerHeader, extents_used));
  if (extents == file_.header().extents_used) return false;
  try {
    file_.refresh();
  } catch (const LedgerError&) {
    return false;  // damaged by its process
  }
  return true;
}

bool LedgerStacks::read(uint64_t address, void* to, size_t size) {
  return file_.read(address, to, size) || (has_grown() && file_.read(address, to, size));
}

bool LedgerStacks::read_arena(uint32_t index, size_t offset, void* to, size_t size) {
  constexpr uint32_t kUnits = format::kArenaChunk / format::kArenaUnit;
  const uint32_t chunk = index / kUnits;
  const size_t into = size_t{index % kUnits} * format::kArenaUnit + offset;
  if (index == 0 || chunk >= format::kArenaChunks || into + size > format::kArenaChunk)
    return false;
  if (chunk >= arena_.size()) arena_.resize(chunk + 1);
  uint64_t& address = arena_[chunk];
  const uint64_t at = file_.header().roots.arena + uint64_t{chunk} * sizeof address;
  if (address == 0 && (!read(at, &address, sizeof address) || address == 0)) return false;
  return read(address + into, to, size);
}

// What the addresses of a stack meant when it was read stands in a list of modules that is read
// afterwards: whatever has been loaded since then is another entry.
const LedgerStackState* LedgerStacks::find(uint32_t index) {
  const auto get = [&](uint32_t unit, size_t offset, void* to, size_t size) {
    return read_arena(unit, offset, to, size);
  };
  stack_.index = index;
  format::LedgerStack record;
  if (!read_frames(get, file_.header().machine, record, stack_)) return nullptr;
  const auto first = header_word<uint64_t>(offsetof(format::LedgerHeader, first_module));
  if (first != first_module_) {
    has_grown();
    read_modules(file_, first, std::exchange(first_module_, first), state_);
    modules_.forget();
  }
  if (stack_.retired != kLedgerAlive) look_for_deaths();
  return &stack_;
}

void LedgerStacks::look_for_deaths() {
  for (LedgerModuleState& module : state_.modules) {
    file_.read(module.address + offsetof(LedgerModule, died), module.entry.died);
  }
  modules_.forget();
}

const LedgerModuleState* LedgerStacks::module_of(uint64_t address) {
  const auto is_gone = [&](size_t found) {
    return found != LedgerModules::kNone && stack_.retired == kLedgerAlive &&
           state_.modules[found].entry.died != kLedgerAlive;
  };
  size_t found = modules_.find(address, stack_.retired);
  if (is_gone(found)) {  // or it has come back meanwhile
    look_for_deaths();
    found = modules_.find(address, stack_.retired);
  }
  return found == LedgerModules::kNone ? nullptr : &state_.modules[found];
}

const LedgerState& LedgerStacks::with_code_of(uint64_t frame) {
  if (!state_.python.contains(format::PythonFrame::code(frame))) {
    const auto first = header_word<uint64_t>(offsetof(format::LedgerHeader, first_python_code));
    has_grown();
    read_python(file_, first, std::exchange(first_code_, first), state_);
  }
  return state_;
}

namespace {

LedgerBlock unpack(const format::LedgerSlot& slot) {
  constexpr unsigned kBirthLow = 64 - format::kSlotAddressBits;
  const uint64_t size =
      slot.value >> format::kSlotStackBits & ((uint64_t{1} << format::kSlotSizeBits) - 1);
  const auto birth = static_cast<uint32_t>(
      slot.key >> format::kSlotAddressBits |
      slot.value >> (format::kSlotStackBits + format::kSlotSizeBits) << kBirthLow);
  return {(slot.key & ((uint64_t{1} << format::kSlotAddressBits) - 1)) << 3, size,
          static_cast<uint32_t>(slot.value & ((1u << format::kSlotStackBits) - 1)),
          unpack_ticks(birth), birth};
}

LedgerBlock unpack(uint64_t word, uint64_t granule) {
  constexpr unsigned kBirthShift = format::kShadowStackBits + format::kShadowSizeBits;
  constexpr unsigned kBirthBits = format::kShadowPlaceShift - kBirthShift;
  const uint64_t birth = word >> kBirthShift & ((uint64_t{1} << kBirthBits) - 1);
  return {granule + (word >> format::kShadowPlaceShift << 3),
          word >> format::kShadowStackBits & ((uint64_t{1} << format::kShadowSizeBits) - 1),
          static_cast<uint32_t>(word & ((1u << format::kShadowStackBits) - 1)),
          unpack_ticks(static_cast<uint32_t>(birth)), static_cast<uint32_t>(birth)};
}

// Those in the shadow of the heap.
bool each_small_block(const LedgerFile& file,
                      const std::function<void(const LedgerBlock&)>& visit) {
  using format::kShadowGranuleBits, format::kShadowPartBits, format::kShadowChunk;
  std::vector<format::LedgerShadowPage> pages(format::kShadowPages);
  std::vector<uint64_t> words(size_t{1} << (kShadowPartBits - kShadowGranuleBits));
  const size_t bytes = words.size() * sizeof words[0];
  bool whole = true;
  for (uint64_t chunk = 0; chunk < format::kShadowPagesChunks; ++chunk) {
    uint64_t address = 0;
    if (!file.read(file.header().shadow + chunk * sizeof address, address)) return false;
    if (address == 0) break;
    if (!file.read(address, pages.data(), pages.size() * sizeof pages[0])) return false;
    for (size_t i = 0; i < pages.size(); ++i) {
      const uint64_t part = pages[i].owner & ~uint64_t{1};
      if (part == pages[i].owner) continue;
      const uint64_t first = pages[i / kShadowChunk * kShadowChunk].chunk;
      if (!file.read(first + i % kShadowChunk * bytes, words.data(), bytes)) {
        whole = false;
        continue;
      }
      for (uint64_t k = 0; k < words.size(); ++k) {
        if (words[k] != 0) visit(unpack(words[k], part + (k << kShadowGranuleBits)));
      }
    }
  }
  return whole;
}

}  // namespace

uint64_t unpack_ticks(uint32_t packed) {
  constexpr unsigned kMantissaBits = 25;
  constexpr unsigned kExponentStep = 4;
  const uint64_t mantissa = packed & ((1u << kMantissaBits) - 1);
  return mantissa << (packed >> kMantissaBits & 3) * kExponentStep;
}

bool each_block(const LedgerFile& file, const std::function<void(const LedgerBlock&)>& visit) {
  constexpr size_t kAtATime = 1u << 14;  // slots
  const format::LedgerRoots& roots = file.header().roots;
  ChunkedCopy<uint64_t, format::kLargeChunk> large(file, roots.large_sizes);
  uint32_t highest = 0;
  bool whole = each_small_block(file, visit);
  whole &= file.read(roots.highest_level, highest);
  std::vector<format::LedgerSlot> slots(kAtATime);
  for (uint32_t number = 0; number <= highest && number < format::kLedgerLevels; ++number) {
    format::LedgerLevel level = {};
    whole &= file.read(roots.levels + number * sizeof level, level);
    const uint64_t count = level.lines * format::kSlotsALine;
    for (uint64_t at = 0; at < count; at += slots.size()) {
      const size_t part = std::min<uint64_t>(slots.size(), count - at);
      if (!file.read(level.slots + at * sizeof slots[0], slots.data(), part * sizeof slots[0])) {
        whole = false;
        break;
      }
      for (size_t i = 0; i < part; ++i) {
        if (slots[i].key <= 1 || slots[i].value == 0) continue;
        LedgerBlock block = unpack(slots[i]);
        if (block.size >= format::kLargeSize) {
          block.size = large.get(static_cast<uint32_t>(block.size - format::kLargeSize));
        }
        visit(block);
      }
    }
  }
  return whole;
}

std::vector<LedgerNoteText> read_notes(const LedgerFile& file) {
  using format::LedgerNote;
  struct Found {
    uint32_t order;
    LedgerNoteText note;
  };
  std::vector<Found> found;
  const uint64_t begin = file.header().notes;
  for (unsigned i = 0; begin != 0 && i < format::kLedgerNotes; ++i) {
    LedgerNote note;
    LedgerNote again;
    const uint64_t address = begin + i * sizeof note;
    if (!file.read(address, note) || note.state != format::kNoteWhole) continue;
    // A report may have taken the note meanwhile, and another note its place.
    if (!file.read(address, again) || again.state != note.state || again.order != note.order) {
      continue;
    }
    const std::string text = util::array_text(again.text);
    if (!text.empty()) found.push_back({again.order, {again.time, text}});
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    if (a.note.time != b.note.time) return a.note.time < b.note.time;
    return static_cast<int32_t>(a.order - b.order) < 0;
  });
  std::vector<LedgerNoteText> notes;
  notes.reserve(found.size());
  for (Found& one : found) notes.push_back(std::move(one.note));
  return notes;
}

std::string python_gap_text(const format::PythonCoverage& coverage, const std::string& path) {
  using format::PythonGap;
  if (coverage.gap <= PythonGap::kBeingNoted) return {};
  const uint32_t version = coverage.version;
  return fmt::format(
      "{}{}{}: CPython {}{}",
      coverage.gap == PythonGap::kOnTrial ? format::kPythonOnTrial : format::kNotCoveredPython,
      path.empty() ? "" : " of ", util::escaped(path, ""),
      version == 0
          ? "before 3.11"
          : fmt::format("{}.{}.{}", version >> 24, version >> 16 & 0xff, version >> 8 & 0xff),
      format::python_gap_reason(coverage.gap));
}

std::string python_gap(const LedgerFile& file, const LedgerState& state) {
  const format::PythonCoverage& coverage = file.header().python;
  if (coverage.gap <= format::PythonGap::kBeingNoted) return {};
  LedgerModules modules(state);
  const size_t module = modules.find(coverage.loop, format::kLedgerAlive);
  return python_gap_text(coverage,
                         module == LedgerModules::kNone ? "" : state.modules[module].path);
}

PythonFrameText python_frame(const LedgerState& state, uint64_t frame) {
  using format::PythonFrame;
  PythonFrameText text;
  const auto known = state.python.find(PythonFrame::code(frame));
  if (known == state.python.end()) {
    text.function = format::kPythonWithoutRoom;
    return text;
  }
  const LedgerCodeState& code = known->second;
  text.function = code.name.empty() ? format::kUnknownFunction : code.name;
  text.module = code.file;
  text.identity = format::module_identity(code.file.data(), code.file.size());
  text.offset = format::python_offset(code.entry.identity, frame);
  format::PythonLines lines(reinterpret_cast<const unsigned char*>(code.table.data()),
                            code.table.size(), code.entry.first_line);
  text.line = lines.line_of(PythonFrame::instruction(frame));
  if (text.line != 0) {
    size_t length = 0;
    const char* const name = format::python_file_name(code.file.data(), code.file.size(), &length);
    text.source = fmt::format("{}:{}", std::string_view(name, length), text.line);
  }
  return text;
}

}  // namespace mtrace::ledger
