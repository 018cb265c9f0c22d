#include "live/ledger_python.h"

#include <fmt/format.h>

#include "format/python.h"

namespace mtrace::live {

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
  if (const uint32_t line = lines.line_of(PythonFrame::instruction(frame)); line != 0) {
    size_t length = 0;
    const char* const name = format::python_file_name(code.file.data(), code.file.size(), &length);
    text.source = fmt::format("{}:{}", std::string_view(name, length), line);
  }
  return text;
}

}  // namespace mtrace::live
