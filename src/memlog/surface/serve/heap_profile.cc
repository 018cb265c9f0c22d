#include "surface/serve/heap_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "process/inspect/clock.h"
#include "util/text.h"
#include "view/analyze/row.h"
#include "view/analyze/table.h"
#include "view/export/gperftools.h"
#include "view/export/pprof.h"
#include "view/export/stacks.h"

namespace mtrace::serve {
namespace {

exporting::Stacks stacks_of(const analyze::Table& table) {
  return exporting::stacks_of(table, analyze::Order::kBytes, exporting::Side::kAllocated);
}

}  // namespace

std::string heap_profile(profile::Memlog& memlog, const char* shown,
                         const analyze::Responsible& responsible) {
  const std::string program = util::escaped(memlog.header.program, "");
  const analyze::Table table = analyze::Table::of(memlog);
  exporting::Stacks stacks = stacks_of(table);
  stacks.program = program;
  return exporting::pprof(stacks, table, static_cast<int64_t>(process::real_time_now()),
                          &responsible, shown);
}

std::string gperftools_profile(profile::Memlog& memlog) {
  const analyze::Table table = analyze::Table::of(memlog);
  return exporting::gperftools_profile(stacks_of(table), table);
}

std::string gperftools_symbols(profile::Memlog& memlog, const std::string& asked) {
  const analyze::Table table = analyze::Table::of(memlog);
  const auto symbols = exporting::gperftools_symbols(stacks_of(table), table);
  std::string out;
  for (size_t at = 0; at < asked.size();) {
    const size_t end = std::min(asked.find('+', at), asked.size());
    const uint64_t address = std::strtoull(asked.substr(at, end - at).c_str(), nullptr, 16);
    const auto found = symbols.find(address);
    if (found != symbols.end()) out += fmt::format("0x{:x}\t{}\n", address, found->second);
    at = end + 1;
  }
  return out;
}

}  // namespace mtrace::serve
