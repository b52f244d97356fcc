//! Which message counters of a session were seen: the anti-replay window of RFC 6479.
//!
//! Invariants: a counter is accepted once; one that is [`WINDOW`] or more behind the highest is
//! never accepted.

/// How far messages may overtake one another.
pub(crate) const WINDOW: u64 = (BLOCKS as u64 - 1) * BLOCK_BITS;

const BLOCKS: usize = 5;
const BLOCK_BITS: u64 = u64::BITS as u64;

/// The counters that were seen. The blocks are a ring; the one that the highest counter enters is
/// cleared, which is why it doesn't count towards [`WINDOW`].
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplayWindow {
    next: u64,
    blocks: [u64; BLOCKS],
}

impl ReplayWindow {
    /// Whether a message with this counter may be accepted, once it has been authenticated.
    pub(crate) fn is_new(&self, counter: u64) -> bool {
        let behind = self.next.saturating_sub(counter);
        behind == 0
            || (behind <= WINDOW && self.blocks[block(counter)] >> (counter % BLOCK_BITS) & 1 == 0)
    }

    /// Whether the counter is higher than all that were seen.
    pub(crate) fn is_highest(&self, counter: u64) -> bool {
        counter >= self.next
    }

    /// Takes note of an authenticated message's counter, which [`Self::is_new`] must have allowed.
    pub(crate) fn record(&mut self, counter: u64) {
        if counter >= self.next {
            let current = self.next.saturating_sub(1) / BLOCK_BITS;
            let entered = (counter / BLOCK_BITS - current).min(BLOCKS as u64);
            for step in 1..=entered {
                self.blocks[((current + step) % BLOCKS as u64) as usize] = 0;
            }
            self.next = counter.saturating_add(1);
        }
        self.blocks[block(counter)] |= 1 << (counter % BLOCK_BITS);
    }
}

fn block(counter: u64) -> usize {
    (counter / BLOCK_BITS % BLOCKS as u64) as usize
}

#[cfg(test)]
mod tests;
