/* mtrace.h: what a program can say to the heap profiler mtrace, and ask it.
 *
 * Nothing has to be linked. In a process that runs under libmtrace.so,
 *     LD_PRELOAD=/path/libmtrace.so ./app
 * the functions below reach it; in any other they do nothing and return 0, at the cost of a load
 * and a branch. With MTRACE_NDEBUG defined before the include they are empty and need nothing at
 * all. doc/api.md has examples. This is not glibc's mtrace(3), which is declared in <mcheck.h>.
 *
 * C (C99 and later) and C++ (C++11 and later), gcc and clang.
 *
 * All functions are thread-safe, and may be called before main, in exit handlers and in the child
 * of a fork; errno stays what it was, except by mtrace_note(). Those marked [signal-safe] may also
 * be called in signal handlers, once any function of this header has been called in the same
 * source file: the first call looks the library up with dlsym(), which also forgets or replaces
 * what dlerror() would have said. Bytes are always those that were asked for.
 *
 * A call that cannot mean anything (a null pointer, an unknown id, ...) does nothing, returns what
 * is said below, and is counted in the line "# misuse:" of all reports from then on, under the
 * cause that stands in braces.
 */
#ifndef MTRACE_H
#define MTRACE_H

#include <stddef.h>
#include <stdint.h>
#ifndef MTRACE_NDEBUG
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#endif

#define MTRACE_INTERNAL_FUNCTION static __attribute__((unused))
#define MTRACE_INTERNAL_PRINTF __attribute__((format(printf, 1, 2)))
/* Inlined always: the stack that the library sees begins with the program's own function. */
#define MTRACE_INTERNAL_INLINE static inline __attribute__((always_inline, unused))

/* ---- Reports */

/* Writes a report now: what every call stack has allocated and freed since the previous one.
 * Returns its number (1, 2, ...); 0 without the library or when the process is not traced; -1 when
 * the report could not be written (the changes then stand in the next one) or is not to be had
 * here (a vfork child). May wait for another thread's report, at most ten seconds. [signal-safe] */
MTRACE_INTERNAL_FUNCTION int mtrace_report(void);

/* As mtrace_report(), with a label (at most 255 bytes are kept) that stands in the report. A null
 * pointer or an empty text: no label. */
MTRACE_INTERNAL_FUNCTION int mtrace_report_label(const char* label);

/* ---- What the heap holds */

/* Bytes and blocks that are live now, and the most bytes that ever were at once. [signal-safe] */
MTRACE_INTERNAL_FUNCTION size_t mtrace_live_bytes(void);
MTRACE_INTERNAL_FUNCTION size_t mtrace_live_blocks(void);
MTRACE_INTERNAL_FUNCTION size_t mtrace_peak_bytes(void);

/* Whether new allocations of the whole process are recorded; they are from the start on. Frees are
 * always, so a block that was recorded leaves the totals whenever it is freed. Both return 1 when
 * allocations were recorded before the call, 0 when not. [signal-safe] */
MTRACE_INTERNAL_FUNCTION int mtrace_start(void);
MTRACE_INTERNAL_FUNCTION int mtrace_stop(void);

/* ---- Notes */

/* Leaves a line in the head of the next report, with the time. As printf; 255 bytes are kept, of a
 * longer text the beginning and "..." {note}. Returns 0; -1 when the note was dropped: 64 wait
 * already (counted in "# lost:"), or there is no text {note}. [signal-safe] as far as vsnprintf is:
 * glibc's allocates only for floating point and for widths above 1 KiB. */
MTRACE_INTERNAL_FUNCTION int mtrace_note(const char* format, ...) MTRACE_INTERNAL_PRINTF;

/* The same without a format. `cut`: not 0 when the text is only the beginning. [signal-safe] */
MTRACE_INTERNAL_FUNCTION int mtrace_note_text(const char* text, int cut);

/* ---- Savepoints
 *
 * A savepoint remembers what each stack holds, to compare with later. At most 64 at once
 * {savepoints}. While other threads allocate, a comparison has no one moment: it reads one stack
 * after the other. Not for signal handlers: an operation waits for that of another thread, and a
 * message for the names of its frames, at most five seconds. */

