#include "json/verdict.h"

#include "json/stack.h"

namespace mtrace::json {

Value verdicts(const std::vector<analyze::Verdict>& verdicts, size_t count) {
  Value out = Value::array();
  for (const analyze::Verdict& verdict : verdicts) {
    Value one = {{"what", verdict.what},
                 {"within_limit", verdict.good()},
                 {"bytes", verdict.bytes},
                 {"limit_bytes", verdict.limit},
                 {"stack_count", verdict.table.rows().size()}};
    put_left_out(one, verdict.left_out);
    one["stacks"] = stacks(verdict.table, count);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace mtrace::json
