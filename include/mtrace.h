/* mtrace.h: the C API of the heap profiler mtrace.
 *
 * Link nothing. In a process that runs under libmtrace.so,
 *     LD_PRELOAD=/path/libmtrace.so ./app
 * these functions call the library. In any other process they do nothing and return 0; a call then
 * costs a load and a branch. Define MTRACE_NDEBUG before the include to make them empty. Examples:
 * doc/api.md. This is not glibc's mtrace(3), which <mcheck.h> declares.
 *
 * Languages: C99 and later, C++11 and later. Compilers: gcc and clang.
 *
 * Threads: all functions are thread-safe. They may also be called before main, in exit handlers and
 * in the child of a fork. They keep errno, except mtrace_note().
 *
 * Signals: functions marked [signal-safe] may be called in a signal handler once any function of
 * this header has been called in the same source file. That first call finds the library with
 * dlsym(), which may change what dlerror() returns.
 *
 * Units: all heap sizes are requested bytes.
 *
 * Errors: a meaningless call (a null pointer, an unknown id, ...) does nothing except where stated,
 * and returns the value given below. Every later report counts it in its line "# misuse:", under
 * the cause given in braces below, such as {note}.
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
/* Always inlined: the stack that the library records begins with the program's own function. */
#define MTRACE_INTERNAL_INLINE static inline __attribute__((always_inline, unused))

/* ---- Reports */

/* Writes a report now: what each call stack has allocated and freed since the previous report.
 * Returns the report's number (1, 2, ...).
 * Returns 0 without the library, or when the process is not traced.
 * Returns -1 when the report cannot be written (the next report then includes the changes) or the
 * caller is a vfork child.
 * Waits for a report that another thread is writing, at most ten seconds. [signal-safe] */
MTRACE_INTERNAL_FUNCTION int mtrace_report(void);

/* Like mtrace_report(), and puts a label into the report. Keeps at most 255 bytes of `label`. A
 * null pointer or an empty text: no label. [signal-safe] */
MTRACE_INTERNAL_FUNCTION int mtrace_report_label(const char* label);

/* ---- What the heap holds */

/* Return the bytes live now, the blocks live now, and the peak: the most bytes ever live at once.
 * [signal-safe] */
MTRACE_INTERNAL_FUNCTION size_t mtrace_live_bytes(void);
MTRACE_INTERNAL_FUNCTION size_t mtrace_live_blocks(void);
MTRACE_INTERNAL_FUNCTION size_t mtrace_peak_bytes(void);

/* What the heap holds now: the bytes that the program asked for, the bytes that the allocator gave
 * it (malloc_usable_size() of each block; of an allocator that cannot be asked, the requested
 * bytes), and the blocks. */
struct mtrace_usage_totals {
  size_t requested;
  size_t usable;
  size_t blocks;
};
/* Stores it in *usage: zeros without the library. While other threads allocate it shows no single
 * moment. Takes time for each call stack of the program, some 10 ns. Returns 0, or -1 when `usage`
 * is null. [signal-safe] */
MTRACE_INTERNAL_FUNCTION int mtrace_usage(struct mtrace_usage_totals* usage);

/* Start and stop recording new allocations, in the whole process. Recording is on at program
 * start. Frees are always recorded, so a recorded block leaves the totals whenever it is freed.
 * Both return 1 when recording was on before the call, 0 when it was off. [signal-safe] */
MTRACE_INTERNAL_FUNCTION int mtrace_start(void);
MTRACE_INTERNAL_FUNCTION int mtrace_stop(void);

/* ---- Notes */

/* Puts a line with the time into the header of the next report. Takes a format, as printf does.
 * Keeps 255 bytes; a longer text ends with "..." {note}.
 * Returns 0, or -1 when the note is dropped: 64 notes wait already (counted in "# lost:"), or there
 * is no text {note}.
 * [signal-safe] as far as vsnprintf is: glibc's allocates only for floating point and for widths
 * above 1 KiB. */
MTRACE_INTERNAL_FUNCTION int mtrace_note(const char* format, ...) MTRACE_INTERNAL_PRINTF;

/* Like mtrace_note(), without a format. `cut`: not 0 when `text` is only the beginning of the note.
 * [signal-safe] */
MTRACE_INTERNAL_FUNCTION int mtrace_note_text(const char* text, int cut);

/* ---- Savepoints
 * A savepoint stores the live bytes of each stack, for a later comparison. At most 64 exist at once
 * {savepoints}. A comparison reads one stack after the other; while other threads allocate, it
 * shows no single moment. Not for signal handlers: an operation waits while another thread runs
 * one, and a message waits for the names of its frames, at most five seconds. */

/* Savepoints by name: 1 to 63 bytes {name}. mtrace_save() creates the savepoint, or resets it to
 * what is live now. mtrace_update() only resets an existing one {savepoint}. Both return 0, or -1
 * on error. */
MTRACE_INTERNAL_FUNCTION int mtrace_save(const char* name);
MTRACE_INTERNAL_FUNCTION int mtrace_update(const char* name);

/* Returns the live bytes now minus those at the savepoint; negative when the heap shrank. Returns 0
 * when the savepoint does not exist {savepoint}. */
MTRACE_INTERNAL_FUNCTION int64_t mtrace_compare(const char* name);

/* Checks whether the heap has grown since the savepoint. If so, writes the five stacks that grew
 * most to stderr, with names if the memlog tool is found, and returns the growth in bytes.
 * Otherwise returns 0. */
