#include "events/logging.h"

#include <algorithm>
#include <cstring>

#include "base/syscall.h"
#include "format/memlog.h"
#include "format/python.h"
#include "ledger/ledger.h"
#include "ledger/resource_table.h"
#include "modules/modules.h"
#include "python/code.h"

namespace mtrace::events {

constinit bool g_logging = false;

namespace {

using format::PythonFrame;
using ledger::Call;
using ledger::g_ledger;

constexpr size_t kMostText = 255;            // bytes
constexpr size_t kStacks = size_t{1} << 25;  // ordinals that can be known
constexpr size_t kMostPath = 4096;
constexpr uint64_t kMostSlack = 0xffffffffu;

// Source files of Python are modules with numbers from here on.
constexpr uint32_t kFirstFile = unwind::kMaxModules;
constexpr uint32_t kMostModules = kFirstFile + unwind::kMostPythonFiles + 1;
constexpr unsigned kFramesLog2 = 15;

// What the log has: modules by number, stacks by ordinal, and frames by a hash; a frame that
// another one has replaced is written again. One piece of memory, only in a process with a log.
constexpr size_t kFrameBytes = sizeof(uint64_t) << kFramesLog2;
uint64_t* g_known_frames = nullptr;
uint8_t* g_known_modules = nullptr;
uint8_t* g_known_stacks = nullptr;
size_t g_stacks = 0;  // bytes of g_known_stacks

size_t known_bytes() { return kFrameBytes + kMostModules + g_stacks; }
uint32_t g_forks = 0;  // of the present log

uint64_t address_bits(const void* address) { return reinterpret_cast<uintptr_t>(address) >> 3; }
uint64_t place_word(const Block& block) {
  return block.stack | std::min(block.slack, kMostSlack) << 32;
}
unsigned units_of(size_t bytes) {
  return static_cast<unsigned>((bytes + sizeof(EventUnit) - 1) / sizeof(EventUnit));
}

// Two threads may both find that a module or stack is missing. The writer uses the first record.
void define_module(uint32_t ring, uint32_t number, const unwind::Module& module) {
  if (load(g_known_modules[number]) != 0) return;
  const size_t path = std::min(strlen(module.path), kMostPath);
  const size_t id = std::min<size_t>(module.build_id_size, sizeof module.build_id);
  Record record(ring, 3 + units_of(id + path), true);
  if (!record) return;
  record.unit(1) = {module.base, module.generation};
  record.unit(2) = {id, path};
  record.put_bytes(3, 0, module.build_id, id);
  record.put_bytes(3, id, module.path, path);
  record.commit_facts(EventRecord::kModule, 0, number);
  store_release(g_known_modules[number], uint8_t{1});
}

void define_file(uint32_t ring, uint32_t number, const unwind::PythonFile& file) {
  if (load(g_known_modules[number]) != 0) return;
  Record record(ring, 3 + units_of(file.bytes), true);
  if (!record) return;
  record.unit(1) = {0, 0};
  record.unit(2) = {0, file.bytes};
  record.put_bytes(3, 0, file.text(), file.bytes);
  record.commit_facts(EventRecord::kModule, 0, number);
  store_release(g_known_modules[number], uint8_t{1});
}

// Writes nothing for a frame without a code object: readers of the log know what it means.
void define_python(uint32_t ring, uint64_t frame) {
  uint64_t& known = g_known_frames[frame * 0x9e3779b97f4a7c15u >> (64 - kFramesLog2)];
  const unwind::PythonCode* const code = unwind::python_code(PythonFrame::code(frame));
  if (code == nullptr || load_acquire(known) == frame) return;
  const uint32_t file = kFirstFile + code->file->number;
  define_file(ring, file, *code->file);
  Record record(ring, 3 + units_of(code->name_bytes), true);
  if (!record) return;
  format::PythonLines lines(code->table(), code->table_kept(), code->first_line);
  record.unit(1) = {format::python_offset(code->identity, frame),
                    lines.line_of(PythonFrame::instruction(frame))};
  record.unit(2) = {code->name_bytes, 0};
  record.put_bytes(3, 0, code->name(), code->name_bytes);
  record.commit_facts(EventRecord::kPython, file, frame);
  store_release(known, frame);
}

uint64_t frame_word(uint32_t ring, uintptr_t address) {
  constexpr uint64_t kAddressBits = (uint64_t{1} << 48) - 1;
  if (PythonFrame::is_one(address)) {
    define_python(ring, address);
    return address & kAddressBits;
  }
  uint32_t number = 0;
  const unwind::Module* module = unwind::find_module(address, unwind::kAlive, &number);
  if (module == nullptr || number >= unwind::kMaxModules) return address & kAddressBits;
  define_module(ring, number, *module);
  return uint64_t{number + 1} << 48 | ((address - module->base) & kAddressBits);
}

void name_kind(unsigned kind) {
  const char* name = ledger::kind_name(kind);
  char* const place = g_header->kinds[kind % 31];
  if (name != nullptr && *place == '\0') strncpy(place, name, sizeof g_header->kinds[0] - 1);
}

[[gnu::noinline]] void write_stack(uint32_t ring, uint32_t index, const ledger::StackRecord& stack,
                                   uint8_t& known) {
  uint64_t frames[format::kMaxDepth];
  g_ledger.stacks.each_frame(
      stack, [&](unsigned i, uintptr_t frame) { frames[i] = frame_word(ring, frame); });
  const unsigned depth = stack.depth();
  if (stack.kind != 0) name_kind(stack.kind);
  Record record(ring, 1 + units_of(depth * sizeof *frames), true);
  if (!record) return;  // the next event of the stack tries again
  record.put_bytes(1, 0, frames, depth * sizeof *frames);
  const format::EventStackFacts facts = {
      static_cast<uint16_t>(depth), stack.kind, stack.cut, stack.call, stack.guessed, {}};
  uint64_t word;
  memcpy(&word, &facts, sizeof word);
  record.commit_facts(EventRecord::kStack, index, word);
  store_release(known, uint8_t{1});
}

void define_stack(uint32_t ring, uint32_t index) {
  const ledger::StackRecord& stack = g_ledger.stacks.record(index);
  if (stack.ordinal >= g_stacks) return;
  uint8_t& known = g_known_stacks[stack.ordinal];
  if (load_acquire(known) == 0) [[unlikely]]
    write_stack(ring, index, stack, known);
}

void put_text(EventRecord kind, uint64_t low, const char* text) {
  const size_t length = text != nullptr ? strnlen(text, kMostText) : 0;
  Record record(kNoRing, 2 + units_of(length));
  if (!record) return;
  record.unit(1) = {length, 0};
  record.put_bytes(2, 0, text, length);
  record.commit(kind, low);
}

void put_mark(EventRecord kind, uint32_t ring, uint64_t low) {
  Record record(ring, 1);
  if (record) record.commit(kind, low);
}

}  // namespace

bool begin_log() {
  g_forks = 0;
  if (g_known_frames != nullptr) sys::unmap_memory(g_known_frames, known_bytes());
  // Under a limit of address space, as many as fit into it: a stack takes more bytes than that.
  static_assert(sizeof(ledger::StackRecord) >= kShare);
  g_stacks = std::min<size_t>(kStacks, sys::address_space_limit() / kShare);
  g_known_frames = static_cast<uint64_t*>(sys::map_sparse_memory(known_bytes()));
  if (g_known_frames == nullptr) return false;
  g_known_modules = reinterpret_cast<uint8_t*>(g_known_frames) + kFrameBytes;
  g_known_stacks = g_known_modules + kMostModules;
  return true;
}

void set_logging(bool on) { store(g_logging, on); }

void allocated(uint32_t slot, const void* address, const Block& block, Call call) {
  const uint32_t ring = ring_of(slot);
  define_stack(ring, block.stack);
  Record record(ring, 2);
  if (!record) return;
  record.unit(1) = {block.size, place_word(block)};
  record.commit(EventRecord::kAllocation, address_bits(address), static_cast<unsigned>(call));
}

void freed(uint32_t slot, const void* address, bool known, uint32_t stack, Call call) {
  const uint32_t ring = ring_of(slot);
  if (stack == 0) {
    Record record(ring, 1);
    if (!record) return;
    return record.commit(known ? EventRecord::kFree : EventRecord::kUnknownFree,
                         address_bits(address), static_cast<unsigned>(call));
  }
  define_stack(ring, stack);
  Record record(ring, 2);
  if (!record) return;
  record.unit(1) = {0, stack};
  record.commit(known ? EventRecord::kFreeWithStack : EventRecord::kUnknownFreeWithStack,
                address_bits(address), static_cast<unsigned>(call));
}

void realloc_begins(uint32_t slot, const void* address) {
  put_mark(EventRecord::kReallocBegin, ring_of(slot), address_bits(address));
}

void realloc_failed(uint32_t slot, const void* address) {
  put_mark(EventRecord::kReallocFailed, ring_of(slot), address_bits(address));
}

void reallocated(uint32_t slot, const void* old, const void* address, const Block& block,
                 Call call) {
  const uint32_t ring = ring_of(slot);
  define_stack(ring, block.stack);
  Record record(ring, 3);
  if (!record) return;
  record.unit(1) = {block.size, place_word(block)};
  record.unit(2) = {reinterpret_cast<uintptr_t>(old), 0};
  record.commit(EventRecord::kRealloc, address_bits(address), static_cast<unsigned>(call));
}

void mapped(uint32_t slot, uintptr_t start, uint64_t bytes, uint32_t stack) {
  const uint32_t ring = ring_of(slot);
  define_stack(ring, stack);
  Record record(ring, 2);
  if (!record) return;
  record.unit(1) = {bytes, stack};
  record.commit(EventRecord::kMap, start >> 3);
}

void unmapped(uint32_t slot, uintptr_t start, uint64_t bytes, uint32_t stack) {
  const uint32_t ring = ring_of(slot);
  if (stack != 0) define_stack(ring, stack);
  Record record(ring, 2);
  if (!record) return;
  record.unit(1) = {bytes, stack};
  record.commit(EventRecord::kUnmap, start >> 3);
}

void remapped(uint32_t slot, uintptr_t old_start, uint64_t old_bytes, uintptr_t start,
              uint64_t bytes, uint32_t stack) {
  const uint32_t ring = ring_of(slot);
  define_stack(ring, stack);
  Record record(ring, 3);
  if (!record) return;
  record.unit(1) = {bytes, stack};
  record.unit(2) = {old_start, old_bytes};
  record.commit(EventRecord::kRemap, start >> 3);
}

void thread_begins(uint32_t slot, uint32_t tid) {
  const uint32_t ring = ring_of(slot);
  if (ring == kNoRing) return;
  count_thread(ring, tid);
  put_mark(EventRecord::kThread, ring, tid);
}

uint32_t fork_begins(uint32_t slot) {
  const uint32_t number = fetch_add(g_forks, 1u) + 1;
  Record record(ring_of(slot), 1, true);
  if (!record) return 0;
  record.commit(EventRecord::kFork, number);
  return number;
}

void recording(bool on) { put_mark(on ? EventRecord::kStart : EventRecord::kStop, kNoRing, 0); }

void reported(uint32_t seq, const char* label) { put_text(EventRecord::kReport, seq, label); }

void noted(const char* text) { put_text(EventRecord::kNote, 0, text); }

}  // namespace mtrace::events
