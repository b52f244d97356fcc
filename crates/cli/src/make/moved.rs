//! Where a program's code was before `tenure build` put more into it: DWARF tells of it by those addresses.
//!
//! A section of NAME.debug.wasm that no device gets, of pairs: by how much the place in the new code section's content is
//! further than the last one, and by how much that in the compiler's is, both in LEB128, the second one signed. Code that was
//! added, such as that of WASI's adapter, has an end alone: the last pair, at which the program's code is over.

use wasm_encoder::Encode as _;

/// The places of instructions, in order: in the new module, and in the compiler's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved(Vec<(u32, u32)>);

impl Moved {
    /// The section's name.
    pub(crate) const SECTION: &str = "tenure.moved";

    /// An instruction is now at `to`, and was at `from`.
    pub(super) fn push(&mut self, to: u32, from: u32) {
        self.0.push((to, from));
    }

    /// All places are further on by as much as the head of the section takes.
    pub(super) fn shift(&mut self, by: u32) {
        self.0.iter_mut().for_each(|(to, _)| *to += by);
    }

    /// The section's content.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut last = (0, 0);
        for (to, from) in &self.0 {
            (to - last.0).encode(&mut bytes);
            (i64::from(*from) - i64::from(last.1)).encode(&mut bytes);
            last = (*to, *from);
        }
        bytes
    }

    /// These places, where the program's own code had been moved to the places of `earlier` before.
    pub(super) fn behind(&self, earlier: &Self) -> Self {
        let mut all = Self::default();
        for (to, from) in &self.0 {
            let first = earlier.original((*from).into());
            all.push(*to, first.and_then(|first| u32::try_from(first).ok()).unwrap_or(0));
            // What was added comes last in both.
            if first.is_none() {
                break;
            }
        }
        all
    }

    /// Reads it; what is damaged ends it.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let mut reader = wasmparser::BinaryReader::new(bytes, 0);
        let mut moved = Self::default();
        let mut last = (0_u32, 0_i64);
        while !reader.eof() {
            let (Ok(to), Ok(from)) = (reader.read_var_u32(), reader.read_var_i64()) else { break };
            last = (last.0.saturating_add(to), last.1.saturating_add(from));
            moved.push(last.0, u32::try_from(last.1).unwrap_or(0));
        }
        moved
    }

    /// Where an address was in the program's own code, if it is of that.
    pub(crate) fn original(&self, address: u64) -> Option<u64> {
        let next = self.0.partition_point(|(to, _)| u64::from(*to) <= address);
        let is_last = next == self.0.len();
        let (_, from) = self.0.get(next.checked_sub(1)?)?;
        (!is_last).then_some(u64::from(*from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_survive_the_section_and_the_adapters_code_has_none() {
        let mut moved = Moved::default();
        for (to, from) in [(10, 4), (14, 6), (300, 290), (310, 200)] {
            moved.push(to, from);
        }
        assert_eq!(Moved::from_bytes(&moved.to_bytes()), moved);
        for (address, original) in
            [(9, None), (10, Some(4)), (13, Some(4)), (14, Some(6)), (305, Some(290)), (310, None)]
        {
            assert_eq!(moved.original(address), original, "{address}");
        }
    }

    #[test]
    fn code_that_was_moved_twice_is_found_where_it_was_at_first() {
        let (mut first, mut second) = (Moved::default(), Moved::default());
        for (to, from) in [(10, 4), (14, 6), (20, 0)] {
            first.push(to, from);
        }
        // What stands at 21 there was added by the first.
        for (to, from) in [(30, 10), (37, 14), (45, 21), (50, 23), (60, 0)] {
            second.push(to, from);
        }
        let both = second.behind(&first);
        for (address, original) in [
            (29, None),
            (30, Some(4)),
            (36, Some(4)),
            (37, Some(6)),
            (44, Some(6)),
            (45, None),
            (55, None),
        ] {
            assert_eq!(both.original(address), original, "{address}");
        }
    }
}
