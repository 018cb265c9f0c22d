// The same under a loader that nobody knows.
#include "musl.c"
