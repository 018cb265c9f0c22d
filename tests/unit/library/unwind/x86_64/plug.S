# void plug(void (*leaf)(void*), void* argument): a frame of PLUG_FRAME bytes. The layout is the
# same for each size, so that the return address is.
    .intel_syntax noprefix
    .text
    .globl plug
    .type plug, @function
plug:
    .cfi_startproc
    .byte 0x48, 0x81, 0xec      # sub rsp, imm32: not shortened for small ones
    .long PLUG_FRAME
    .cfi_def_cfa_offset PLUG_FRAME + 8
    mov rax, rdi
    mov rdi, rsi
    call rax
    .byte 0x48, 0x81, 0xc4      # add rsp, imm32
    .long PLUG_FRAME
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size plug, . - plug
    .section .note.GNU-stack, "", @progbits
