// void plug(void (*leaf)(void*), void* argument): a frame of PLUG_FRAME + 8 bytes. The layout is the
// same for each size, so that the return address is.
    .text
    .globl plug
    .type plug, %function
plug:
    .cfi_startproc
    sub sp, sp, #((PLUG_FRAME + 8) >> 12), lsl #12
    sub sp, sp, #((PLUG_FRAME + 8) & 0xfff)
    .cfi_def_cfa_offset PLUG_FRAME + 8
    str x30, [sp, #8]
    .cfi_offset x30, -PLUG_FRAME
    mov x2, x0
    mov x0, x1
    blr x2
    ldr x30, [sp, #8]
    .cfi_restore x30
    add sp, sp, #((PLUG_FRAME + 8) & 0xfff)
    add sp, sp, #((PLUG_FRAME + 8) >> 12), lsl #12
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size plug, . - plug
    .section .note.GNU-stack, "", %progbits
