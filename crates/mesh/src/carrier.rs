//! A link under a stack: where its neighbours are, and frames to and from them.

use alloc::vec;
use alloc::vec::Vec;

use tenure_hal::{Instant, Link, LinkError};

use crate::NodeId;
use crate::dispatcher::Rejected;
use crate::event::Destination;
use crate::frame::Header;
use crate::plain::is_plain;

/// One of a node's links, and which neighbours it was that were heard on it.
///
/// Only a frame that a member made teaches an address, so nobody without the network's key can
/// draw a neighbour's frames to himself but by sending on a frame that wasn't heard before; and what
/// he has then is sealed. Plain frames, which are for strangers, go to the last one that was heard too.
#[derive(Debug)]
pub struct Carrier<L: Link> {
    link: L,
    reach: Reach<L::Address>,
    /// By id.
    neighbours: Vec<(NodeId, L::Address, Instant)>,
    neighbours_max: usize,
    /// Where the last plain frame came from, whoever sent it.
    stranger: Option<L::Address>,
    frame: Vec<u8>,
}

/// How a link reaches everybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach<A> {
    /// By one address: broadcast or multicast.
    ByOne(A),
    /// By sending to each: these, and whoever was heard.
    ByEach(Vec<A>),
}

/// A link is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarrierError;

impl core::fmt::Display for CarrierError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the link is broken")
    }
}

impl core::error::Error for CarrierError {}

impl<L: Link> Carrier<L> {
    /// A carrier over `link`, which reaches everybody as `reach` says.
    pub fn new(link: L, reach: Reach<L::Address>, neighbours_max: usize) -> Self {
        let frame = vec![0; link.datagram_bytes_max()];
        Self { link, reach, neighbours: Vec::new(), neighbours_max, stranger: None, frame }
    }

    /// The link itself.
    pub fn link(&self) -> &L {
        &self.link
    }

    /// The link itself, to be asked for what isn't the stack's.
    pub fn link_mut(&mut self) -> &mut L {
        &mut self.link
    }

    /// Where `neighbour` was heard last on this link.
    pub fn address(&self, neighbour: NodeId) -> Option<&L::Address> {
        let at = self.neighbours.binary_search_by_key(&neighbour, |known| known.0).ok()?;
        Some(&self.neighbours[at].1)
    }

    /// Hands the frames that have come to `take`, with the strength of their signal, `frames_max` at most. `take`
    /// says which member sent a frame, as [`Stack::receive`](crate::Stack::receive) does.
    /// Returns how many there were.
    ///
    /// # Errors
    /// [`CarrierError`].
    pub fn receive(
        &mut self,
        now: Instant,
        frames_max: usize,
        mut take: impl FnMut(&[u8], Option<i8>) -> Result<NodeId, Rejected>,
    ) -> Result<usize, CarrierError> {
        for count in 0..frames_max {
            self.frame.resize(self.link.datagram_bytes_max(), 0);
            match self.link.receive(&mut self.frame) {
                Ok(Some((length, from))) => {
                    let frame = core::mem::take(&mut self.frame);
                    let (bytes, signal_dbm) = (&frame[..length], self.link.signal_dbm());
                    let taken = take(bytes, signal_dbm);
                    if self.note(now, bytes, from.clone(), taken) == Err(Rejected::Plain) {
                        self.stranger = Some(from);
                    }
                    self.frame = frame;
                }
                Ok(None) => return Ok(count),
                Err(_) => return Err(CarrierError),
            }
        }
        Ok(frames_max)
    }

    /// Notes where a frame came from that was handed in beside [`Self::receive`], and was `taken` so.
    ///
    /// # Errors
    /// [`Rejected`]: what came is no frame that a member made for this node.
    pub fn note(
        &mut self,
        now: Instant,
        frame: &[u8],
        from: L::Address,
        taken: Result<NodeId, Rejected>,
    ) -> Result<(), Rejected> {
        match taken {
            Ok(neighbour) => self.learn(now, neighbour, from),
            // A member, but perhaps long ago: it proves that it lives if it can be asked.
            Err(Rejected::Unproven) => {
                if let Ok((header, _)) = Header::parse(frame) {
                    self.learn(now, header.number.sender, from);
                }
            }
            Err(rejected) => return Err(rejected),
        }
        Ok(())
    }

