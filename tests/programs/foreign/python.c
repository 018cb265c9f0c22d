/* Has what mtrace looks for in CPython, without any of it being CPython: an evaluation loop, thread
   states, frames and code objects, laid out as a version has them. For mtrace only if its symbols
   are exported (-rdynamic). MODE [wait]:

     3.12           as CPython 3.12 has them
     3.13           as 3.13 has them; so says _PyRuntime
     shuffled       3.13, at other places; so says _PyRuntime
     stranger       3.13, and the second thread's state leads to frames of another C stack
     free-threaded  _PyRuntime says so
     misfit         _PyRuntime names a place beyond a code object's end

   Functions main, middle and leaf call each other: main calls middle in the same loop, and middle
   calls leaf through C and another loop. At line N of leaf blocks of 10,000 + N bytes are
   allocated, 100 for each of three lines. A second thread does the same with 20,000 + N bytes.
   wait: says "waiting" then, and waits for its input to end. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not zero, because the interpreter's are not in .bss. */
unsigned long Py_Version = 0x030d05f0;
uint64_t _PyRuntime[512] = {1};
char PyCode_Type[416] = {1};

enum { kEntry = 3, kInstructions = 8, kObject = 512, kLines = 3, kEach = 100 };

struct Layout {
  unsigned finalizing, state_cframe, state_frame;
  unsigned frame_code, frame_previous, frame_instruction, frame_owner;
  unsigned code_file, code_name, code_table, code_line, code_instructions;
};
static const struct Layout k312 = {24, 56, 0, 0, 8, 56, 70, 112, 128, 136, 68, 192};
static const struct Layout k313 = {608, 0, 72, 0, 8, 56, 70, 112, 128, 136, 68, 200};
static const struct Layout kShuffled = {1000, 0, 416, 64, 0, 24, 77, 40, 176, 24, 156, 248};
static struct Layout at;

static pthread_key_t first_key, state_key;
static char other_entry[96];
static int is_stranger;

static void put(char* object, unsigned offset, const void* value) {
  memcpy(object + offset, &value, sizeof value);
}
static void put_number(char* object, unsigned offset, uint64_t value) {
  memcpy(object + offset, &value, sizeof value);
}
static char* get(const char* object, unsigned offset) {
  char* value;
  memcpy(&value, object + offset, sizeof value);
  return value;
}

static char* text(const char* from) {
  char* const made = calloc(1, kObject);
  const uint32_t state = 1u << 2 | 1u << 5 | 1u << 6; /* one byte a character, compact, ASCII */
  put_number(made, 0, 1);
  put_number(made, 16, strlen(from));
  memcpy(made + 32, &state, sizeof state);
  strcpy(made + 40, from);
  return made;
}

/* Instruction i stands on line `line` + i. */
static char* code(const char* name, uint32_t line) {
  char* const made = calloc(1, kObject);
  char* const table = calloc(1, kObject);
  for (unsigned i = 0; i < kInstructions; ++i) {
    table[32 + 3 * i] = (char)(0x80 | (i == 0 ? 10 : 11) << 3);
  }
  put_number(table, 16, 3 * kInstructions);
  put_number(made, 0, 1);
  put(made, 8, PyCode_Type);
  put_number(made, 16, kInstructions);
  put(made, at.code_file, text("/srv/made_up.py"));
  put(made, at.code_name, text(name));
  put(made, at.code_table, table);
  memcpy(made + at.code_line, &line, sizeof line);
  return made;
}

static void set_instruction(char* frame, unsigned instruction) {
  put(frame, at.frame_instruction, get(frame, at.frame_code) + at.code_instructions + 2 * instruction);
}
static void set_frame(char* frame, char* of, unsigned instruction, char owner) {
  put(frame, at.frame_code, of);
  put(frame, at.frame_previous, NULL);
  set_instruction(frame, instruction);
  frame[at.frame_owner] = owner;
}

struct Program {
  char* state;
  char* functions[3]; /* main, middle, leaf */
  char frames[3][96];
  size_t bytes;
};

static void* run(struct Program* program, unsigned function);

/* Where the frame of the innermost function is named: in the thread's state, or in the C frame of
   the loop. */
static char** current(struct Program* program) {
  if (at.state_cframe == 0) return (char**)(program->state + at.state_frame);
  return (char**)get(program->state, at.state_cframe);
}

