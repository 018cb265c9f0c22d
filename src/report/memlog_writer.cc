#include "report/memlog_writer.h"

#include <cstring>

#include "base/process.h"
#include "base/syscall.h"
#include "format/escape.h"
#include "format/memlog.h"
#include "report/host.h"
#include "unwind/modules.h"

namespace mtrace::report {
namespace {

constexpr uint32_t kMostModules = 1u << 16;

Writer& meta(Writer& out, const char* key) { return out.text("# ").text(key).text(": "); }

void text_line(Writer& out, const char* key, const char* value) {
  meta(out, key).escaped(value, strlen(value), format::kReservedNone).put('\n');
}

void amount_line(Writer& out, const char* key, uint64_t bytes, uint64_t blocks) {
  meta(out, key).number(bytes).text(" bytes ").number(blocks).text(" blocks\n");
}

// Which modules the frames of this report name, one bit each.
class ModuleSet {
 public:
  ModuleSet() : bits_(static_cast<uint64_t*>(sys::map_memory(kMostModules / 8))) {}
  ~ModuleSet() {
    if (bits_ != nullptr) sys::unmap_memory(bits_, kMostModules / 8);
  }
  ModuleSet(const ModuleSet&) = delete;
  ModuleSet& operator=(const ModuleSet&) = delete;
  void add(uint32_t index) {
    if (bits_ != nullptr && index < kMostModules) bits_[index / 64] |= uint64_t{1} << index % 64;
  }
  bool has(uint32_t index) const {
    return bits_ != nullptr && index < kMostModules && (bits_[index / 64] >> index % 64 & 1) != 0;
  }

