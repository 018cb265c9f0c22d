#include "serve/heap_profile.h"

#include "analyze/row.h"
#include "analyze/table.h"
#include "export/pprof.h"
#include "export/stacks.h"
#include "profile/text.h"
#include "target/ledgers.h"

namespace mtrace::serve {

std::string heap_profile(profile::Memlog& memlog, const char* shown,
                         const analyze::Responsible& responsible) {
  const std::string program = profile::escaped(memlog.header.program, "");
  const analyze::Table table = analyze::Table::of(memlog);
  exporting::Stacks stacks =
      exporting::stacks_of(table, analyze::Order::kBytes, exporting::Side::kAllocated);
  stacks.program = program;
  return exporting::pprof(stacks, table, static_cast<int64_t>(target::real_time_now()),
                          &responsible, shown);
}

}  // namespace mtrace::serve