__attribute__((noinline)) void* _PyEval_EvalFrameDefault(struct Program* program, unsigned first) {
  char entry[96];
  char* const caller = *current(program);
  char* const outer = at.state_cframe == 0 ? NULL : get(program->state, at.state_cframe);
  char* cframe[2] = {NULL, outer};
  if (outer != NULL) put(program->state, at.state_cframe, cframe);
  set_frame(entry, PyCode_Type, 0, kEntry);
  put(entry, at.frame_previous, caller);
  put(program->frames[first], at.frame_previous, is_stranger ? other_entry : entry);
  *current(program) = program->frames[first];
  void* const result = run(program, first);
  if (outer != NULL) put(program->state, at.state_cframe, outer);
  *current(program) = caller;
  __asm__ volatile("" : : "r"(entry), "r"(cframe) : "memory");
  return result;
}

__attribute__((noinline)) static void* c_function(struct Program* program) {
  void* const result = _PyEval_EvalFrameDefault(program, 2);
  __asm__ volatile("" : : : "memory");
  return result;
}

__attribute__((noinline)) static void* run(struct Program* program, unsigned function) {
  void* result;
  if (function == 2) {
    result = malloc(program->bytes);
  } else {
    put(program->frames[1], at.frame_previous, program->frames[0]);
    *current(program) = program->frames[1];
    result = c_function(program);
    *current(program) = program->frames[0];
  }
  __asm__ volatile("" : : : "memory");
  return result;
}

static void* run_program(void* argument) {
  const size_t base = *(const size_t*)argument;
  struct Program* const program = calloc(1, sizeof *program);
  program->functions[0] = code("main", 10);
  program->functions[1] = code("Thing.middle", 20);
  program->functions[2] = code("leaf.<locals>.<lambda>", 30);
  program->state = calloc(1, 1024);
  static char* no_function[2];
  if (at.state_cframe != 0) put(program->state, at.state_cframe, no_function);
  pthread_setspecific(state_key, program->state);
  for (unsigned i = 0; i < 3; ++i) set_frame(program->frames[i], program->functions[i], 2 * i + 1, 0);
  for (unsigned i = 0; i < kLines * kEach; ++i) {
    const unsigned instruction = i % kLines + 2;
    set_instruction(program->frames[2], instruction);
    program->bytes = base + 30 + instruction;
    static void* volatile kept;
    kept = _PyEval_EvalFrameDefault(program, 0);
    if (kept == NULL) abort();
  }
  return NULL;
}

static void tell_offsets(const char* mode) {
  memcpy(_PyRuntime, "xdebugpy", 8);
  _PyRuntime[1] = Py_Version;
  _PyRuntime[2] = strcmp(mode, "free-threaded") == 0;
  _PyRuntime[4] = at.finalizing;
  _PyRuntime[23] = at.state_frame;
  _PyRuntime[29] = at.frame_previous;
  _PyRuntime[30] = at.frame_code;
  _PyRuntime[31] = at.frame_instruction;
  _PyRuntime[33] = at.frame_owner;
  _PyRuntime[35] = strcmp(mode, "misfit") == 0 ? 4000 : at.code_file;
  _PyRuntime[37] = at.code_name;
  _PyRuntime[38] = at.code_table;
  _PyRuntime[39] = at.code_line;
  _PyRuntime[43] = at.code_instructions;
  _PyRuntime[45] = 8;
  _PyRuntime[65] = 16;
  _PyRuntime[66] = 32;
  _PyRuntime[68] = 32;
  _PyRuntime[69] = 16;
  _PyRuntime[70] = 40;
}

static void free_code(void* object) { free(object); }

int main(int argc, char** argv) {
  const char* const mode = argc > 1 ? argv[1] : "3.13";
  at = strcmp(mode, "3.12") == 0 ? k312 : strcmp(mode, "shuffled") == 0 ? kShuffled : k313;
  if (strcmp(mode, "3.12") == 0) {
    Py_Version = 0x030c03f0;
  } else {
    tell_offsets(mode);
  }
  put_number(PyCode_Type, 32, at.code_instructions);
  put(PyCode_Type, 48, (const void*)free_code);
  set_frame(other_entry, PyCode_Type, 0, kEntry);
  /* The state's key is not the first, and others hold what is none. */
  pthread_key_create(&first_key, NULL);
  pthread_key_create(&state_key, NULL);
  pthread_setspecific(first_key, &first_key);
  size_t base = 10000, other_base = 20000;
  pthread_t thread;
  run_program(&base);
  is_stranger = strcmp(mode, "stranger") == 0;
  pthread_create(&thread, NULL, run_program, &other_base);
  pthread_join(thread, NULL);
  if (argc > 2) {
    puts("waiting");
    fflush(stdout);
    getchar();
  }
  return 0;
}
