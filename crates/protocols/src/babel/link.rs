//! How good the link to a neighbour is (RFC 8966 §3.4 and appendix A: hellos, IHU, ETX).

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::NodeId;

use super::INFINITE;
use crate::forwarding::IN_CROWDS;
use crate::interface::LinkQuality;

/// The cost of a link that loses nothing.
pub(super) const COST_MIN: u16 = 64;
/// How many hellos are remembered.
const HISTORY: u32 = 32;
/// So many hellos missing in a row mean that the link is down, if it lost none before. For each
/// four of 32 that it did lose it may miss one more: a lossy link is no broken one.
const MISSED_MAX: u32 = 4;
const LOST_FOR_ONE_MORE: u32 = 4;
/// So many mean that another life of the neighbour may take its place, whichever that is.
const SILENT: u32 = 2;
/// So many hellos are due of a neighbour until it isn't new any more.
const NEW_HELLOS: u32 = 16;
/// So many hellos in a row that speak of fewer lines than are known mean that some were invented.
const LOWER_VERSIONS_MAX: u8 = 4;
/// Lines of a table that isn't whole for so long expire, as routes do (RFC 8966 §3.5.4), where those that are missing
/// aren't asked for. With a pause between hellos, by which it is seen, a lie of a neighbour's stays below 20 s.
const LINES_EXPIRE_AFTER: Duration = Duration::from_secs(15);
/// A neighbour of which something else came within this is there, though its hellos are missing: the air is full.
const HEARD_FOR: Duration = Duration::from_secs(3);
/// So many more mean that the neighbour is gone.
const GONE_AFTER: u32 = 4;
/// How often a neighbour that took no packet is asked for a sign of life, if the link loses nothing; and
/// once more for each such part of 255 that it loses there and back.
const DOUBTS_MAX: u8 = 4;
const LOST_FOR_ONE_MORE_DOUBT: u32 = 28;
/// A link that carries no packets is tried again after so many hellos, and then ever more rarely.
const RETRY_FIRST: u8 = 1;
const RETRY_MAX: u8 = 16;
/// A link that wasn't doubted for so many hellos is as good as one that never was.
const CALM_HELLOS: u8 = 32;
/// The share that a neighbour hears which has heard one thing.
const VOUCHED: u8 = 170;
/// So many gaps in a neighbour's table are known apart.
pub(super) const GAPS_MAX: usize = 4;
/// The assumption about a link before it is measured: so many hellos, of which so many came. It is a little
/// worse than the link may be, because a way that turns out shorter can always be used, and one that turns
/// out longer takes a newer sequence number.
const ASSUMED: u32 = 3;
const ASSUMED_HEARD: u32 = 2;
/// A neighbour isn't used of which fewer hellos came: the first may have come by luck.
const HEARD_MIN: u32 = 2;
/// A link that loses more in one direction is none.
const QUALITY_MIN: u8 = 40;

/// The facts about a neighbour and the link to it.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// Which of the neighbour's lives.
    pub boot: u32,
    /// The version up to which its table is known here.
    pub known: u32,
    /// The version of its table that it spoke of, and how often in a row it has spoken of a lower one since.
    pub version: u32,
    lower_versions: u8,
    /// Since when lines are missing.
    incomplete_since: Option<Instant>,
    /// Whether it spoke of a lower version than one of a line that came.
    is_contradicted: bool,
    /// Behind gaps, after which versions its table is known again, and up to which; in order.
    ahead: Vec<(u32, u32)>,
    /// When what is missing is asked for, and how often it was since the last that came of it.
    pub ask_at: Option<Instant>,
    pub asks: u8,
    /// One bit for each hello that was due, the latest lowest.
    history: u32,
    remembered: u32,
    /// The sequence number of the next hello.
    expected: u16,
    interval: Duration,
    due_at: Instant,
    /// When anything but a hello was heard of it, and whether that is little time ago.
    pub heard_at: Instant,
    is_heard: bool,
    /// The share of our hellos that the neighbour heard, of 255.
    heard_there: u8,
    /// Whether the neighbour can use few itself.
    pub is_lonely: bool,
    /// How often it was asked for an acknowledgment since a packet was not taken.
    doubts: u8,
    /// It gave none: what is for it alone doesn't arrive, or nothing comes back, whatever is heard of it. After so
    /// many of its hellos it is asked again.
    retry_in: Option<u8>,
    retry_pause: u8,
    /// How many of its hellos came since without doubt.
    calm_hellos: u8,
    /// The number of the acknowledgment that it is asked for.
    pub requested: Option<u16>,
    /// The cost that routes are computed with.
    pub cost: u16,
}

