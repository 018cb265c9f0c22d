// Text with addresses in it, as memlog decode reads it from logs and terminals. Modules are looked
// for below FUZZ_SYSROOT, where the seeds of the ELF target lie, and in this process: worker.cc is
// left out of the fuzzer.
#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "model/symbols/perf_map.h"
#include "model/symbols/text_decoder.h"
#include "model/symbols/worker.h"

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION  // by tests/long.mk
namespace mtrace::symbols {

std::optional<std::string> run_isolated(const std::function<std::string()>& work, unsigned, int) {
  return work();
}

}  // namespace mtrace::symbols
#endif

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mtrace::symbols;
  const std::string text(reinterpret_cast<const char*>(data), size);
  static const char* const sysroot = std::getenv("FUZZ_SYSROOT");
  static const SearchPath where = {sysroot == nullptr ? "/nonexistent" : sysroot, {}};
  TextDecoder decoder(where);
  const std::string named = decoder.decode(text);
  // Names are added, lines are never taken away; without a place in it a text stays as it is.
  if (std::count(named.begin(), named.end(), '\n') < std::count(text.begin(), text.end(), '\n') ||
      named.size() < text.size()) {
    __builtin_trap();
  }
  if (text.find("+0x") == std::string::npos && text.find("[0x") == std::string::npos &&
      named != text) {
    __builtin_trap();
  }
  const PerfMap map(text);
  map.find(0x1000);
  map.find(~uint64_t{0});
  return 0;
}
