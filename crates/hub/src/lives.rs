//! How long devices that touch are in force: as long as they may be silent, from when they were heard last. It is in memory, and
//! is stored for many devices at once, before what is stored of them ends.
//!
//! Invariants:
//! - A device has a life here from the record on by which it said that it stays, until it registers without that, or elsewhere.
//! - What is stored of a device that is heard ends no sooner than in [`STORED_BEFORE_S`], whenever that is looked at.
//! - A touch changes nothing but what is here.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tenure_directory::LIFETIME_S_MAX;
use tenure_wire::Name;

use crate::listed::Groups;
use crate::storage::{Heard, Left};

/// The shortest life, in seconds: a touch that is lost is sent again within it.
const LIFE_S_MIN: u32 = 15;
/// How long before its end what is stored is brought up to date, in seconds.
const STORED_BEFORE_S: u64 = 20;
/// The most devices that are stored at once.
pub(crate) const STORED_AT_ONCE: usize = 8 * 1024;
/// How long a device that was there when the hub ended counts as there after its start, in seconds.
const GRACE_S: u64 = 60;

/// The lives of the devices that touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lives {
    of: BTreeMap<Name, Life>,
    /// Those that are looked at once what is stored of them ends soon, by when that is.
    by_stored: Groups<u64>,
}

/// The life of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    /// How long the device may be silent, in seconds.
    life_s: u32,
    heard_unix_s: u64,
    ends_unix_s: u64,
    /// Its end as it is stored.
    stored_unix_s: u64,
    /// Whether it is in the order of what is stored.
    is_in_order: bool,
}

impl Lives {
    /// The end of a device's life; `None` for one that doesn't touch.
    pub(crate) fn end(&self, name: &Name) -> Option<u64> {
        self.of.get(name).map(|life| life.ends_unix_s)
    }

    /// The life of a device, if it touches.
    pub(crate) fn of(&self, name: &Name) -> Option<Life> {
        self.of.get(name).copied()
    }

    /// Has a device live as it did before; what is stored of it is what was.
    pub(crate) fn put_back(&mut self, name: &Name, life: Option<Life>) {
        match life {
            Some(life) => self.put(name, Life { is_in_order: true, ..life }),
            None => self.forget(name),
        }
    }

    /// The end of the life of a device that is heard at that moment and may be silent for so long.
    pub(crate) fn end_of(life_s: u32, unix_s: u64) -> u64 {
        unix_s.saturating_add(bounded(life_s).into())
    }

    /// A device stays from now on; its life is stored with its record.
    pub(crate) fn begin(&mut self, name: &Name, life_s: u32, unix_s: u64) {
        let ends_unix_s = Self::end_of(life_s, unix_s);
        let life = Life {
            life_s: bounded(life_s),
            heard_unix_s: unix_s,
            ends_unix_s,
            stored_unix_s: ends_unix_s,
            is_in_order: true,
        };
        self.put(name, life);
    }

    /// Takes up the life of a device as it was left in the storage. One that was there when the hub ended is there for a while
    /// still: nobody could hear it since.
    pub(crate) fn take_up(&mut self, left: &Left, unix_s: u64) {
        let Left { device, heard_unix_s, ends_unix_s: stored_unix_s, was_there } = left;
        let life_s = stored_unix_s.saturating_sub(*heard_unix_s).min(LIFETIME_S_MAX);
        let life_s = bounded(life_s as u32);
        let grace = unix_s.saturating_add(GRACE_S.min(life_s.into()));
        let ends_unix_s = if *was_there { grace.max(*stored_unix_s) } else { *stored_unix_s };
        let life = Life {
            life_s,
            // Whoever reads both in the storage takes their difference for its life.
            heard_unix_s: ends_unix_s.saturating_sub(life_s.into()).max(*heard_unix_s),
            ends_unix_s,
            stored_unix_s: *stored_unix_s,
            is_in_order: true,
        };
        self.put(device, life);
    }

    fn put(&mut self, name: &Name, life: Life) {
        self.forget(name);
        self.of.insert(name.clone(), life);
        self.by_stored.insert(life.stored_unix_s, name);
    }

    /// Takes note that a device was heard; returns the end of its life before and now, or `None` if it doesn't touch.
    pub(crate) fn hear(&mut self, name: &Name, unix_s: u64) -> Option<(u64, u64)> {
        let life = self.of.get_mut(name)?;
        let before = *life;
        (life.heard_unix_s, life.is_in_order) = (unix_s, true);
        life.ends_unix_s = Self::end_of(life.life_s, unix_s);
        if unix_s < before.heard_unix_s {
            // The clock went back: what was stored of a time that never came may be over.
            life.stored_unix_s = before.stored_unix_s.min(unix_s);
        }
        let now = *life;
        if !before.is_in_order || before.stored_unix_s != now.stored_unix_s {
            self.by_stored.remove(before.stored_unix_s, name);
            self.by_stored.insert(now.stored_unix_s, name);
        }
        Some((before.ends_unix_s, now.ends_unix_s))
    }

    /// A device doesn't touch any more, or is gone.
    pub(crate) fn forget(&mut self, name: &Name) {
        if let Some(life) = self.of.remove(name) {
            self.by_stored.remove(life.stored_unix_s, name);
        }
    }

    /// The devices that were heard and of which that is to be stored now. Those that weren't are looked at again once they are.
    pub(crate) fn due(&mut self, unix_s: u64) -> Vec<Heard> {
        let soon = 0..unix_s.saturating_add(STORED_BEFORE_S);
        let names: Vec<Name> = self.by_stored.within(soon).take(STORED_AT_ONCE).cloned().collect();
        let mut due = Vec::new();
        for device in names {
            let Some(life) = self.of.get_mut(&device) else { continue };
            self.by_stored.remove(life.stored_unix_s, &device);
            life.is_in_order = false;
            let Life { heard_unix_s, ends_unix_s, stored_unix_s, .. } = *life;
            if ends_unix_s > stored_unix_s {
                due.push(Heard { device, heard_unix_s, ends_unix_s });
            }
        }
        due
    }

