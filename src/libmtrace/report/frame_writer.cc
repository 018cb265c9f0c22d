#include "report/frame_writer.h"

#include <cstring>

#include "format/escape.h"
#include "format/memlog.h"
#include "ledger/ledger.h"
#include "modules/modules.h"
#include "python/code.h"

namespace mtrace::report {
namespace {

Writer& put_path(Writer& out, const char* path, size_t size, uint64_t generation) {
  out.escaped(path, size, format::kReservedModule);
  return generation > 1 ? out.put('#').number(generation) : out;
}

Writer& module_name(Writer& out, const modules::Module& module) {
  return put_path(out, module.path, strlen(module.path), module.generation);
}

Writer& put_name(Writer& out, const char* text, size_t size) {
  return out.escaped(text, size, format::kReservedNone);
}

void put_frame(Writer& out, uintptr_t address, const modules::Module* module, bool guessed) {
  out.text("\t(");
  if (module != nullptr) {
    module_name(out, *module).text("+0x").hex(address - module->base);
  } else {
    out.text("0x").hex(address);
  }
  out.put(')');
  if (guessed) out.put(format::kGuessedMark);
  out.put('\n');
}

Writer& file_name(Writer& out, const unwind::PythonFile& file) {
  return put_path(out, file.text(), file.bytes, file.generation);
}

// "\tfunction\tapp.py:12\t(/home/ann/app.py+0x1234)"; without the line if it is unknown.
void put_python_frame(Writer& out, const unwind::PythonCode& code, uintptr_t frame) {
  const unwind::PythonFile& file = *code.file;
  out.put('\t');
  if (code.name_bytes == 0) {
    out.text(format::kUnknownFunction);
  } else {
    put_name(out, code.name(), code.name_bytes);
  }
  format::PythonLines lines(code.table(), code.table_kept(), code.first_line);
  if (const uint32_t line = lines.line_of(format::PythonFrame::instruction(frame)); line != 0) {
    size_t size;
    const char* const name = format::python_file_name(file.text(), file.bytes, &size);
    put_name(out.put('\t'), name, size).put(':').number(line);
  }
  file_name(out.text("\t("), file)
      .text("+0x")
      .hex(format::python_offset(code.identity, frame))
      .text(")\n");
}

// Writes the line of any frame of Python, also of one without a code object.
void put_python_frame(Writer& out, uintptr_t frame, ModuleSet& modules) {
  const unwind::PythonCode* code = unwind::python_code(format::PythonFrame::code(frame));
  if (code == nullptr) {
    out.put('\t').text(format::kPythonWithoutRoom).text("\t(0x0)\n");
    return;
  }
  modules.add_python(code->file->number);
  put_python_frame(out, *code, frame);
}

// Whether an earlier entry reads the same: a file that was unloaded, and loaded again at its
// address after another one had been there, has two.
bool is_repeated(const modules::Module& module, uint32_t index, const ModuleSet& modules) {
  for (uint32_t earlier = 0; earlier < index; ++earlier) {
    const modules::Module& other = *modules::module_at(earlier);
    if (modules.has(earlier) && other.base == module.base &&
        other.generation == module.generation && strcmp(other.path, module.path) == 0) {
      return true;
    }
  }
  return false;
}

// Whether a loaded object has the path of a source file of Python that was seen before. The
// object's line serves both.
bool is_object(const unwind::PythonFile& file, const ModuleSet& modules) {
  if (file.generation > 1) return false;
  for (uint32_t index = 0; modules::module_at(index) != nullptr; ++index) {
    const char* const path = modules::module_at(index)->path;
    if (modules.has(index) && strncmp(path, file.text(), file.bytes) == 0 &&
        path[file.bytes] == '\0') {
      return true;
    }
  }
  return false;
}

}  // namespace

void FrameLines::write(Writer& out, uintptr_t address, modules::StackEpoch& epoch,
                       ModuleSet& modules) {
  if (!memory_) return static_cast<void>(write_frame(out, address, epoch, modules));
  const uint64_t hash = address * 0x9e3779b97f4a7c15u;
  Place* const group = memory_->places + (hash >> (64 - kBits) & ~uint64_t{kGroup - 1});
  Place* place = group;
  for (; place != group + kGroup && !place->is_free(); ++place) {
    if (!place->may_be(hash)) continue;
    const auto& line = *reinterpret_cast<const Line*>(memory_->room + place->where());
    if (!holds(line, address, epoch.seen())) continue;
    if (epoch.moved()) break;
    return static_cast<void>(out.bytes(line.text, line.size));
  }
  // A full group gives up one of its lines.
  if (place == group + kGroup) place = group + hash % kGroup;
  make(out, address, epoch, modules, hash, place);
}

// A frame of Python always means the same, and finding its source line takes long in a large
// function. Any other address means the same to all stacks in use while its module is loaded, and
// always to stacks retired in the same epoch.
bool FrameLines::holds(const Line& line, uintptr_t address, uint32_t retired) {
  if (line.address != address) return false;
  if (line.module == nullptr) return true;
  return line.retired == retired &&
         (retired != modules::kAlive || load_acquire(line.module->died) == modules::kAlive);
}

// Writes the frame, and keeps its line unless that is too long or of no module.
void FrameLines::make(Writer& out, uintptr_t address, modules::StackEpoch& epoch,
                      ModuleSet& modules, uint64_t hash, Place* place) {
  Memory& memory = memory_[0];
  if (kRoom - memory.used < sizeof(Line) + kMostText) {  // full: the cache starts again
    memset(memory.places, 0, sizeof memory.places);
    memory.used = 0;
  }
  auto& line = *reinterpret_cast<Line*>(memory.room + memory.used);
  Writer text(line.text, kMostText);
  const modules::Module* const module = write_frame(text, address, epoch, modules);
  const bool is_kept = module != nullptr || format::PythonFrame::is_one(address);
  if (text.finish() != 0 || !is_kept) {
    write_frame(out, address, epoch, modules);
    return;
  }
  line.address = address;
  line.module = module;
  line.retired = epoch.seen();
  line.size = static_cast<uint32_t>(text.size());
  out.bytes(line.text, line.size);
  *place = Place(hash, memory.used);
  memory.used += (sizeof(Line) + line.size + alignof(Line) - 1) & ~(alignof(Line) - 1);
}

const modules::Module* write_frame(Writer& out, uintptr_t address, modules::StackEpoch& epoch,
                                   ModuleSet& modules, bool guessed) {
  if (format::PythonFrame::is_one(address)) {
    put_python_frame(out, address, modules);
    return nullptr;
  }
  uint32_t index = 0;
  const modules::Module* module = modules::find_module(address, epoch, &index);
  if (module != nullptr) modules.add(index);
  put_frame(out, address, module, guessed);
  return module;
}

void write_frames(Writer& out, const ledger::StackRecord& stack, ModuleSet& modules) {
  modules::StackEpoch epoch(stack.retired);
  ledger::g_ledger.stacks.each_frame(stack, [&](unsigned i, uintptr_t frame) {
    write_frame(out, frame, epoch, modules, stack.is_guessed(i));
  });
  if (stack.cut) out.put('\t').text(format::kCutLine).put('\n');
}

namespace {

// Writes `count` frames, of which the first is number `number` of the stack.
void write_piece(Writer& out, const char* frames, unsigned count, unsigned number,
                 modules::StackEpoch& epoch, unsigned guessed, ModuleSet& modules,
                 FrameLines& lines) {
  for (unsigned i = 0; i < count; ++i) {
    const uintptr_t frame = ledger::frame_in(frames, i);
    if (guessed != 0 && number + i == guessed) {
      write_frame(out, frame, epoch, modules, true);
    } else {
      lines.write(out, frame, epoch, modules);
    }
  }
}

void end_with(Writer& out, uint32_t tail, uint32_t stack, Tails& tails) {
  tails.end_with(tail, stack);
  out.put('\t').text(format::kTailMark).hex(tails.id(tail), 16).put('\n');
}

}  // namespace

void write_frames(Writer& out, uint32_t index, ModuleSet& modules, FrameLines& lines,
                  Tails& tails) {
  const ledger::StackTable& stacks = tails.stacks();
  const ledger::StackRecord& stack = stacks.record(index);
  modules::StackEpoch epoch(stack.retired);
  const unsigned guessed = stack.guessed;
  unsigned number = stack.own_frames;
  write_piece(out, stack.frames, number, 0, epoch, guessed, modules, lines);
  // What the addresses of a retired stack meant is its own matter, and so is where a stack was cut.
  const bool shares = !stack.cut && epoch.seen() == modules::kAlive;
  bool is_shared = false;  // others come this way
  for (uint32_t tail = stack.tail; tail != 0; number += ledger::kTailFrames) {
    is_shared = is_shared || (shares && tails.is_shared(tail));
    if (is_shared && number >= format::kUntailedFrames && number > guessed && tails.id(tail) != 0) {
      return end_with(out, tail, index, tails);
    }
    const ledger::StackTail& piece = stacks.tail_at(tail);
    write_piece(out, piece.frames, ledger::kTailFrames, number, epoch, guessed, modules, lines);
    tail = piece.parent;
  }
  if (stack.cut) out.put('\t').text(format::kCutLine).put('\n');
}

void write_tails(Writer& out, ModuleSet& modules, FrameLines& lines, Tails& tails) {
  const ledger::StackTable& stacks = tails.stacks();
  tails.each([&](uint32_t tail, uint32_t index) {
    modules::StackEpoch epoch(stacks.record(index).retired);
    out.meta(format::kKeyTail).hex(tails.id(tail), 16).put('\n');
    do {
      const ledger::StackTail& piece = stacks.tail_at(tail);
      write_piece(out, piece.frames, ledger::kTailFrames, 1, epoch, 0, modules, lines);
      tail = piece.parent;
    } while (tail != 0 && !tails.is_shared(tail) && !tails.is_listed(tail));
    if (tail != 0) end_with(out, tail, index, tails);
  });
}

void write_modules(Writer& out, const ModuleSet& modules) {
  for (uint32_t index = 0;; ++index) {
    const modules::Module* module = modules::module_at(index);
    if (module == nullptr) break;
    if (!modules.has(index) || is_repeated(*module, index, modules)) continue;
    module_name(out.meta(format::kKeyModule), *module);
    if (module->build_id_size != 0) {
      out.text(" build-id=");
      for (uint32_t i = 0; i < module->build_id_size; ++i) out.hex(module->build_id[i], 2);
    }
    out.text(" base=0x").hex(module->base).put('\n');
  }
  for (uint32_t number = 1; number <= unwind::kMostPythonFiles; ++number) {
    if (!modules.has_python(number)) continue;
    const unwind::PythonFile& file = *unwind::python_file(number);
    if (is_object(file, modules)) continue;
    file_name(out.meta(format::kKeyModule), file)
        .text(" base=0x0 ")
        .text(format::kModulePython)
        .put('\n');
  }
}

int write_backtrace(const unwind::Registers& caller, int fd) {
  if (fd < 0) return -1;
  uintptr_t frames[format::kMaxDepth];
  const unwind::Walk walk = unwind::walk(caller, frames, format::kMaxDepth);
  char buffer[1024];  // in a signal handler there may be no room for more
  Writer out(buffer, sizeof buffer, fd);
  ModuleSet modules;
  modules::StackEpoch now;
  for (unsigned i = 0; i < walk.count; ++i) {
    const bool guessed = walk.guessed != 0 && walk.guessed == i;
    write_frame(out, frames[i], now, modules, guessed);
  }
  if (walk.end == unwind::End::kDepth) out.put('\t').text(format::kCutLine).put('\n');
  write_modules(out, modules);
  return out.finish() == 0 ? static_cast<int>(walk.count) : -1;
}

}  // namespace mtrace::report