/// Notes that something other than a hello came of a neighbour.
pub(super) fn note_heard(links: &mut [(NodeId, Link)], neighbour: NodeId, now: Instant) {
    if !IN_CROWDS {
        return;
    }
    if let Ok(at) = links.binary_search_by_key(&neighbour, |(known, _)| *known) {
        links[at].1.heard_at = now;
    }
}

impl Link {
    /// A neighbour that is heard for the first time.
    pub(super) fn new(boot: u32, sequence: u16) -> Self {
        Self {
            boot,
            known: 0,
            version: 0,
            lower_versions: 0,
            incomplete_since: None,
            is_contradicted: false,
            ahead: Vec::new(),
            ask_at: None,
            asks: 0,
            history: 0,
            remembered: 0,
            expected: sequence,
            interval: Duration::ZERO,
            due_at: Instant::BOOT,
            heard_at: Instant::BOOT,
            is_heard: false,
            heard_there: 0,
            is_lonely: false,
            doubts: 0,
            retry_in: None,
            retry_pause: RETRY_FIRST,
            calm_hellos: 0,
            requested: None,
            cost: INFINITE,
        }
    }

    /// A hello was heard; the next one comes after `interval` (appendix A.1).
    pub(super) fn hello(&mut self, sequence: u16, interval: Duration, now: Instant) {
        let ahead = sequence.wrapping_sub(self.expected) as i16;
        if ahead >= 0 {
            self.shift(ahead.unsigned_abs().into());
        } else {
            // It was taken for lost, and wasn't.
            let early = u32::from(ahead.unsigned_abs()).min(HISTORY);
            self.history = self.history.checked_shr(early).unwrap_or(0);
            self.remembered = self.remembered.saturating_sub(early);
        }
        self.shift(1);
        self.history |= 1;
        self.expected = sequence.wrapping_add(1);
        self.interval = interval.max(Duration::from_millis(1));
        self.due_at = now + self.interval * 3 / 2;
        self.retry_in = self.retry_in.map(|hellos| hellos.saturating_sub(1));
        self.calm_hellos = self.calm_hellos.saturating_add(1);
        if self.calm_hellos >= CALM_HELLOS {
            self.retry_pause = RETRY_FIRST;
        }
    }

    /// The neighbour has told lines up to `version`. Returns whether it never told what was heard of it: it speaks of
    /// less and less than is known here, or did so and has come to those versions since, by other lines.
    pub(super) fn tells_up_to(&mut self, version: u32) -> bool {
        let learnt = self.ahead.last().map_or(self.known, |(_, until)| *until);
        if version < learnt {
            self.is_contradicted = true;
        } else if self.is_contradicted {
            self.version = version;
            return true;
        }
        if version >= self.version.max(learnt) {
            (self.version, self.lower_versions) = (version, 0);
            return false;
        }
        self.lower_versions += 1;
        if self.lower_versions >= LOWER_VERSIONS_MAX {
            self.version = version;
            return true;
        }
        false
    }

    /// Forgets which lines of the neighbour's table came: all are asked for again.
    pub(super) fn forget_lines(&mut self) {
        (self.known, self.lower_versions, self.is_contradicted) = (0, 0, false);
        self.incomplete_since = None;
        self.ahead.clear();
    }