    /// Sends the frames that `next` writes, until there is none. One that the link doesn't take is lost, as it may
    /// be on the way; so a link that is busy never makes the node spin.
    ///
    /// # Errors
    /// [`CarrierError`].
    pub fn transmit(
        &mut self,
        mut next: impl FnMut(&mut Vec<u8>) -> Option<Destination>,
    ) -> Result<(), CarrierError> {
        let mut frame = core::mem::take(&mut self.frame);
        let mut sent = Ok(());
        while let Some(to) = next(&mut frame) {
            sent = sent.and(self.send(to, &frame));
        }
        self.frame = frame;
        sent
    }

    /// Sends a frame; to everybody if it is for a neighbour whose place isn't known, because a
    /// frame names whom it is for.
    ///
    /// # Errors
    /// [`CarrierError`].
    pub fn send(&mut self, to: Destination, frame: &[u8]) -> Result<(), CarrierError> {
        let one = match to {
            Destination::One(neighbour) => self.address(neighbour).cloned(),
            Destination::All => None,
        };
        let Self { link, reach, neighbours, stranger, .. } = self;
        let stranger = stranger.as_ref().filter(|_| is_plain(frame));
        let mut outcome = Ok(());
        let mut send = |address: &L::Address| {
            if link.send(address, frame) == Err(LinkError::Hardware) {
                outcome = Err(CarrierError);
            }
        };
        match (&one, &*reach) {
            (Some(one), _) | (None, Reach::ByOne(one)) => send(one),
            (None, Reach::ByEach(each)) => {
                each.iter().for_each(&mut send);
                // Several may have been heard at one address, as on a line.
                for (at, (_, address, _)) in neighbours.iter().enumerate() {
                    let mut before = neighbours[..at].iter().map(|(_, address, _)| address);
                    if !each.contains(address) && !before.any(|other| other == address) {
                        send(address);
                    }
                }
                let heard = || neighbours.iter().map(|(_, address, _)| address);
                let is_known =
                    |one: &&L::Address| each.contains(one) || heard().any(|it| it == *one);
                stranger.filter(|one| !is_known(one)).into_iter().for_each(send);
            }
        }
        outcome
    }

    fn learn(&mut self, now: Instant, neighbour: NodeId, address: L::Address) {
        let mut find = self.neighbours.binary_search_by_key(&neighbour, |known| known.0);
        if find.is_err() && self.neighbours.len() >= self.neighbours_max {
            let places = self.neighbours.iter().enumerate();
            if let Some((oldest, _)) = places.min_by_key(|(_, known)| known.2) {
                self.neighbours.remove(oldest);
            }
            find = self.neighbours.binary_search_by_key(&neighbour, |known| known.0);
        }
        match find {
            Ok(at) => self.neighbours[at] = (neighbour, address, now),
            Err(at) => self.neighbours.insert(at, (neighbour, address, now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure_hal::LinkError;

    use super::*;

    /// A link on which frames come without end.
    struct Flooded(usize);

    impl Link for Flooded {
        type Address = u32;

        fn datagram_bytes_max(&self) -> usize {
            250
        }

        fn send(&mut self, _: &u32, _: &[u8]) -> Result<(), LinkError> {
            Ok(())
        }

        fn receive(&mut self, into: &mut [u8]) -> Result<Option<(usize, u32)>, LinkError> {
            self.0 += 1;
            into.fill(0xA5);
            Ok(Some((into.len(), 7)))
        }
    }

    #[test]
    fn one_look_takes_no_more_frames_than_it_may_however_many_wait() {
        let mut carrier = Carrier::new(Flooded(0), Reach::ByOne(0), 4);
        let mut opened = 0;
        let taken = carrier.receive(Instant::BOOT, 8, |_, _| {
            opened += 1;
            Err(Rejected::Malformed)
        });
        assert_eq!((taken.ok(), opened, carrier.link().0), (Some(8), 8, 8));
    }
}
