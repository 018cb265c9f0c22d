#include "sql/interrupts.h"

namespace mtrace::sql {
namespace {

Database* interrupted = nullptr;

extern "C" void on_interrupt(int) { interrupted->interrupt(); }

}  // namespace

Interrupts::Interrupts(Database& database) {
  interrupted = &database;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, &before_);
}

Interrupts::~Interrupts() { ::sigaction(SIGINT, &before_, nullptr); }

}  // namespace mtrace::sql
