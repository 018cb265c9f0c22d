// Which stacks of a ledger memlog top shows.
#pragma once

#include <re2/re2.h>

#include <memory>
#include <string>
#include <vector>

#include "model/ledger/watch.h"
#include "view/text/stack_names.h"

namespace mtrace::text {

class StackFilter {
 public:
  // Keeps the stacks with a frame (function, file:line or module) that the expression (RE2)
  // matches, whatever the case; empty: keeps all. Returns why it cannot be used, and then keeps the
  // old one; empty: good.
  std::string set(const std::string& expression);
  bool active() const { return pattern_ != nullptr; }
  const std::string& expression() const { return expression_; }
  // Removes the other rows. `names` must know all of them.
  void apply(std::vector<ledger::WatchRow>& rows, const StackNames& names) const;

 private:
  std::string expression_;
  std::unique_ptr<re2::RE2> pattern_;
};

}  // namespace mtrace::text