MTRACE_INTERNAL_FUNCTION int64_t mtrace_check(const char* name);

/* Like mtrace_check(), and calls abort() when the heap has grown. */
MTRACE_INTERNAL_FUNCTION void mtrace_assert(const char* name);

/* Savepoints by handle: each belongs to the code that made it. Handle 0 means no savepoint. A
 * handle that was freed or never existed is detected {savepoint}. */
typedef uint64_t mtrace_savepoint;

/* Creates a savepoint of what is live now. Returns 0 when there are too many, or no memory. */
MTRACE_INTERNAL_FUNCTION mtrace_savepoint mtrace_savepoint_new(void);
/* Sets the name that messages use. Keeps at most 63 bytes. Returns 0, or -1 on error {name}. */
MTRACE_INTERNAL_FUNCTION int mtrace_savepoint_label(mtrace_savepoint savepoint, const char* label);
/* Like the functions above. */
MTRACE_INTERNAL_FUNCTION int mtrace_savepoint_update(mtrace_savepoint savepoint);
MTRACE_INTERNAL_FUNCTION int64_t mtrace_savepoint_compare(mtrace_savepoint savepoint);
MTRACE_INTERNAL_FUNCTION int64_t mtrace_savepoint_check(mtrace_savepoint savepoint);
MTRACE_INTERNAL_FUNCTION void mtrace_savepoint_assert(mtrace_savepoint savepoint);
/* Writes the message of a check to `fd`, whether or not the heap has grown. Returns 0, or -1
 * when it cannot be written. */
MTRACE_INTERNAL_FUNCTION int mtrace_savepoint_explain(mtrace_savepoint savepoint, int fd);
/* Frees the savepoint. Returns 0, or -1 on error. */
MTRACE_INTERNAL_FUNCTION int mtrace_savepoint_free(mtrace_savepoint savepoint);

/* ---- Resources of the program's own: texture memory, descriptors, objects of a pool, ...
 *
 * Reports list resources as entries "@KIND" with the stack that recorded them, and never count them
 * as heap. mtrace_stop() does not affect them.
 *   kind   1 to 31 letters, digits and "-" {kind}; at most 30 kinds {kinds}
 *   id     any number, for example an address; unique among the live resources of its kind
 *   size   0 to 2^47-1, in bytes or any other unit of the kind {size}
 * [signal-safe] */

/* Records a resource. Returns 0, or -1 on misuse or when there is no room. An id that is already
 * recorded is released first {duplicate}. */
MTRACE_INTERNAL_INLINE int mtrace_record(const char* kind, uint64_t id, int64_t size);
/* Releases a resource. Any thread may do so. Returns 0, or -1 when the id is not recorded
 * {release}. */
MTRACE_INTERNAL_INLINE int mtrace_release(const char* kind, uint64_t id);

/* ---- Where am I? */

/* Writes the caller's stack to `fd`: a line "\t(module+0xoffset)" for each frame, at most 256, then
 * a line "# module: ..." for each module. Pipe the text through `memlog decode` to get names.
 * Returns the number of frames, or -1 when `fd` cannot be written. [signal-safe] */
MTRACE_INTERNAL_INLINE int mtrace_backtrace(int fd);

/* ---- How the library is found. Internal from here on: do not use. */

/* clang-format off */
#define MTRACE_INTERNAL_LIST(X)                                                                  \
  X(report) X(report_label) X(live_bytes) X(live_blocks) X(peak_bytes) X(usage) X(start) X(stop) \
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

/* Weak, so that a static program, which has neither dlsym nor the library, still links. */
static void* mtrace_internal_dlsym(void* handle, const char* name)
    __attribute__((weakref("dlsym")));

static void* mtrace_internal_table[MTRACE_INTERNAL_COUNT];
static int mtrace_internal_state; /* 0: not looked up yet, 1: the table is filled, -1: no library */

/* Threads may run this at once: all of them store the same values. */
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

/* Returns the library's function, or null when there is no library or it is older than this
 * header. */
MTRACE_INTERNAL_INLINE void* mtrace_internal_function(int which) {
  int state = __atomic_load_n(&mtrace_internal_state, __ATOMIC_ACQUIRE);
  if (state < 0 || (state == 0 && !mtrace_internal_look())) return NULL;
  return __atomic_load_n(&mtrace_internal_table[which], __ATOMIC_RELAXED);
}

#endif

/* The empty assembly prevents a tail call, which would remove the program's function from the
 * stack. */
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

MTRACE_INTERNAL_FUNCTION int mtrace_usage(struct mtrace_usage_totals* usage) {
  int (*function)(struct mtrace_usage_totals*);
  void* found = mtrace_internal_function(MTRACE_INTERNAL_usage);
  if (usage == NULL) return -1;
  usage->requested = usage->usable = usage->blocks = 0;
  __builtin_memcpy(&function, &found, sizeof function);
  return found == NULL ? 0 : function(usage);
}

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

// Checks a scope for growth: if more bytes are live at its end than at its beginning, writes to
// stderr which stacks grew. `what` names the scope in the message; at most 63 bytes are kept.
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

  // Returns the live bytes now minus those at the beginning of the scope.
  int64_t growth() const { return savepoint_ != 0 ? mtrace_savepoint_compare(savepoint_) : 0; }
  // Suppresses the message at the end of the scope.
  void dismiss() { loud_ = false; }

 private:
  mtrace_savepoint savepoint_;
  bool loud_ = true;
};

#endif /* __cplusplus */

#endif /* MTRACE_H */
