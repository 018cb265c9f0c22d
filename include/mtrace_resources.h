/* mtrace_resources.h: wrappers by which reports of mtrace list file descriptors, OpenGL names and
 * CUDA memory beside the heap, with the stacks that opened them. Part of mtrace, a heap profiler.
 *
 *     int fd = mtrace_fd(open(path, O_RDONLY));      kind "fd"; also openat, socket, accept, dup
 *     if (mtrace_fds(pipe(ends), ends) != 0) ...     also pipe2, socketpair
 *     mtrace_close(fd);
 *     MTRACE_GL_GEN(Textures, 2, names);             glGenTextures(2, names): kind "gl-Textures"
 *     MTRACE_GL_DELETE(Textures, 2, names);
 *     error = MTRACE_CUDA_MALLOC(&memory, bytes);    cudaMalloc(&memory, bytes): kind "cuda"
 *     error = MTRACE_CUDA_FREE(memory);
 *
 * A descriptor or name has size 1, CUDA memory its bytes. Without the library each wrapper does
 * what it wraps, and links as mtrace.h does. Include the headers of GL or CUDA yourself.
 *
 * A resource that is released without its wrapper stays recorded until its number comes again.
 * Releasing what was not recorded counts as misuse {release}.
 */
#ifndef MTRACE_RESOURCES_H
#define MTRACE_RESOURCES_H

#include <mtrace.h>
#include <unistd.h>

#ifdef __cplusplus
#define MTRACE_INTERNAL_CAST(type, value) static_cast<type>(value)
#else
#define MTRACE_INTERNAL_CAST(type, value) ((type)(value))
#endif

/* ---- File descriptors */

/* Records what a call has just returned, unless it failed. Returns it. Keeps errno. [signal-safe]
 */
MTRACE_INTERNAL_INLINE int mtrace_fd(int fd) {
  if (fd >= 0) mtrace_record("fd", MTRACE_INTERNAL_CAST(uint64_t, fd), 1);
  return fd;
}

/* Records two descriptors if the call that made them has returned 0. Returns `result`. Keeps errno.
 * [signal-safe] */
MTRACE_INTERNAL_INLINE int mtrace_fds(int result, const int* ends) {
  if (result != 0) return result;
  mtrace_fd(ends[0]);
  mtrace_fd(ends[1]);
  return 0;
}

/* Releases the descriptor, then closes it: another thread may get its number at once.
 * [signal-safe] */
MTRACE_INTERNAL_INLINE int mtrace_close(int fd) {
  if (fd >= 0) mtrace_release("fd", MTRACE_INTERNAL_CAST(uint64_t, fd));
  return close(fd);
}

/* ---- OpenGL names. Statements; `what` is Textures, Buffers, Framebuffers, ... */

#define MTRACE_GL_GEN(what, count, names)                                                         \
  do {                                                                                            \
    const int mtrace_internal_count = (count);                                                    \
    unsigned* const mtrace_internal_names = (names);                                              \
    int mtrace_internal_i;                                                                        \
    glGen##what(mtrace_internal_count, mtrace_internal_names);                                    \
    for (mtrace_internal_i = 0; mtrace_internal_i < mtrace_internal_count; ++mtrace_internal_i) { \
      mtrace_record("gl-" #what, mtrace_internal_names[mtrace_internal_i], 1);                    \
    }                                                                                             \
  } while (0)

#define MTRACE_GL_DELETE(what, count, names)                                                      \
  do {                                                                                            \
    const int mtrace_internal_count = (count);                                                    \
    const unsigned* const mtrace_internal_names = (names);                                        \
    int mtrace_internal_i;                                                                        \
    for (mtrace_internal_i = 0; mtrace_internal_i < mtrace_internal_count; ++mtrace_internal_i) { \
      if (mtrace_internal_names[mtrace_internal_i] == 0) continue;                                \
      mtrace_release("gl-" #what, mtrace_internal_names[mtrace_internal_i]);                      \
    }                                                                                             \
    glDelete##what(mtrace_internal_count, mtrace_internal_names);                                 \
  } while (0)

/* ---- CUDA memory. Expressions of type cudaError_t. */

#define MTRACE_CUDA_MALLOC(pointer, size)                                                       \
  __extension__({                                                                               \
    const size_t mtrace_internal_size = (size);                                                 \
    const __typeof__(pointer) mtrace_internal_to = (pointer);                                   \
    const __typeof__(cudaMalloc(mtrace_internal_to, mtrace_internal_size)) mtrace_internal_is = \
        cudaMalloc(mtrace_internal_to, mtrace_internal_size);                                   \
    if (mtrace_internal_is == 0) {                                                              \
      mtrace_record("cuda", mtrace_internal_id(*mtrace_internal_to),                            \
                    MTRACE_INTERNAL_CAST(int64_t, mtrace_internal_size));                       \
    }                                                                                           \
    mtrace_internal_is;                                                                         \
  })

#define MTRACE_CUDA_FREE(pointer)                                       \
  __extension__({                                                       \
    const __typeof__(pointer) mtrace_internal_from = (pointer);         \
    if (mtrace_internal_from != NULL) {                                 \
      mtrace_release("cuda", mtrace_internal_id(mtrace_internal_from)); \
    }                                                                   \
    cudaFree(mtrace_internal_from);                                     \
  })

MTRACE_INTERNAL_INLINE uint64_t mtrace_internal_id(const void* pointer) {
  uint64_t id = 0;
  __builtin_memcpy(&id, &pointer, sizeof pointer);
  return id;
}

#endif