 private:
  uint64_t* bits_;
};

void module_name(Writer& out, const unwind::Module& module) {
  out.escaped(module.path, strlen(module.path), format::kReservedModule);
  if (module.generation > 1) out.put('#').number(module.generation);
}

void write_frame(Writer& out, uintptr_t address, uint32_t retired, ModuleSet& modules) {
  uint32_t index = 0;
  const unwind::Module* module = unwind::find_module(address, retired, &index);
  out.text("\t(");
  if (module != nullptr) {
    modules.add(index);
    module_name(out, *module);
    out.text("+0x").hex(address - module->base);
  } else {
    out.text("0x").hex(address);
  }
  out.text(")\n");
}

void optional_field(Writer& out, const char* key, uint64_t value) {
  if (value != 0) out.text(key).put('=').number(value).put('\t');
}

void write_entry(Writer& out, const Entry& entry, const ledger::StackRecord& stack,
                 ModuleSet& modules) {
  out.signed_number(entry.bytes()).put('\t');
  out.text(format::kFieldBlocks).put('=').signed_number(entry.blocks()).put('\t');
  out.text(format::kFieldLive).put('=').number(live_bytes(entry.now)).put('\t');
  optional_field(out, format::kFieldAllocations, entry.change.allocated_blocks);
  optional_field(out, format::kFieldAllocated, entry.change.allocated_bytes);
  optional_field(out, format::kFieldFrees, entry.change.freed_blocks);
  optional_field(out, format::kFieldFreed, entry.change.freed_bytes);
  out.text(format::kFieldStack).put('=').hex(entry.id, 16).put('\n');
  const uint32_t retired = load(stack.retired);
  for (unsigned i = 0; i < stack.depth; ++i) write_frame(out, stack.frames[i], retired, modules);
  if (stack.cut) out.put('\t').text(format::kCutLine).put('\n');
}

// A file that was unloaded, and came back to its place after another one had been there, has two
// entries that read the same.
bool is_repeated(const unwind::Module& module, uint32_t index, const ModuleSet& modules) {
  for (uint32_t earlier = 0; earlier < index; ++earlier) {
    const unwind::Module& other = *unwind::module_at(earlier);
    if (modules.has(earlier) && other.base == module.base &&
        other.generation == module.generation && strcmp(other.path, module.path) == 0) {
      return true;
    }
  }
  return false;
}

void write_modules(Writer& out, const ModuleSet& modules) {
  for (uint32_t index = 0;; ++index) {
    const unwind::Module* module = unwind::module_at(index);
    if (module == nullptr) break;
    if (!modules.has(index) || is_repeated(*module, index, modules)) continue;
    meta(out, format::kKeyModule);
    module_name(out, *module);
    if (module->build_id_size != 0) {
      out.text(" build-id=");
      for (uint32_t i = 0; i < module->build_id_size; ++i) out.hex(module->build_id[i], 2);
    }
    out.text(" base=0x").hex(module->base).put('\n');
  }
}

uint64_t resident_bytes() {
  char text[128];
  sys::read_file("/proc/self/statm", text, sizeof text);
  const char* p = text;
  while (*p != '\0' && *p != ' ') ++p;
  uint64_t pages = 0;
  for (p += *p != '\0'; *p >= '0' && *p <= '9'; ++p) pages = pages * 10 + (*p - '0');
  return pages * 4096;
}

void write_head(Writer& out, const Occasion& occasion, const Snapshot& snapshot,
                const ledger::Ledger& ledger) {
  const Host& host = g_host;
  out.text(format::kMagicLine).put('\n');
  text_line(out, format::kKeyProgram, host.program);
  if (host.command != nullptr) {
    meta(out, format::kKeyCommand).text(host.command).put('\n');  // escaped when it was copied
  }
  meta(out, format::kKeyPid).number(host.pid).put('\n');
  if (host.parent != 0) meta(out, format::kKeyParent).number(host.parent).put('\n');
  meta(out, format::kKeySeq).number(occasion.seq).put('\n');
  meta(out, format::kKeyTrigger).text(occasion.trigger).put('\n');
  if (occasion.label != nullptr) text_line(out, format::kKeyLabel, occasion.label);
  meta(out, format::kKeyStarted).time(host.started).put('\n');
  meta(out, format::kKeyTaken).time(occasion.taken).put('\n');
  if (host.parent != 0) {
    amount_line(out, format::kKeyInherited, ledger.inherited.bytes, ledger.inherited.blocks);
  }
  meta(out, format::kKeyDelta)
      .signed_number(static_cast<int64_t>(live_bytes(snapshot.change())))
      .text(" bytes ");
  out.signed_number(static_cast<int64_t>(live_blocks(snapshot.change()))).text(" blocks\n");
  const ledger::Counters& total = snapshot.total();
  amount_line(out, format::kKeyLive, live_bytes(total), live_blocks(total));
  amount_line(out, format::kKeyAllocated, total.allocated_bytes, total.allocated_blocks);
  amount_line(out, format::kKeyFreed, total.freed_bytes, total.freed_blocks);
  meta(out, format::kKeyLost).text("frames=").number(ledger.stacks.lost_frames());
  out.text(" stacks=").number(ledger.stacks.lost_stacks());
  out.text(" blocks=").number(ledger.blocks.lost_blocks());
  out.text(" inflight=").number(ledger.lost_inflight);
  // Modules without a place in the list; their frames have no name.
  if (unwind::lost_modules() != 0) out.text(" modules=").number(unwind::lost_modules());
  out.put('\n');
  if (occasion.note != nullptr) text_line(out, format::kKeyNote, occasion.note);
}

void write_tail(Writer& out, const Occasion& occasion, const ModuleSet& modules, bool has_names) {
  const Host& host = g_host;
  write_modules(out, modules);
  meta(out, format::kKeyHost).escaped(host.node, strlen(host.node), " ");
  if (host.boot_id[0] != '\0') out.text(" boot-id=").text(host.boot_id);
  out.text(" arch=x86_64\n");
  meta(out, format::kKeyRss).number(resident_bytes()).text(" bytes\n");
  const uint64_t uptime = (occasion.taken_monotonic - host.started_monotonic) / 1'000'000u;
  meta(out, format::kKeyUptime).number(uptime / 1000).put('.').padded(uptime % 1000, 3);
  out.text(" seconds\n");
  meta(out, format::kKeyResolved).text(has_names ? "no\n" : "yes\n");
  meta(out, format::kKeyLibrary).text("mtrace " MTRACE_VERSION " ").text(occasion.library);
  out.put('\n').text(format::kEndLine).put('\n');
}

}  // namespace

void write_memlog(Writer& out, const Occasion& occasion, const Snapshot& snapshot,
                  const ledger::Ledger& ledger) {
  ModuleSet modules;
  write_head(out, occasion, snapshot, ledger);
  for (const Entry& entry : snapshot) {
    write_entry(out, entry, ledger.stacks.record(entry.stack), modules);
  }
  write_tail(out, occasion, modules, snapshot.begin() != snapshot.end());
}

}  // namespace mtrace::report
