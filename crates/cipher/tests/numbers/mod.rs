//! Numbers that look random and that a failing test can repeat (splitmix64).

pub(crate) struct Numbers(u64);

#[allow(dead_code, reason = "each test uses what it needs")]
impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A length below `2^bits_max`, short ones as likely as long ones.
    pub(crate) fn len(&mut self, bits_max: u64) -> usize {
        let end = 1 << self.below(bits_max + 1);
        self.below(end) as usize
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}
