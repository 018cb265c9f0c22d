# Hand-written frames for the walker's tests. Each function is
#     void f(void (*leaf)(void*), void* argument);
# and its label f_return follows the call of leaf.
    .intel_syntax noprefix
    .text

    .macro begin name
    .globl \name
    .type \name, @function
\name:
    .cfi_startproc
    .endm
    .macro end name
    .cfi_endproc
    .size \name, . - \name
    .endm
    .macro call_leaf name
    mov rax, rdi
    mov rdi, rsi
    call rax
    .globl \name\()_return
\name\()_return:
    .endm

# The CFA by rbx, which neither rsp nor rbp can replace: the frame has an unknown size.
    begin frame_by_rbx
    push rbx
    .cfi_def_cfa_offset 16
    .cfi_offset rbx, -16
    mov rbx, rsp
    .cfi_def_cfa_register rbx
    sub rsp, 100
    and rsp, -64
    call_leaf frame_by_rbx
    mov rsp, rbx
    .cfi_def_cfa_register rsp
    pop rbx
    .cfi_def_cfa_offset 8
    ret
    end frame_by_rbx

# The CFA by an expression: the word at rsp + 16.
    begin frame_by_expression
    lea rax, [rsp + 8]
    sub rsp, 40
    .cfi_def_cfa_offset 48
    mov [rsp + 16], rax
    .cfi_escape 0x0f, 3, 0x77, 16, 0x06     # def_cfa_expression: breg7 16, deref
    call_leaf frame_by_expression
    add rsp, 40
    .cfi_def_cfa rsp, 8
    ret
    end frame_by_expression

# rbp is used for something else and its value is kept in r12; the frame itself is plain.
    begin frame_register_rule
    push r12
    .cfi_def_cfa_offset 16
    .cfi_offset r12, -16
    mov r12, rbp
    .cfi_register rbp, r12
    mov rbp, 0x123
    sub rsp, 8
    .cfi_def_cfa_offset 24
    sub rsp, 8
    .cfi_def_cfa_offset 32
    call_leaf frame_register_rule
    add rsp, 16
    .cfi_def_cfa_offset 16
    mov rbp, r12
    .cfi_same_value rbp
    pop r12
    .cfi_def_cfa_offset 8
    ret
    end frame_register_rule

# The return address by a value expression: its own place is cleared and it is kept below, xored
# with 0x55.
    begin frame_by_value
    mov rax, [rsp]
    xor rax, 0x55
    push rax
    .cfi_def_cfa_offset 16
    .cfi_escape 0x16, 16, 6, 0x77, 0, 0x06, 0x08, 0x55, 0x27   # ra = *(rsp) xor 0x55
    mov qword ptr [rsp + 8], 0
    call_leaf frame_by_value
    mov rax, [rsp]
    xor rax, 0x55
    mov [rsp + 8], rax
    add rsp, 8
    .cfi_def_cfa_offset 8
    .cfi_restore rip
    ret
    end frame_by_value

# Nested remember_state and restore_state before the call.
    begin frame_remembered
    sub rsp, 24
    .cfi_def_cfa_offset 32
    .cfi_remember_state
    nop
    .cfi_def_cfa_offset 64
    .cfi_remember_state
    nop
    .cfi_def_cfa rbp, 16
    nop
    .cfi_restore_state
    nop
    .cfi_restore_state
    call_leaf frame_remembered
    add rsp, 24
    .cfi_def_cfa_offset 8
    ret
    end frame_remembered

# On another stack, given in rdx, while rbp keeps the old one.
    begin frame_on_stack
    push rbp
    .cfi_def_cfa_offset 16
    .cfi_offset rbp, -16
    mov rbp, rsp
    .cfi_def_cfa_register rbp
    mov rsp, rdx
    call_leaf frame_on_stack
    mov rsp, rbp
    .cfi_def_cfa_register rsp
    pop rbp
    .cfi_def_cfa_offset 8
    ret
    end frame_on_stack

# The outermost function by its information, though it has a caller.
    begin frame_outermost
    sub rsp, 8
    .cfi_def_cfa_offset 16
    .cfi_undefined rip
    call_leaf frame_outermost
    add rsp, 8
    ret
    end frame_outermost

# No information at all.
    .globl frame_without
    .type frame_without, @function
frame_without:
    sub rsp, 8
    call_leaf frame_without
    add rsp, 8
    ret
    .size frame_without, . - frame_without

# rbp is garbage, and the information says that the CFA rests on it.
    begin frame_garbage_rbp
    push rbp
    .cfi_def_cfa_offset 16
    .cfi_offset rbp, -16
    mov rbp, rdx
    .cfi_def_cfa rbp, 16
    call_leaf frame_garbage_rbp
    .cfi_def_cfa rsp, 16
    pop rbp
    .cfi_def_cfa_offset 8
    ret
    end frame_garbage_rbp

# An instruction that faults first: the handler walks from a pc that follows no call.
    begin frame_trap
    .globl frame_trap_pc
frame_trap_pc:
    ud2
    ret
    end frame_trap

    .section .note.GNU-stack, "", @progbits
