// Finds addresses in text that is no memlog: logs, stacks that programs print.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtrace::symbols {

struct TextPlace {
  enum class Form : uint8_t {
    kFrame,      // "\t(MODULE+0xHEX)" alone: a frame of a memlog or of mtrace_backtrace()
    kText,       // the same inside other text
    kBacktrace,  // "MODULE(SYMBOL+0xHEX) [0xADDRESS]", as printed by glibc's backtrace_symbols()
    kAddress,    // "[0xADDRESS]", or 0xADDRESS as a word: a return address
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

// Returns the places in a line (without its newline), in their order: several of kText or of
// kAddress, or one of another form. Returns none for a frame of a memlog that has its name already.
std::vector<TextPlace> find_places(std::string_view line);

}  // namespace mtrace::symbols
