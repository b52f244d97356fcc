//! RI5CY: RV32IMC with the rotation and the hardware loops of Xpulp, and what each instruction
//! costs. Cycles are an estimate, not a measurement.
//!
//! The timing is that of the RI5CY user manual 1.8, §3.6: one cycle an instruction; 5 for the upper
//! half of a product; 35 for a division; 2 for a jump; 3 for a taken branch; one more where an
//! instruction reads what the load just before it brought; hardware loops nothing. Instructions
//! are fetched without waiting.

/// An instruction's access to the data memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// The byte address.
    pub(crate) address: u32,
}

/// One core.
#[derive(Clone)]
pub(crate) struct Core {
    /// The registers; `x[0]` stays 0.
    pub(crate) x: [u32; 32],
    /// The next instruction.
    pub(crate) pc: u32,
    /// Cycles so far.
    pub(crate) cycles: u64,
    /// Instructions so far.
    pub(crate) instructions: u64,
    loops: [Loop; 2],
    /// The register that the last instruction loaded.
    loaded: u32,
}

#[derive(Clone, Copy, Default)]
struct Loop {
    start: u32,
    /// The last instruction of the body.
    last: u32,
    count: u32,
}

/// Flat memory from [`Memory::BASE`] on, and a cluster's from [`Memory::NEAR`] on.
pub(crate) struct Memory {
    far: Vec<u8>,
    near: Vec<u8>,
}

impl Memory {
    /// The lowest address.
    pub(crate) const BASE: u32 = 0x8000_0000;

    /// Where a GAP8 has the memory of its cluster.
    pub(crate) const NEAR: u32 = 0x1000_0000;
    const NEAR_BYTES: usize = 64 * 1024;

    /// Zeros.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { far: vec![0; bytes], near: vec![0; Self::NEAR_BYTES] }
    }

    /// The bytes from `address` on.
    pub(crate) fn at(&mut self, address: u32, len: usize) -> &mut [u8] {
        if address < Self::BASE {
            let start = address.wrapping_sub(Self::NEAR) as usize;
            return &mut self.near[start..start + len];
        }
        let start = (address - Self::BASE) as usize;
        &mut self.far[start..start + len]
    }

    fn load(&self, address: u32, len: usize) -> u32 {
        assert!(address.is_multiple_of(len as u32), "unaligned load at {address:#x}");
        let (memory, start) = match address.checked_sub(Self::BASE) {
            Some(start) => (&self.far, start as usize),
            None => (&self.near, address.wrapping_sub(Self::NEAR) as usize),
        };
        memory[start..start + len].iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
    }

    fn store(&mut self, address: u32, len: usize, value: u32) {
        assert!(address.is_multiple_of(len as u32), "unaligned store at {address:#x}");
        self.at(address, len).copy_from_slice(&value.to_le_bytes()[..len]);
    }
}

/// Where a call returns to: nothing is there.
pub(crate) const RETURN: u32 = 0xffff_fff0;

impl Core {
    /// A core about to call `function` with up to eight arguments.
    pub(crate) fn calling(function: u32, arguments: &[u32], stack: u32) -> Self {
        let mut x = [0; 32];
        x[1] = RETURN;
        x[2] = stack;
        x[10..10 + arguments.len()].copy_from_slice(arguments);
        Self { x, pc: function, cycles: 0, instructions: 0, loops: Default::default(), loaded: 0 }
    }

    /// One instruction.
    pub(crate) fn step(&mut self, memory: &mut Memory) -> Option<Access> {
        let here = self.pc;
        let low = memory.load(here, 2);
        let (word, size) = if low & 3 == 3 {
            (low | memory.load(here + 2, 2) << 16, 4)
        } else {
            (expand(low).unwrap_or_else(|| panic!("unknown instruction {low:#06x}")), 2)
        };
        self.pc = here + size;
        self.instructions += 1;
        self.cycles += 1;
        let (rs1, rs2) = (word >> 15 & 31, word >> 20 & 31);
        let reads_rs2 = matches!(word & 0x7f, 0x33 | 0x23 | 0x63 | 0x2b);
        if self.loaded != 0 && (self.loaded == rs1 || reads_rs2 && self.loaded == rs2) {
            self.cycles += 1;
        }
        self.loaded = 0;
        let access = self.execute(word, here, memory);
        self.x[0] = 0;
        self.close_loops(here);
        access
    }

    /// RI5CY looks at the inner loop first; a loop whose count has run down falls through.
    fn close_loops(&mut self, here: u32) {
        for hardware_loop in &mut self.loops {
            if hardware_loop.count > 0 && hardware_loop.last == here {
                hardware_loop.count -= 1;
                if hardware_loop.count > 0 {
                    self.pc = hardware_loop.start;
                    return;
                }
            }
        }
    }

