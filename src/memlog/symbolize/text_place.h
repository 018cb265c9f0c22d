// Addresses as they stand in text that is no memlog: in logs, in what programs print of their
// stack.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mtrace::symbolize {

struct TextPlace {
  enum class Form : uint8_t {
    kFrame,      // "\t(MODULE+0xHEX)" alone: a frame of a memlog, or of mtrace_backtrace()
    kText,       // the same with other text around it
    kBacktrace,  // "MODULE(SYMBOL+0xHEX) [0xADDRESS]", as glibc's backtrace_symbols() has it
  };
  Form form = Form::kFrame;
  std::string module;  // path
  uint32_t generation = 1;
  // kFrame, kText: ELF address, within the call. kBacktrace: of the return address, from `symbol`
  // or, without one, an ELF address.
  uint64_t offset = 0;
  std::string symbol;    // mangled
  uint64_t address = 0;  // kBacktrace: in the process
};

// The place that a line without its newline tells. None: there is none, or the line is a frame of a
// memlog that has its name already.
std::optional<TextPlace> find_place(std::string_view line);

// `line` without what a place may stand before and behind: blanks, a carriage return.
std::string_view trimmed(std::string_view line);

}  // namespace mtrace::symbolize
