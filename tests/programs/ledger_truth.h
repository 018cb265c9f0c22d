// What ledger_truth keeps in its file, for the test that reads it after its death.
#pragma once

struct LedgerTruth {
  struct Held {
    long bytes;
    long blocks;
  };
  struct Thread {
    Held before;  // the operation under way
    Held after;
    long busy;  // 0: `before` holds; 1: either does, or what is between; 2: `after` holds
    volatile unsigned long operations;  // ended
    char apart[80];
  };
  Thread threads[4];
};
static_assert(sizeof(LedgerTruth) == 4 * 128);
