/* Opens and closes descriptors, names of a GL and memory of a device with mtrace_resources.h, whose
 * GL and CUDA are stand-ins. Prints "ready", and ends at the end of its input. Open are then, by
 * function: opens 4 descriptors, connects 4, two of them of a pipe, draws 3 textures and 1 buffer,
 * computes 1 block of 5,000 bytes. */
#include <sys/socket.h>

#include "mtrace_resources.h"
#include "truth.h"

/* As the headers of GL and CUDA have them. */
static unsigned next_name = 1;
static void glGenTextures(int count, unsigned* names) {
  for (int i = 0; i < count; ++i) names[i] = next_name++;
}
static void glDeleteTextures(int count, const unsigned* names) { (void)count, (void)names; }
static void glGenBuffers(int count, unsigned* names) { glGenTextures(count, names); }
typedef enum { cudaSuccess, cudaErrorMemoryAllocation = 2 } cudaError_t;
static cudaError_t cudaMalloc(void** to, size_t size) {
  if (size > 100000) return cudaErrorMemoryAllocation;
  *to = (void*)(uintptr_t)(0x700000000 + size);
  return cudaSuccess;
}
static cudaError_t cudaFree(void* memory) {
  (void)memory;
  return cudaSuccess;
}

#define EXPECT(condition) \
  if (!(condition)) exit(99)

SITE void opens(void) {
  int fds[5];
  for (int i = 0; i < 4; ++i) EXPECT((fds[i] = mtrace_fd(open("/dev/null", O_RDONLY))) >= 0);
  EXPECT((fds[4] = mtrace_fd(openat(AT_FDCWD, "/dev/null", O_RDONLY))) >= 0);
  EXPECT(mtrace_fd(open("/there/is/none", O_RDONLY)) == -1 && errno == ENOENT);
  EXPECT(mtrace_close(fds[1]) == 0 && mtrace_close(-1) == -1 && errno == EBADF);
  NO_TAIL;
}
SITE void connects(void) {
  int ends[2];
  EXPECT(mtrace_fd(socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
  EXPECT(mtrace_fd(dup(0)) >= 0);
  EXPECT(mtrace_fds(pipe(ends), ends) == 0);
  EXPECT(mtrace_fds(socketpair(AF_UNIX, SOCK_STREAM, -1, ends), ends) == -1);
  NO_TAIL;
}
SITE void draws(void) {
  unsigned names[5];
  unsigned buffer;
  MTRACE_GL_GEN(Textures, 5, names);
  MTRACE_GL_DELETE(Textures, 2, names + 1);
  MTRACE_GL_GEN(Buffers, 1, &buffer);
  NO_TAIL;
}
SITE void computes(void) {
  void* kept = NULL;
  void* freed = NULL;
  EXPECT(MTRACE_CUDA_MALLOC(&kept, 5000) == cudaSuccess);
  EXPECT(MTRACE_CUDA_MALLOC(&freed, 70000) == cudaSuccess);
  EXPECT(MTRACE_CUDA_FREE(freed) == cudaSuccess && MTRACE_CUDA_FREE((void*)NULL) == cudaSuccess);
  EXPECT(MTRACE_CUDA_MALLOC(&freed, 200000) == cudaErrorMemoryAllocation);
  NO_TAIL;
}

int main(void) {
  opens();
  connects();
  draws();
  computes();
  EXPECT(write(1, "ready\n", 6) == 6);
  await_end();
  return 0;
}
