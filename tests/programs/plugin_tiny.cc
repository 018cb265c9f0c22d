// As small as a library gets that allocates.
#include <cstdlib>

extern "C" void* allocate() { return std::malloc(16); }