    /// Whether lines have been missing for so long that those which came can't be relied on.
    pub(super) fn is_outdated(&mut self, now: Instant) -> bool {
        let is_incomplete = self.gaps().next().is_some();
        let since = self.incomplete_since.filter(|_| is_incomplete).unwrap_or(now);
        self.incomplete_since = is_incomplete.then_some(since);
        now.since(since) >= LINES_EXPIRE_AFTER
    }

    /// Whether all lines came that the neighbour told up to `version`, and none after it.
    pub(super) fn knows_up_to(&self, version: u32) -> bool {
        self.known == version && self.ahead.is_empty()
    }

    /// The lines of the neighbour's table came that it told after version `after`, up to version `to`.
    pub(super) fn learn(&mut self, after: u32, to: u32) {
        if to < after {
            return;
        }
        self.version = self.version.max(to);
        let first = self.ahead.partition_point(|(_, until)| *until < after);
        let count = self.ahead[first..].iter().take_while(|(from, _)| *from <= to).count();
        let (mut from, mut until) = (after, to);
        for (known_from, known_until) in self.ahead.drain(first..first + count) {
            (from, until) = (from.min(known_from), until.max(known_until));
        }
        self.ahead.insert(first, (from, until));
        while let Some((from, until)) = self.ahead.first().copied()
            && from <= self.known
        {
            self.known = self.known.max(until);
            self.ahead.remove(0);
        }
        // Lines behind the last gap that is kept are asked for once more.
        self.ahead.truncate(GAPS_MAX);
    }

    /// After which versions lines are missing, and up to which; at most [`GAPS_MAX`] times.
    pub(super) fn gaps(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let after = core::iter::once(self.known).chain(self.ahead.iter().map(|(_, until)| *until));
        let to = self.ahead.iter().map(|(from, _)| *from).chain(core::iter::once(self.version));
        after.zip(to).filter(|(after, to)| after < to).take(GAPS_MAX)
    }

    /// Whether lines are missing that may be asked for.
    pub(super) fn is_incomplete(&self) -> bool {
        self.cost < INFINITE && self.gaps().next().is_some()
    }

    /// The neighbour says which share of our hellos it hears (§3.4.2).
    pub(super) fn heard_there(&mut self, share: u8) {
        self.heard_there = share;
    }

    /// Counts hellos that are overdue.
    pub(super) fn expire(&mut self, now: Instant) {
        let mut counted = 0;
        self.is_heard = IN_CROWDS && now.since(self.heard_at) < HEARD_FOR;
        while self.due_at <= now && counted < HISTORY {
            self.shift(1);
            self.expected = self.expected.wrapping_add(1);
            self.due_at = self.due_at + self.interval;
            counted += 1;
        }
    }

    /// A packet was not taken by the neighbour, or an acknowledgment didn't come.
    pub(super) fn doubt(&mut self) {
        self.calm_hellos = 0;
        if self.retry_in.is_none() {
            self.doubts = self.doubts.saturating_add(1);
            if self.doubts > self.doubts_max() {
                self.give_up();
            }
        }
    }

    /// Datagrams to the neighbour were lost again and again.
    pub(super) fn give_up(&mut self) {
        (self.doubts, self.calm_hellos) = (0, 0);
        self.retry_in = Some(self.retry_pause);
        self.retry_pause = (self.retry_pause * 2).min(RETRY_MAX);
    }

    /// The neighbour acknowledged what was for it alone, and that came. That both hear each other's hellos isn't
    /// enough: there are links that carry what is for everybody, and nothing else.
    pub(super) fn trust(&mut self) {
        (self.doubts, self.calm_hellos) = (0, 0);
        (self.retry_in, self.requested) = (None, None);
    }