    /// All devices that were heard and of which that isn't stored.
    pub(crate) fn unstored(&self) -> Vec<Heard> {
        let unstored = self.of.iter().filter(|(_, life)| life.ends_unix_s > life.stored_unix_s);
        let heard = unstored.map(|(device, Life { heard_unix_s, ends_unix_s, .. })| Heard {
            device: device.clone(),
            heard_unix_s: *heard_unix_s,
            ends_unix_s: *ends_unix_s,
        });
        heard.collect()
    }

    /// Takes note of whether those that were due are stored; if not, they are due again.
    pub(crate) fn stored(&mut self, due: &[Heard], is_stored: bool) {
        for Heard { device, ends_unix_s, .. } in due {
            let Some(life) = self.of.get_mut(device) else { continue };
            if core::mem::replace(&mut life.is_in_order, true) {
                self.by_stored.remove(life.stored_unix_s, device);
            }
            if is_stored {
                life.stored_unix_s = *ends_unix_s;
            }
            self.by_stored.insert(life.stored_unix_s, device);
        }
    }
}

/// A life within what is taken: no record lasts longer.
fn bounded(life_s: u32) -> u32 {
    life_s.clamp(LIFE_S_MIN, LIFETIME_S_MAX as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn names(heard: &[Heard]) -> Vec<&str> {
        heard.iter().map(|one| one.device.as_str()).collect()
    }

    #[test]
    fn device_that_touches_is_stored_once_in_most_of_its_life_and_one_that_is_silent_never() {
        let mut lives = Lives::default();
        for device in ["attic", "barn"] {
            lives.begin(&name(device), 60, NOW);
        }
        let mut stored = Vec::new();
        for second in 0..600 {
            let now = NOW + second;
            if second % 20 == 0 {
                lives.hear(&name("attic"), now);
            }
            let due = lives.due(now);
            let ends = lives.of[&name("attic")].stored_unix_s;
            assert!(ends >= now, "what is stored ended at {second}");
            stored.extend(due.iter().map(|one| (second, one.device.clone())));
            lives.stored(&due, true);
        }
        assert!(stored.iter().all(|(_, device)| device.as_str() == "attic"), "{stored:?}");
        assert!((10..=16).contains(&stored.len()), "{stored:?}");
        // The one that was silent isn't looked at again and again.
        assert!(!lives.of[&name("barn")].is_in_order);
        assert_eq!(lives.hear(&name("barn"), NOW + 600), Some((NOW + 60, NOW + 660)));
        assert_eq!(names(&lives.due(NOW + 600)), ["barn"]);
    }

    #[test]
    fn what_could_not_be_stored_is_due_again_and_what_was_heard_meanwhile_isn_t_lost() {
        let mut lives = Lives::default();
        lives.begin(&name("attic"), 60, NOW);
        lives.hear(&name("attic"), NOW + 40);
        let due = lives.due(NOW + 50);
        assert_eq!(names(&due), ["attic"]);
        assert!(lives.due(NOW + 50).is_empty(), "it is under way");
        lives.hear(&name("attic"), NOW + 51);
        lives.stored(&due, false);
        let due = lives.due(NOW + 52);
        assert_eq!(due[0].ends_unix_s, NOW + 111);
        lives.stored(&due, true);
        assert!(lives.due(NOW + 53).is_empty());
    }

    #[test]
    fn device_that_was_there_when_the_hub_ended_is_there_for_a_while_and_others_are_not() {
        let mut lives = Lives::default();
        let left = |device: &str, was_there| Left {
            device: name(device),
            heard_unix_s: NOW,
            ends_unix_s: NOW + 60,
            was_there,
        };
        lives.take_up(&left("attic", true), NOW + 75);
        lives.take_up(&left("barn", false), NOW + 75);
        assert_eq!(lives.end(&name("attic")), Some(NOW + 135));
        assert_eq!(lives.end(&name("barn")), Some(NOW + 60));
        let due = lives.due(NOW + 75);
        assert_eq!(names(&due), ["attic"], "others read it in the storage");
        assert_eq!(due[0].ends_unix_s - due[0].heard_unix_s, 60, "gates read its life there");
    }

    #[test]
    fn device_is_stored_at_once_where_the_clock_went_back() {
        let mut lives = Lives::default();
        lives.begin(&name("attic"), 60, NOW + 3_600);
        assert!(lives.due(NOW).is_empty(), "an hour is stored");
        assert_eq!(lives.hear(&name("attic"), NOW), Some((NOW + 3_660, NOW + 60)));
        let due = lives.due(NOW);
        assert_eq!((names(&due), due[0].ends_unix_s), (["attic"].to_vec(), NOW + 60));
        lives.stored(&due, true);
        assert!(lives.due(NOW + 20).is_empty());
    }

    #[test]
    fn life_that_somebody_claims_is_bounded() {
        let mut lives = Lives::default();
        for (life_s, ends) in [(0, NOW + 15), (u32::MAX, NOW + LIFETIME_S_MAX)] {
            lives.begin(&name("attic"), life_s, NOW);
            assert_eq!(lives.end(&name("attic")), Some(ends));
        }
        lives.forget(&name("attic"));
        assert_eq!((lives.end(&name("attic")), lives.hear(&name("attic"), NOW)), (None, None));
        assert!(lives.due(NOW + LIFETIME_S_MAX).is_empty());
    }
}
