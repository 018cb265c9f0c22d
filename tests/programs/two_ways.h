// Two to the power of `depth` different stacks, by two functions that call each other; at the end
// stands at_the_end(n), which the program defines before. truth.h comes before, too.
SITE void way_left(int n, int depth);
SITE void way_right(int n, int depth);
void choose(int n, int depth) {
  if (depth == 0) {
    at_the_end(n);
  } else if (n & (1 << (depth - 1))) {
    way_left(n, depth - 1);
  } else {
    way_right(n, depth - 1);
  }
}
SITE void way_left(int n, int depth) {
  choose(n, depth);
  NO_TAIL;
}
SITE void way_right(int n, int depth) {
  choose(n, depth);
  NO_TAIL;
}
