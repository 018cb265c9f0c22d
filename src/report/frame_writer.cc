#include "report/frame_writer.h"

#include <cstring>

#include "base/syscall.h"
#include "format/escape.h"
#include "format/memlog.h"
#include "unwind/modules.h"

namespace mtrace::report {
namespace {

void module_name(Writer& out, const unwind::Module& module) {
  out.escaped(module.path, strlen(module.path), format::kReservedModule);
  if (module.generation > 1) out.put('#').number(module.generation);
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

}  // namespace

ModuleSet::ModuleSet() : bits_(static_cast<uint64_t*>(sys::map_memory(kMost / 8))) {}
ModuleSet::~ModuleSet() {
  if (bits_ != nullptr) sys::unmap_memory(bits_, kMost / 8);
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

void write_frames(Writer& out, const ledger::StackRecord& stack, ModuleSet& modules) {
  const uint32_t retired = load(stack.retired);
  for (unsigned i = 0; i < stack.depth; ++i) write_frame(out, stack.frames[i], retired, modules);
  if (stack.cut) out.put('\t').text(format::kCutLine).put('\n');
}

void write_modules(Writer& out, const ModuleSet& modules) {
  for (uint32_t index = 0;; ++index) {
    const unwind::Module* module = unwind::module_at(index);
    if (module == nullptr) break;
    if (!modules.has(index) || is_repeated(*module, index, modules)) continue;
    out.text("# ").text(format::kKeyModule).text(": ");
    module_name(out, *module);
    if (module->build_id_size != 0) {
      out.text(" build-id=");
      for (uint32_t i = 0; i < module->build_id_size; ++i) out.hex(module->build_id[i], 2);
    }
    out.text(" base=0x").hex(module->base).put('\n');
  }
}

}  // namespace mtrace::report
