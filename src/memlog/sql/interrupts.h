// Ctrl-C while a query runs.
#pragma once

#include <csignal>

#include "sql/database.h"

namespace mtrace::sql {

// As long as this exists, SIGINT ends the running query instead of the program. One at a time.
class Interrupts {
 public:
  explicit Interrupts(Database& database);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  struct sigaction before_ = {};
};

}  // namespace mtrace::sql
