//! Extended BPF programs, which a TUN device wants, made of classic ones:
//! Documentation/bpf/standardization/instruction-set.rst in Linux.
//!
//! The accumulator and the index get registers of their own. Loads from the packet are the same in
//! both kinds: one beyond its end ends the program with 0.

use crate::sys::ebpf::Instruction;
use libc::{
    BPF_A, BPF_ABS, BPF_ALU, BPF_B, BPF_IND, BPF_JA, BPF_JMP, BPF_K, BPF_LD, BPF_LDX, BPF_LSH, BPF_MEM,
    BPF_MISC, BPF_MSH, BPF_RET, BPF_ST, BPF_STX, BPF_TAX, BPF_W, BPF_X, sock_filter,
};

/// Where loads leave what they loaded, and the program what it returns.
const RESULT: u8 = 0;
/// Where the program finds what it runs on.
const ARGUMENT: u8 = 1;
/// Where loads expect it.
const CONTEXT: u8 = 6;
const ACCUMULATOR: u8 = 7;
const INDEX: u8 = 8;
/// The end of the stack.
const FRAME: u8 = 10;

/// Classes and operations that only extended programs have. 32-bit jumps are in the place of RET.
const JUMP32: u32 = 0x06;
const MOVE: u32 = 0xb0;
const ALU64: u32 = 0x07;
const EXIT: u32 = 0x90;

/// The same program; `None` if it has instructions that programs for queues do not use.
pub(in crate::device) fn extended(classic: &[sock_filter]) -> Option<Vec<Instruction>> {
    let start = [
        of(ALU64 | MOVE | BPF_X, CONTEXT, ARGUMENT, 0),
        of(BPF_ALU | MOVE | BPF_K, ACCUMULATOR, 0, 0),
        of(BPF_ALU | MOVE | BPF_K, INDEX, 0, 0),
    ];
    let blocks: Vec<_> = classic.iter().map(one).collect::<Option<_>>()?;
    // Where each block begins, and the end.
    let mut places = vec![start.len()];
    for block in &blocks {
        places.push(places.last()? + block.len());
    }
    let mut program = start.to_vec();
    for (index, (classic, mut block)) in classic.iter().zip(blocks).enumerate() {
        let targets = match u32::from(classic.code) {
            code if code & 0x07 != BPF_JMP => vec![],
            code if code & 0xf0 == BPF_JA => vec![classic.k as usize],
            _ => vec![usize::from(classic.jt), usize::from(classic.jf)],
        };
        for (nth, (jump, target)) in block.iter_mut().zip(targets).enumerate() {
            let next = places[index] + nth + 1;
            jump.offset = i16::try_from(places.get(index + 1 + target)?.checked_sub(next)?).ok()?;
        }
        program.extend(block);
    }
    Some(program)
}

/// What an instruction becomes; jumps still without their targets.
fn one(classic: &sock_filter) -> Option<Vec<Instruction>> {
    let (code, k) = (u32::from(classic.code), classic.k as i32);
    let (class, size, mode, operation) = (code & 0x07, code & 0x18, code & 0xe0, code & 0xf0);
    let to = |register| of(BPF_ALU | MOVE | BPF_X, register, RESULT, 0);
    let slot = |instruction: Instruction| Instruction { offset: -4 * (classic.k as i16 + 1), ..instruction };
    Some(match class {
        BPF_LD if mode == BPF_ABS => vec![of(code, 0, 0, k), to(ACCUMULATOR)],
        BPF_LD if mode == BPF_IND => vec![of(code, 0, INDEX, k), to(ACCUMULATOR)],
        BPF_LDX if mode == BPF_MEM => vec![slot(of(BPF_LDX | BPF_MEM | BPF_W, INDEX, FRAME, 0))],
        // The length of an IPv4 header.
        BPF_LDX if mode == BPF_MSH && size == BPF_B => vec![
            of(BPF_LD | BPF_ABS | BPF_B, 0, 0, k),
            of(BPF_ALU | libc::BPF_AND | BPF_K, RESULT, 0, 0x0f),
            of(BPF_ALU | BPF_LSH | BPF_K, RESULT, 0, 2),
            to(INDEX),
        ],
        BPF_ST => vec![slot(of(BPF_STX | BPF_MEM | BPF_W, FRAME, ACCUMULATOR, 0))],
        BPF_ALU if code & BPF_X == 0 => vec![of(code, ACCUMULATOR, 0, k)],
        BPF_ALU => vec![of(code, ACCUMULATOR, INDEX, 0)],
        BPF_JMP if operation == BPF_JA => vec![of(BPF_JMP | BPF_JA, 0, 0, 0)],
        BPF_JMP if code & BPF_X == 0 => {
            vec![of(JUMP32 | operation | BPF_K, ACCUMULATOR, 0, k), of(BPF_JMP | BPF_JA, 0, 0, 0)]
        }
        BPF_RET => {
            let result = match code & 0x18 {
                BPF_A => of(BPF_ALU | MOVE | BPF_X, RESULT, ACCUMULATOR, 0),
                _ => of(BPF_ALU | MOVE | BPF_K, RESULT, 0, k),
            };
            vec![result, of(BPF_JMP | EXIT, 0, 0, 0)]
        }
        BPF_MISC if code & 0xf8 == BPF_TAX => vec![of(BPF_ALU | MOVE | BPF_X, INDEX, ACCUMULATOR, 0)],
        _ => return None,
    })
}

const fn of(code: u32, destination: u8, source: u8, immediate: i32) -> Instruction {
    Instruction { code: code as u8, registers: source << 4 | destination, offset: 0, immediate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::interface::bpf::statement;
    use crate::device::interface::steering;
    use crate::sys::ebpf;
    use ackline_tcp_core::steering::Steering;
    use rustix::io::Errno;

    #[test]
    fn the_kernel_accepts_what_steers() {
        let program = extended(&steering::program(&Steering::new(3, &[9; 32]).terms()));
        match ebpf::load_filter(&program.expect("it has only such instructions")) {
            Ok(_) => {}
            Err(Errno::PERM) => println!("SKIPPED: no right to load extended BPF programs"),
            Err(errno) => panic!("{errno}"),
        }
    }

    #[test]
    fn what_it_does_not_know_is_refused() {
        assert_eq!(extended(&[statement(BPF_LDX | BPF_K, 1)]), None);
        let jump = statement(BPF_JMP | BPF_JA, 1);
        assert_eq!(extended(&[jump]), None, "beyond the end");
    }
}
