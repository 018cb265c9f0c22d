#include "report/frame_writer.h"

#include <cstring>

#include "base/syscall.h"
#include "format/escape.h"
#include "format/memlog.h"
#include "unwind/modules.h"
#include "unwind/python_code.h"

namespace mtrace::report {
namespace {

void module_name(Writer& out, const unwind::Module& module) {
  out.escaped(module.path, strlen(module.path), format::kReservedModule);
  if (module.generation > 1) out.put('#').number(module.generation);
}

void put_frame(Writer& out, uintptr_t address, const unwind::Module* module, bool guessed) {
  out.text("\t(");
  if (module != nullptr) {
    module_name(out, *module);
    out.text("+0x").hex(address - module->base);
  } else {
    out.text("0x").hex(address);
  }
  out.put(')');
  if (guessed) out.put(format::kGuessedMark);
  out.put('\n');
}

Writer& put_name(Writer& out, const char* text, size_t size) {
  return out.escaped(text, size, format::kReservedNone);
}

void file_name(Writer& out, const unwind::PythonFile& file) {
  out.escaped(file.text(), file.bytes, format::kReservedModule);
  if (file.generation > 1) out.put('#').number(file.generation);
}

// "\tfunction\tapp.py:12\t(/home/ann/app.py+0x1234)"; without the line where there is none.
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
  file_name(out.text("\t("), file);
  out.text("+0x").hex(format::python_offset(code.identity, frame)).text(")\n");
}

// The same for any frame of Python.
void put_python_frame(Writer& out, uintptr_t frame, ModuleSet& modules) {
  const unwind::PythonCode* code = unwind::python_code(format::PythonFrame::code(frame));
  if (code == nullptr) {
    out.put('\t').text(format::kPythonWithoutRoom).text("\t(0x0)\n");
    return;
  }
  modules.add_python(code->file->number);
  put_python_frame(out, *code, frame);
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

// Whether an object that was loaded after a source file of Python was seen is called the same. Its
// line serves both.
bool is_object(const unwind::PythonFile& file, const ModuleSet& modules) {
  if (file.generation > 1) return false;
  for (uint32_t index = 0; unwind::module_at(index) != nullptr; ++index) {
    const char* const path = unwind::module_at(index)->path;
    if (modules.has(index) && strncmp(path, file.text(), file.bytes) == 0 &&
        path[file.bytes] == '\0') {
      return true;
    }
  }
  return false;
}

}  // namespace

FrameLines::FrameLines() : lines_(static_cast<Line*>(sys::map_memory(sizeof(Line) << kBits))) {}
FrameLines::~FrameLines() {
  if (lines_ != nullptr) sys::unmap_memory(lines_, sizeof(Line) << kBits);
}

void FrameLines::write(Writer& out, uintptr_t address, uint32_t retired, ModuleSet& modules) {
  if (lines_ == nullptr) {
    write_frame(out, address, retired, modules);
    return;
  }
  Line& line = lines_[address * 0x9e3779b97f4a7c15u >> (64 - kBits)];
  if (format::PythonFrame::is_one(address)) return write_python(out, address, modules, line);
  // While its module is loaded an address means the same to all stacks in use. To a retired one it
  // does anyway.
  if (line.module != nullptr && line.address == address && line.retired == retired &&
      (retired != unwind::kAlive || load_acquire(line.module->died) == unwind::kAlive)) {
    out.bytes(line.text, line.size);
    return;
  }
  Writer text(line.text, sizeof line.text);
  const unwind::Module* const module = write_frame(text, address, retired, modules);
  line.size = static_cast<uint32_t>(text.size());
  line.address = address;
  line.retired = retired;
  line.module = nullptr;
  if (text.finish() != 0) {
    write_frame(out, address, retired, modules);
    return;
  }
  line.module = module;
  out.bytes(line.text, line.size);
}

// A frame means the same always. To find its line takes long in a large function.
void FrameLines::write_python(Writer& out, uintptr_t frame, ModuleSet& modules, Line& line) {
  if (line.address != frame) {
    Writer text(line.text, sizeof line.text);
    put_python_frame(text, frame, modules);
    line.size = static_cast<uint32_t>(text.size());
    line.module = nullptr;
    line.address = text.finish() == 0 ? frame : 0;
  }
  if (line.address != frame) return put_python_frame(out, frame, modules);
  out.bytes(line.text, line.size);
}

const unwind::Module* write_frame(Writer& out, uintptr_t address, uint32_t retired,
                                  ModuleSet& modules, bool guessed) {
  if (format::PythonFrame::is_one(address)) {
    put_python_frame(out, address, modules);
    return nullptr;
  }
  uint32_t index = 0;
  const unwind::Module* module = unwind::find_module(address, retired, &index);
  if (module != nullptr) modules.add(index);
  put_frame(out, address, module, guessed);
  return module;
}

void write_frames(Writer& out, const ledger::StackRecord& stack, ModuleSet& modules) {
  const uint32_t retired = load(stack.retired);
  for (unsigned i = 0; i < stack.depth; ++i) {
    write_frame(out, stack.frame(i), retired, modules, stack.is_guessed(i));
  }
  if (stack.cut) out.put('\t').text(format::kCutLine).put('\n');
}

void write_frames(Writer& out, const ledger::StackRecord& stack, ModuleSet& modules,
                  FrameLines& lines) {
  const uint32_t retired = load(stack.retired);
  for (unsigned i = 0; i < stack.depth; ++i) {
    if (stack.is_guessed(i)) {
      write_frame(out, stack.frame(i), retired, modules, true);
    } else {
      lines.write(out, stack.frame(i), retired, modules);
    }
  }
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
  for (uint32_t number = 1; number <= unwind::kMostPythonFiles; ++number) {
    if (!modules.has_python(number)) continue;
    const unwind::PythonFile& file = *unwind::python_file(number);
    if (is_object(file, modules)) continue;
    out.text("# ").text(format::kKeyModule).text(": ");
    file_name(out, file);
    out.text(" base=0x0 ").text(format::kModulePython).put('\n');
  }
}

}  // namespace mtrace::report