/* By name, 1 to 63 bytes {name}. save makes the savepoint, or makes it say what is live now; update
 * does only the latter {savepoint}. Both return 0, or -1. */
MTRACE_INTERNAL_FUNCTION int mtrace_save(const char* name);
MTRACE_INTERNAL_FUNCTION int mtrace_update(const char* name);

/* Live bytes now minus live bytes then; negative when the heap shrank. 0 when there is no such
 * savepoint {savepoint}. */
MTRACE_INTERNAL_FUNCTION int64_t mtrace_compare(const char* name);

/* When the heap has grown: writes to stderr which stacks did (the five largest), with names where
 * the memlog tool is found, and returns by how many bytes. Otherwise 0. */
MTRACE_INTERNAL_FUNCTION int64_t mtrace_check(const char* name);

/* As mtrace_check(), and abort() when the heap has grown. */
MTRACE_INTERNAL_FUNCTION void mtrace_assert(const char* name);

/* By handle: a savepoint of one's own. 0 is none. A handle that was freed, or never was one, is
 * recognised {savepoint}. */
typedef uint64_t mtrace_savepoint;

/* 0: there are too many, or no memory. */
MTRACE_INTERNAL_FUNCTION mtrace_savepoint mtrace_savepoint_new(void);
/* What messages call it; at most 63 bytes are kept. 0, or -1 {name}. */
MTRACE_INTERNAL_FUNCTION int mtrace_savepoint_label(mtrace_savepoint savepoint, const char* label);
/* As the functions above. */
MTRACE_INTERNAL_FUNCTION int mtrace_savepoint_update(mtrace_savepoint savepoint);
MTRACE_INTERNAL_FUNCTION int64_t mtrace_savepoint_compare(mtrace_savepoint savepoint);
MTRACE_INTERNAL_FUNCTION int64_t mtrace_savepoint_check(mtrace_savepoint savepoint);
MTRACE_INTERNAL_FUNCTION void mtrace_savepoint_assert(mtrace_savepoint savepoint);
/* Writes the message of a check to `fd`, grown or not. 0, or -1 when it cannot be written. */
MTRACE_INTERNAL_FUNCTION int mtrace_savepoint_explain(mtrace_savepoint savepoint, int fd);
MTRACE_INTERNAL_FUNCTION int mtrace_savepoint_free(mtrace_savepoint savepoint);

/* ---- Resources of the program's own: texture memory, descriptors, objects of a pool, ...
 *
 * They stand in reports as entries "@KIND" with the stack that recorded them, and never count as
 * heap. `kind`: 1 to 31 letters, digits and "-" {kind}, at most 30 of them {kinds}. `id`: any
 * number that is not used twice at a time within the kind, an address perhaps. `size`: 0 to 2^47-1
 * {size}, bytes or whatever the kind is measured in. mtrace_stop() does not concern them.
 * [signal-safe] */

/* 0; -1 for bad use or no room. An id that is recorded already is released first {duplicate}. */
MTRACE_INTERNAL_INLINE int mtrace_record(const char* kind, uint64_t id, int64_t size);
/* 0; -1 for an id that is not recorded {release}. Any thread may release what another recorded. */
MTRACE_INTERNAL_INLINE int mtrace_release(const char* kind, uint64_t id);

/* ---- Where am I? */

/* Writes the stack of the caller to `fd`: a line "\t(module+0xoffset)" for each of at most 128
 * frames, then a line "# module: ..." for each module; `memlog decode` puts names in. Returns the
 * number of frames, -1 when `fd` does not take it. [signal-safe] */
MTRACE_INTERNAL_INLINE int mtrace_backtrace(int fd);

/* ---- How the library is found. Nothing from here on is for use. */