    /// The neighbour heard what was for everybody, and answered: the link carries that both ways, though no hellos
    /// may have shown it yet.
    pub(super) fn vouch(&mut self) {
        self.history |= (1 << HEARD_MIN) - 1;
        self.remembered = self.remembered.max(HEARD_MIN);
        self.heard_there = self.heard_there.max(VOUCHED);
    }

    /// Whether what is for the neighbour alone doesn't arrive, as far as is known.
    pub(super) fn is_given_up(&self) -> bool {
        self.retry_in.is_some()
    }

    /// Whether it is to be asked for an acknowledgment.
    pub(super) fn is_doubted(&self) -> bool {
        self.doubts > 0
    }

    /// Whether a link that carried no packets is to be tried again now.
    pub(super) fn is_to_be_retried(&mut self) -> bool {
        let is_due = self.retry_in == Some(0);
        if is_due {
            self.calm_hellos = 0;
            self.retry_in = Some(self.retry_pause);
            self.retry_pause = (self.retry_pause * 2).min(RETRY_MAX);
        }
        is_due
    }

    fn doubts_max(&self) -> u8 {
        let both = u32::from(self.heard_here()) * u32::from(self.heard_there) / 255;
        DOUBTS_MAX + ((255 - both) / LOST_FOR_ONE_MORE_DOUBT) as u8
    }

    /// Whether hellos are missing.
    pub(super) fn is_silent(&self) -> bool {
        self.missed() >= SILENT
    }

    /// Whether nothing has been heard for so long that the neighbour can be forgotten.
    pub(super) fn is_gone(&self) -> bool {
        self.missed() >= self.missed_max() + GONE_AFTER && !self.is_heard
    }

    /// Whether so few of its hellos were due that both may not know of each other yet.
    pub(super) fn is_new(&self) -> bool {
        !IN_CROWDS || self.remembered < NEW_HELLOS
    }

    /// How many hellos are missing since the last that came.
    fn missed(&self) -> u32 {
        self.history.trailing_zeros().min(self.remembered)
    }

    fn missed_max(&self) -> u32 {
        let missed = self.missed();
        let before = (self.remembered - missed).max(1);
        let lost = before.saturating_sub(self.history.count_ones());
        MISSED_MAX + lost * HISTORY / before / LOST_FOR_ONE_MORE
    }

    /// The share of the neighbour's hellos that are heard here, of 255.
    pub(super) fn heard_here(&self) -> u8 {
        let heard = self.history.count_ones() + ASSUMED_HEARD;
        (255 * heard / (self.remembered + ASSUMED)) as u8
    }

    /// How good the link is both ways.
    pub(super) fn quality(&self) -> LinkQuality {
        LinkQuality { to_us: self.heard_here(), from_us: self.heard_there, signal_dbm: None }
    }

    /// The present estimate of the cost: the expected number of transmissions (appendix A.2.2).
    fn estimate(&self) -> u16 {
        let (here, there) = (self.heard_here(), self.heard_there);
        if self.missed() >= self.missed_max() && !self.is_heard
            || self.retry_in.is_some()
            || here.min(there) < QUALITY_MIN
            || self.history.count_ones() < HEARD_MIN
        {
            return INFINITE;
        }
        let product = u32::from(here) * u32::from(there);
        (u32::from(COST_MIN) * 255 * 255 / product) as u16
    }

    /// Takes over the estimate as cost if it differs by more than a fifth, and says if it does: each
    /// change is passed on through the whole network.
    pub(super) fn renew_cost(&mut self) -> bool {
        let estimate = self.estimate();
        let is_other = match (estimate, self.cost) {
            (INFINITE, INFINITE) => false,
            (INFINITE, _) | (_, INFINITE) => true,
            (estimate, cost) => estimate.abs_diff(cost) > cost / 5,
        };
        if is_other {
            self.cost = estimate;
        }
        is_other
    }

    fn shift(&mut self, by: u32) {
        self.history = self.history.checked_shl(by).unwrap_or(0);
        self.remembered = (self.remembered + by).min(HISTORY);
    }
}