    fn execute(&mut self, word: u32, here: u32, memory: &mut Memory) -> Option<Access> {
        let (rd, funct3, funct7) = ((word >> 7 & 31) as usize, word >> 12 & 7, word >> 25);
        let (a, b) = (self.x[(word >> 15 & 31) as usize], self.x[(word >> 20 & 31) as usize]);
        let immediate = (word as i32 >> 20) as u32;
        let store_immediate = (word as i32 >> 25 << 5) as u32 | word >> 7 & 31;
        match word & 0x7f {
            0x37 => self.x[rd] = word & 0xffff_f000,
            0x17 => self.x[rd] = here.wrapping_add(word & 0xffff_f000),
            0x6f => {
                self.x[rd] = self.pc;
                self.pc = here.wrapping_add(jump_offset(word));
                self.cycles += 1;
            }
            0x67 => {
                let target = a.wrapping_add(immediate) & !1;
                self.x[rd] = self.pc;
                self.pc = target;
                self.cycles += 1;
            }
            0x63 => {
                let taken = match funct3 {
                    0 => a == b,
                    1 => a != b,
                    4 => (a as i32) < b as i32,
                    5 => a as i32 >= b as i32,
                    6 => a < b,
                    _ => a >= b,
                };
                if taken {
                    self.pc = here.wrapping_add(branch_offset(word));
                    self.cycles += 2;
                }
            }
            0x03 => return self.load(rd, funct3, a.wrapping_add(immediate), memory),
            0x23 => {
                let address = a.wrapping_add(store_immediate);
                memory.store(address, 1 << funct3, b);
                return Some(Access { address });
            }
            0x2b if funct3 == 2 => {
                memory.store(a, 4, b);
                let base = (word >> 15 & 31) as usize;
                self.x[base] = a.wrapping_add(store_immediate);
                return Some(Access { address: a });
            }
            0x13 => self.x[rd] = operate(funct3, funct3 == 5 && funct7 & 0x20 != 0, a, immediate),
            0x33 if funct7 == 1 => {
                self.x[rd] = multiply(funct3, a, b);
                self.cycles += [0, 4, 4, 4, 34, 34, 34, 34][funct3 as usize];
            }
            0x33 if (funct7, funct3) == (4, 5) => self.x[rd] = a.rotate_right(b & 31),
            0x33 => self.x[rd] = operate(funct3, funct7 & 0x20 != 0, a, b),
            0x7b => self.set_loop(word, here, a),
            0x0f => {}
            _ => panic!("unknown instruction {word:#010x} at {here:#x}"),
        }
        None
    }

    fn load(&mut self, rd: usize, funct3: u32, address: u32, memory: &Memory) -> Option<Access> {
        let value = memory.load(address, 1 << (funct3 & 3));
        self.x[rd] = match funct3 {
            0 => value as i8 as u32,
            1 => value as i16 as u32,
            _ => value,
        };
        self.loaded = rd as u32;
        Some(Access { address })
    }

    /// `lp.setup`: the loop's count is in a register, its last instruction `imm * 2` from here.
    fn set_loop(&mut self, word: u32, here: u32, count: u32) {
        assert!(word >> 12 & 7 == 4, "only lp.setup is modelled");
        let last = here + (word >> 20) * 2;
        self.loops[(word >> 7 & 1) as usize] = Loop { start: here + 4, last, count };
    }
}

fn operate(funct3: u32, alternative: bool, a: u32, b: u32) -> u32 {
    match (funct3, alternative) {
        (0, false) => a.wrapping_add(b),
        (0, true) => a.wrapping_sub(b),
        (1, _) => a << (b & 31),
        (2, _) => u32::from((a as i32) < b as i32),
        (3, _) => u32::from(a < b),
        (4, _) => a ^ b,
        (5, false) => a >> (b & 31),
        (5, true) => (a as i32 >> (b & 31)) as u32,
        (6, _) => a | b,
        _ => a & b,
    }
}

fn multiply(funct3: u32, a: u32, b: u32) -> u32 {
    match funct3 {
        0 => a.wrapping_mul(b),
        1 => ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32,
        2 => ((i64::from(a as i32) * i64::from(b)) >> 32) as u32,
        3 => ((u64::from(a) * u64::from(b)) >> 32) as u32,
        4 if b == 0 => u32::MAX,
        4 => (a as i32).wrapping_div(b as i32) as u32,
        5 => a.checked_div(b).unwrap_or(u32::MAX),
        6 if b == 0 => a,
        6 => (a as i32).wrapping_rem(b as i32) as u32,
        _ => a.checked_rem(b).unwrap_or(a),
    }
}

fn jump_offset(word: u32) -> u32 {
    let sign = (word as i32 >> 31 << 20) as u32;
    sign | word & 0x000f_f000 | word >> 9 & 0x800 | word >> 20 & 0x7fe
}

fn branch_offset(word: u32) -> u32 {
    let sign = (word as i32 >> 31 << 12) as u32;
    sign | (word << 4 & 0x800) | (word >> 20 & 0x7e0) | (word >> 7 & 0x1e)
}