/* clang-format off */
#define MTRACE_INTERNAL_LIST(X)                                                                  \
  X(report) X(report_label) X(live_bytes) X(live_blocks) X(peak_bytes) X(start) X(stop)          \
  X(note_text) X(save) X(update) X(compare) X(check) X(savepoint_new) X(savepoint_label)         \
  X(savepoint_update) X(savepoint_compare) X(savepoint_check) X(savepoint_explain)               \
  X(savepoint_free) X(record) X(release) X(backtrace)
/* clang-format on */
#define MTRACE_INTERNAL_INDEX(name) MTRACE_INTERNAL_##name,
enum { MTRACE_INTERNAL_LIST(MTRACE_INTERNAL_INDEX) MTRACE_INTERNAL_COUNT };

#ifdef MTRACE_NDEBUG

MTRACE_INTERNAL_INLINE void* mtrace_internal_function(int which) {
  (void)which;
  return NULL;
}

#else

/* Weak, so that a static program, which has no dlsym and no library, links without it. */
static void* mtrace_internal_dlsym(void* handle, const char* name)
    __attribute__((weakref("dlsym")));

static void* mtrace_internal_table[MTRACE_INTERNAL_COUNT];
static int mtrace_internal_state; /* 0: not looked yet, 1: the table is filled, -1: no library */

/* Threads that come here at once all find the same. */
MTRACE_INTERNAL_FUNCTION __attribute__((noinline, cold)) int mtrace_internal_look(void) {
#define MTRACE_INTERNAL_NAME(name) "mtrace_" #name,
  static const char* const names[] = {MTRACE_INTERNAL_LIST(MTRACE_INTERNAL_NAME)};
  int i;
  int found = mtrace_internal_dlsym != NULL;
  for (i = 0; found && i < MTRACE_INTERNAL_COUNT; ++i) {
    void* function = mtrace_internal_dlsym(NULL, names[i]); /* RTLD_DEFAULT */
    __atomic_store_n(&mtrace_internal_table[i], function, __ATOMIC_RELAXED);
    if (i == 0) found = function != NULL;
  }
  __atomic_store_n(&mtrace_internal_state, found ? 1 : -1, __ATOMIC_RELEASE);
  return found;
}

/* The library's function, or null: there is no library, or it is older than this header. */
MTRACE_INTERNAL_INLINE void* mtrace_internal_function(int which) {
  int state = __atomic_load_n(&mtrace_internal_state, __ATOMIC_ACQUIRE);
  if (state < 0 || (state == 0 && !mtrace_internal_look())) return NULL;
  return __atomic_load_n(&mtrace_internal_table[which], __ATOMIC_RELAXED);
}

#endif

/* The empty assembly keeps the call from becoming a jump, which would take the program's function
 * off the stack. */
#define MTRACE_INTERNAL_DEFINE(specifiers, type, name, parameters, arguments) \
  specifiers type mtrace_##name parameters {                                  \
    type(*function) parameters;                                               \
    type result;                                                              \
    void* found = mtrace_internal_function(MTRACE_INTERNAL_##name);           \
    __builtin_memcpy(&function, &found, sizeof function);                     \
    if (found == NULL) return 0;                                              \
    result = function arguments;                                              \
    __asm__ volatile("" ::: "memory");                                        \
    return result;                                                            \
  }
#define MTRACE_INTERNAL_PLAIN(type, name, parameters, arguments) \
  MTRACE_INTERNAL_DEFINE(MTRACE_INTERNAL_FUNCTION, type, name, parameters, arguments)
#define MTRACE_INTERNAL_FRAME(type, name, parameters, arguments) \
  MTRACE_INTERNAL_DEFINE(MTRACE_INTERNAL_INLINE, type, name, parameters, arguments)

