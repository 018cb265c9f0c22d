// A library whose constructor does not come to its end before it has read a byte.
#include <unistd.h>

__attribute__((constructor)) static void slow() {
  static const char kReady[] = "ready\n";
  char byte;
  if (write(1, kReady, sizeof kReady - 1) < 0 || read(0, &byte, 1) < 0) _exit(98);
}
