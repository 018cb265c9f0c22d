// Code in which threads continue calls that memlog's stops have interrupted
// (format/restart_code.h). Here, so that exceptions, cancellation and debuggers unwind through it.
#include "format/restart_code.h"

// The frame holds the caller's rsp in its third word (the CFA) and its rip in the second.
// DW_CFA_def_cfa_expression (DW_OP_breg7 16, DW_OP_deref); DW_CFA_expression of register 16.
asm(R"(
  .pushsection .text
  .globl mtrace_restart_code
  .type mtrace_restart_code, @function
  .balign 16
  .cfi_startproc
)" MTRACE_RESTART_CODE(".cfi_escape 0x0f,3,0x77,16,0x06\n.cfi_escape 0x10,16,2,0x77,8\n",
                       ".cfi_escape 0x0f,3,0x77,24,0x06\n.cfi_escape 0x10,16,2,0x77,16\n",
                       ".cfi_def_cfa %rsp, 0\n.cfi_register %rip, %rcx\n") R"(
  .cfi_endproc
  .size mtrace_restart_code, . - mtrace_restart_code
  .popsection
)");