MTRACE_INTERNAL_PLAIN(int, report, (void), ())
MTRACE_INTERNAL_PLAIN(int, report_label, (const char* label), (label))
MTRACE_INTERNAL_PLAIN(size_t, live_bytes, (void), ())
MTRACE_INTERNAL_PLAIN(size_t, live_blocks, (void), ())
MTRACE_INTERNAL_PLAIN(size_t, peak_bytes, (void), ())
MTRACE_INTERNAL_PLAIN(int, start, (void), ())
MTRACE_INTERNAL_PLAIN(int, stop, (void), ())
MTRACE_INTERNAL_PLAIN(int, note_text, (const char* text, int cut), (text, cut))
MTRACE_INTERNAL_PLAIN(int, save, (const char* name), (name))
MTRACE_INTERNAL_PLAIN(int, update, (const char* name), (name))
MTRACE_INTERNAL_PLAIN(int64_t, compare, (const char* name), (name))
MTRACE_INTERNAL_PLAIN(int64_t, check, (const char* name), (name))
MTRACE_INTERNAL_PLAIN(mtrace_savepoint, savepoint_new, (void), ())
MTRACE_INTERNAL_PLAIN(int, savepoint_label, (mtrace_savepoint savepoint, const char* label),
                      (savepoint, label))
MTRACE_INTERNAL_PLAIN(int, savepoint_update, (mtrace_savepoint savepoint), (savepoint))
MTRACE_INTERNAL_PLAIN(int64_t, savepoint_compare, (mtrace_savepoint savepoint), (savepoint))
MTRACE_INTERNAL_PLAIN(int64_t, savepoint_check, (mtrace_savepoint savepoint), (savepoint))
MTRACE_INTERNAL_PLAIN(int, savepoint_explain, (mtrace_savepoint savepoint, int fd), (savepoint, fd))
MTRACE_INTERNAL_PLAIN(int, savepoint_free, (mtrace_savepoint savepoint), (savepoint))
MTRACE_INTERNAL_FRAME(int, record, (const char* kind, uint64_t id, int64_t size), (kind, id, size))
MTRACE_INTERNAL_FRAME(int, release, (const char* kind, uint64_t id), (kind, id))
MTRACE_INTERNAL_FRAME(int, backtrace, (int fd), (fd))

MTRACE_INTERNAL_FUNCTION int mtrace_note(const char* format, ...) {
#ifdef MTRACE_NDEBUG
  (void)format;
  return 0;
#else
  enum { kept = 255 };
  char text[kept + 1];
  int length = -1;
  if (mtrace_internal_function(MTRACE_INTERNAL_note_text) == NULL) return 0;
  if (format != NULL) {
    va_list arguments;
    va_start(arguments, format);
    length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
  }
  return mtrace_note_text(length < 0 ? NULL : text, length > kept);
#endif
}

MTRACE_INTERNAL_FUNCTION void mtrace_assert(const char* name) {
#ifdef MTRACE_NDEBUG
  (void)name;
#else
  if (mtrace_check(name) > 0) abort();
#endif
}

MTRACE_INTERNAL_FUNCTION void mtrace_savepoint_assert(mtrace_savepoint savepoint) {
#ifdef MTRACE_NDEBUG
  (void)savepoint;
#else
  if (mtrace_savepoint_check(savepoint) > 0) abort();
#endif
}

#ifdef __cplusplus

// Says on stderr, when it goes out of scope, which stacks hold more than when it was made, if the
// heap as a whole does. `what` stands in the message; at most 63 bytes are kept.
//
//     mtrace_scope guard("parse");
class mtrace_scope {
 public:
  explicit mtrace_scope(const char* what) : savepoint_(mtrace_savepoint_new()) {
    if (savepoint_ != 0) mtrace_savepoint_label(savepoint_, what);
  }
  ~mtrace_scope() {
    if (savepoint_ == 0) return;
    if (loud_) mtrace_savepoint_check(savepoint_);
    mtrace_savepoint_free(savepoint_);
  }
  mtrace_scope(const mtrace_scope&) = delete;
  mtrace_scope& operator=(const mtrace_scope&) = delete;

  // Live bytes now minus those at the beginning.
  int64_t growth() const { return savepoint_ != 0 ? mtrace_savepoint_compare(savepoint_) : 0; }
  // Nothing is said at the end.
  void dismiss() { loud_ = false; }

 private:
  mtrace_savepoint savepoint_;
  bool loud_ = true;
};

#endif /* __cplusplus */

#endif /* MTRACE_H */
