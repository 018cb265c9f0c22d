// Runs a few threads of real code in every order that a bound allows. Threads are contexts in one
// process; each access of an atomic word that several use is a step before which another thread may
// go on, a store that another thread does not see yet may reach memory, or a signal handler may
// run.
//
// The orders are searched depth first, each from the beginning (stateless). What an order costs is
// bounded (Musuvathi and Qadeer, Iterative Context Bounding for Systematic Testing of Multithreaded
// Programs, PLDI 2007): a thread that is made to wait though it could go on costs one, a store that
// is kept from memory costs one, a load that finds an older value costs one (memory.h), a signal
// costs one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mtrace::schedule {

// One program to run in all orders: made anew for each.
class Scenario {
 public:
  virtual ~Scenario() = default;
  virtual unsigned threads() const = 0;
  virtual void run(unsigned thread) = 0;
  // A signal handler that may interrupt thread 0 once, wherever it is.
  virtual bool has_handler() const { return false; }
  virtual void handle() {}
  // After all threads, alone.
  virtual void check() = 0;
};

// In a scenario: the order under way is a counterexample.
void expect(bool good, const std::string& what);

struct Outcome {
  uint64_t orders = 0;
  uint64_t steps = 0;
  bool complete = false;  // all orders within the bound
  std::string failure;    // empty: none
};

using Make = std::function<Scenario*()>;

// All orders that cost at most `bound`, `most_orders` at most.
Outcome explore(const Make& make, unsigned bound, uint64_t most_orders);
// Orders by chance, which cost what they may.
Outcome sample(const Make& make, uint64_t orders, uint64_t seed);

// Zeroed memory for the tables; all of it is given back after each order.
void* map(size_t bytes);

}  // namespace mtrace::schedule
