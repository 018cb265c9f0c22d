#include "life/reset.h"

#include "modules/modules.h"
#include "python/code.h"
#include "record/call_stack.h"
#include "record/sampler.h"
#include "report/misuse.h"
#include "report/notes.h"
#include "report/output.h"
#include "report/own_cost.h"
#include "report/report.h"
#include "report/resolver_process.h"
#include "report/savepoints.h"
#include "report/status.h"

namespace mtrace::hook {
namespace {

constexpr unsigned kFork = static_cast<unsigned>(Reset::kFork);
constexpr unsigned kSession = static_cast<unsigned>(Reset::kSession);
constexpr unsigned kTables = static_cast<unsigned>(Reset::kTables);

struct Row {
  void (*forget)();
  unsigned when;
};

constexpr Row kRows[] = {
    {report::reset_reports, kFork | kSession},
    {report::reset_notes, kFork | kSession},
    {report::reset_misuse, kFork | kSession},
    {report::reset_output, kFork | kSession},
    {report::reset_status, kFork | kSession},
    {report::reset_cost, kFork | kSession},
    {report::reset_resolver, kFork},
    {report::repair_savepoints, kFork},
    {report::empty_savepoints, kTables},
    {report::forget_savepoints, kSession},
    {forget_samples, kSession},
    // They lead to stacks of tables that are gone.
    {forget_walks, kSession | kTables},
    // What readers of the file behind the tables were told, they are told in the next one.
    {unwind::log_modules_again, kTables},
    {unwind::log_python_again, kTables},
};

}  // namespace

void reset(Reset why) {
  for (const Row& row : kRows) {
    if ((row.when & static_cast<unsigned>(why)) != 0) row.forget();
  }
}

}  // namespace mtrace::hook
