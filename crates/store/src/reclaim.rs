//! Making room: what is live in the oldest sector is copied to the head of the log.
//!
//! Invariants:
//! - One sector at least is free between any two operations, and a reclaim needs no other: what is
//!   live in one sector fits into one sector.
//! - While no sector is free, a reclaim is under way: the newest sector holds nothing but copies of
//!   what still stands in the oldest, and a mount ignores it. Any other record in the newest sector
//!   says that the reclaim is done and the oldest is free.
//! - A deletion is dropped when the sector that it stands in is reclaimed: what it deleted is
//!   older, so it was there too or is gone already.

use tenure_hal::{Flash, FlashError};

use crate::catalogue::Catalogue;
use crate::error::RoomError;
use crate::log::{Entry, Log};
use crate::record::{Action, EMPTY_VALUE_CRC, Head, Origin};

/// How many sectors one write reclaims at most, as long as free sectors are left. Seven are enough
/// to pass once through a log of which seven eighths are live while an eighth is written.
const RECLAIMS_PER_SECTOR_MAX: u32 = 8;

/// The log, lent to have room made in it, and the catalogue of what is live there.
pub(crate) struct Reclaim<'s, F> {
    pub(crate) log: &'s mut Log<F>,
    pub(crate) catalogue: &'s mut Catalogue,
}

impl<F: Flash> Reclaim<'_, F> {
    /// Sees to it that `bytes` fit at the head of the log.
    pub(crate) fn make_room(&mut self, bytes: u32) -> Result<(), RoomError> {
        if self.log.head_room() >= bytes {
            return Ok(());
        }
        self.reclaim_ahead()?;
        let mut rounds = 2 * self.log.layout.geometry.sector_count;
        while self.log.head_room() < bytes {
            if self.log.free_sectors() >= 2 {
                self.log.open_sector()?;
            } else {
                rounds = rounds.checked_sub(1).ok_or(RoomError::Full)?;
                self.reclaim_oldest()?;
            }
        }
        Ok(())
    }

    /// Sees to it that all of `records` (their sizes) fit one after the other without a reclaim in
    /// between.
    pub(crate) fn make_room_for_all(
        &mut self,
        records: impl Iterator<Item = u32> + Clone,
    ) -> Result<(), RoomError> {
        let mut rounds = 2 * self.log.layout.geometry.sector_count;
        while self.log.sectors_to_open(records.clone()) >= self.log.free_sectors() {
            if self.log.oldest == self.log.newest {
                return Err(RoomError::Full);
            }
            rounds = rounds.checked_sub(1).ok_or(RoomError::Full)?;
            self.reclaim_oldest()?;
        }
        Ok(())
    }

    /// Reclaims some sectors before the last one is needed, so that no single write has to pass
    /// through a whole log that is nearly all live.
    fn reclaim_ahead(&mut self) -> Result<(), FlashError> {
        let plenty = self.log.layout.geometry.sector_count / 8 + 1;
        let sector_room = u64::from(self.log.layout.sector_room());
        for _ in 0..RECLAIMS_PER_SECTOR_MAX {
            let dead = self.log.used_bytes().saturating_sub(self.catalogue.charged());
            if self.log.free_sectors() > plenty || dead < sector_room {
                break;
            }
            self.reclaim_oldest()?;
        }
        Ok(())
    }

    /// Frees the oldest sector. A fault in the middle of it leaves the store unusable until it is
    /// mounted anew, which starts the reclaim over.
    fn reclaim_oldest(&mut self) -> Result<(), FlashError> {
        debug_assert!(self.log.oldest < self.log.newest, "the head can't be reclaimed into itself");
        let outcome = self.copy_oldest();
        self.log.or_fail(outcome)
    }

    fn copy_oldest(&mut self) -> Result<(), FlashError> {
        let mut walk = self.log.walk(self.log.oldest)?;
        while let Some(entry) = self.log.next(&mut walk)? {
            self.carry_over(&entry)?;
        }
        if self.log.free_sectors() == 0 {
            self.log.append(RECLAIMED, &[], &[])?;
        }
        self.log.oldest += 1;
        Ok(())
    }

    /// Copies a record of the oldest sector to the head, if it is live.
    fn carry_over(&mut self, entry: &Entry) -> Result<(), FlashError> {
        let Action::Set(_) = entry.head.action else {
            return Ok(());
        };
        self.catalogue.carry_over(self.log, entry, |log| {
            // A damaged value stays what it is, so that whoever asks for it learns that it is lost.
            let (value, _) = log.value(entry)?;
            let head = Head { origin: Origin::Copied, ..entry.head };
            log.append_anywhere(head, entry.path(), &value)
        })
    }
}

const RECLAIMED: Head = Head {
    action: Action::Reclaimed,
    origin: Origin::Alone,
    is_sealed: false,
    is_odd: false,
    tree: 0,
    path_length: 0,
    value_length: 0,
    value_crc: EMPTY_VALUE_CRC,
};
