// For i386, with glibc's loader and without libc: its loader complains about libraries of another
// word size.
static int call(int number, int a, const void* b, int c) {
  int result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
  return result;
}

void _start(void) {
  static const char text[] = "32 bits\n";
  call(4, 1, text, sizeof(text) - 1);  // write
  call(1, 3, 0, 0);                    // exit
}
