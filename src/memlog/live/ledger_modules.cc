#include "live/ledger_modules.h"

#include "format/memlog.h"
#include "format/python.h"
#include "live/ledger_python.h"

namespace mtrace::live {

using format::kLedgerAlive;
using format::LedgerModule;

LedgerModules::LedgerModules(const LedgerState& state) : state_(state), modules_(state.modules) {
  for (const LedgerModuleState& module : modules_) {
    const LedgerModule& entry = module.entry;
    identities_.push_back(entry.build_id_size != 0
                              ? format::module_identity(entry.build_id, entry.build_id_size)
                              : format::module_identity(module.path.data(), module.path.size()));
  }
}

// Chooses as the library does (unwind/modules.cc). Of two modules there in turn: the later one. Of
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

uint64_t LedgerModules::stack_id(const LedgerStackState& stack) {
  format::StackId id;
  for (const uint64_t frame : stack.frames) {
    if (format::PythonFrame::is_one(frame)) {
      const PythonFrameText python = python_frame(state_, frame);
      id.add(python.identity, python.module.empty() ? frame : python.offset);
      continue;
    }
    const size_t module = find(frame, stack.retired);
    if (module == kNone) {
      id.add(0, frame);
    } else {
      id.add(identities_[module], frame - modules_[module].entry.base);
    }
  }
  return id.value();
}

}  // namespace mtrace::live
