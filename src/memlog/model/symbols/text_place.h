// Finds addresses in text that is no memlog: logs, stacks that programs print.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mtrace::symbols {

struct TextPlace {
  enum class Form : uint8_t {
    kFrame,      // "\t(MODULE+0xHEX)" alone: a frame of a memlog or of mtrace_backtrace()
    kText,       // the same inside other text
    kBacktrace,  // "MODULE(SYMBOL+0xHEX) [0xADDRESS]", as printed by glibc's backtrace_symbols()
    kAddress,    // "[0xADDRESS]" alone: a return address
  };
  Form form = Form::kFrame;
  std::string module;  // path, maybe relative; empty: kAddress
  uint32_t generation = 1;
  // kFrame, kText: ELF address inside the call instruction. kBacktrace: offset of the return
  // address from `symbol` or, without a symbol, its ELF address.
  uint64_t offset = 0;
  std::string symbol;    // mangled
  uint64_t address = 0;  // kBacktrace, kAddress: address in the process
};

// Returns the place in a line (without its newline). Returns nothing when there is none, or when
// the line is a frame of a memlog that has its name already.
std::optional<TextPlace> find_place(std::string_view line);

}  // namespace mtrace::symbols