/// The full form of a compressed instruction (RISC-V unprivileged ISA, chapter "C").
fn expand(c: u32) -> Option<u32> {
    let bits = |high: u32, low: u32| c >> low & ((1 << (high - low + 1)) - 1);
    let (rd, rs2) = (bits(11, 7), bits(6, 2));
    let (rd_short, rs1_short) = (bits(4, 2) + 8, bits(9, 7) + 8);
    let imm6 = ((bits(12, 12) << 5 | bits(6, 2)) << 26) as i32 >> 26;
    let i = |imm: i32, rs1: u32, f3: u32, rd: u32, op: u32| {
        (imm as u32) << 20 | rs1 << 15 | f3 << 12 | rd << 7 | op
    };
    let r = |f7: u32, rs2: u32, rs1: u32, f3: u32, rd: u32| {
        f7 << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | rd << 7 | 0x33
    };
    let s = |imm: u32, rs2: u32, rs1: u32| {
        imm >> 5 << 25 | rs2 << 20 | rs1 << 15 | 2 << 12 | (imm & 31) << 7 | 0x23
    };
    let jump = || {
        let offset = bits(12, 12) << 11
            | bits(11, 11) << 4
            | bits(10, 9) << 8
            | bits(8, 8) << 10
            | bits(7, 7) << 6
            | bits(6, 6) << 7
            | bits(5, 3) << 1
            | bits(2, 2) << 5;
        let offset = ((offset << 20) as i32 >> 20) as u32;
        (offset >> 20 & 1) << 31
            | (offset >> 1 & 0x3ff) << 21
            | (offset >> 11 & 1) << 20
            | (offset >> 12 & 0xff) << 12
            | 0x6f
    };
    let branch = |f3: u32| {
        let offset = bits(12, 12) << 8
            | bits(11, 10) << 3
            | bits(6, 5) << 6
            | bits(4, 3) << 1
            | bits(2, 2) << 5;
        let offset = ((offset << 23) as i32 >> 23) as u32;
        (offset >> 12 & 1) << 31
            | (offset >> 5 & 0x3f) << 25
            | rs1_short << 15
            | f3 << 12
            | (offset >> 1 & 15) << 8
            | (offset >> 11 & 1) << 7
            | 0x63
    };
    let word_offset = bits(12, 10) << 3 | bits(6, 6) << 2 | bits(5, 5) << 6;
    Some(match (c & 3, bits(15, 13)) {
        (0, 0) if c != 0 => {
            let imm = bits(12, 11) << 4 | bits(10, 7) << 6 | bits(6, 6) << 2 | bits(5, 5) << 3;
            i(imm as i32, 2, 0, rd_short, 0x13)
        }
        (0, 2) => i(word_offset as i32, rs1_short, 2, rd_short, 0x03),
        (0, 6) => s(word_offset, rd_short, rs1_short),
        (1, 0) => i(imm6, rd, 0, rd, 0x13),
        (1, 1) => jump() | 1 << 7,
        (1, 2) => i(imm6, 0, 0, rd, 0x13),
        (1, 3) if rd == 2 => {
            let imm = bits(12, 12) << 9
                | bits(6, 6) << 4
                | bits(5, 5) << 6
                | bits(4, 3) << 7
                | bits(2, 2) << 5;
            i((imm << 22) as i32 >> 22, 2, 0, 2, 0x13)
        }
        (1, 3) => (imm6 as u32) << 12 | rd << 7 | 0x37,
        (1, 4) => match (bits(11, 10), bits(12, 12), bits(6, 5)) {
            (0, ..) => i(rs2 as i32, rs1_short, 5, rs1_short, 0x13),
            (1, ..) => i(rs2 as i32 | 0x400, rs1_short, 5, rs1_short, 0x13),
            (2, ..) => i(imm6, rs1_short, 7, rs1_short, 0x13),
            (_, 0, 0) => r(0x20, rd_short, rs1_short, 0, rs1_short),
            (_, 0, 1) => r(0, rd_short, rs1_short, 4, rs1_short),
            (_, 0, 2) => r(0, rd_short, rs1_short, 6, rs1_short),
            (_, 0, 3) => r(0, rd_short, rs1_short, 7, rs1_short),
            _ => return None,
        },
        (1, 5) => jump(),
        (1, 6) => branch(0),
        (1, 7) => branch(1),
        (2, 0) => i(rs2 as i32, rd, 1, rd, 0x13),
        (2, 2) => {
            let imm = bits(12, 12) << 5 | bits(6, 4) << 2 | bits(3, 2) << 6;
            i(imm as i32, 2, 2, rd, 0x03)
        }
        (2, 4) => match (bits(12, 12), rs2) {
            (0, 0) => i(0, rd, 0, 0, 0x67),
            (0, _) => r(0, rs2, 0, 0, rd),
            (_, 0) => i(0, rd, 0, 1, 0x67),
            (_, _) => r(0, rs2, rd, 0, rd),
        },
        (2, 6) => s(bits(12, 9) << 2 | bits(8, 7) << 6, rs2, 2),
        _ => return None,
    })
}
