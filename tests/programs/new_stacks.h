// Blocks under new stacks.
#pragma once

#include "truth.h"

static void* allocate(unsigned path, unsigned left);
SITE void* go_left(unsigned path, unsigned left) {
  void* const block = allocate(path >> 1, left - 1);
  NO_TAIL;
  return block;
}
SITE void* go_right(unsigned path, unsigned left) {
  void* const block = allocate(path >> 1, left - 1);
  NO_TAIL;
  return block;
}
// Under one of 2^left stacks.
static void* allocate(unsigned path, unsigned left) {
  if (left == 0) return malloc(sized(64));
  return path % 2 != 0 ? go_left(path, left) : go_right(path, left);
}
