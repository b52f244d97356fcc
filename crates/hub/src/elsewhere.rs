//! Devices that another hub on the same storage hears: only that one knows at once whether such a device is there, and the storage
//! soon after.
//!
//! Invariants:
//! - The storage is asked for a device at a look-up alone, [`LOOKS_PER_SECOND`] times at most, and not while this hub is late: its
//!   record counts then.
//! - What it says of a device counts until that is over.

use core::time::Duration;

use tenure_directory::Entry;
use tenure_hal::Instant;
use tenure_wire::PublicKey;
use tenure_wire::directory::Query;

use crate::storage::Storage;
use crate::touching::LATE;
use crate::{Hub, Moment};

/// How often the storage is asked.
pub(crate) const LOOKS_PER_SECOND: u32 = 10;
/// A record that lasts for longer than this, in seconds, says nothing of whether its device is still there.
const LASTING_S: u64 = 20 * 60;

impl<S: Storage> Hub<S> {
    /// The device that `query` asks for, for the device whose own machine is `asking`, unless nobody hears it any more.
    pub(crate) fn find(
        &mut self,
        moment: &Moment<'_>,
        asking: &PublicKey,
        query: &Query,
    ) -> Option<Entry> {
        let unix_s = moment.unix_time.seconds;
        let entry = self.listed.find_for(asking, query, unix_s)?.clone();
        is_heard(self, moment.now, &entry, unix_s).then_some(entry)
    }
}

fn is_heard<S: Storage>(hub: &mut Hub<S>, now: Instant, entry: &Entry, unix_s: u64) -> bool {
    let device = &entry.record.enrolment.device;
    let lasts = entry.record.expires_unix_s > unix_s.saturating_add(LASTING_S);
    if !lasts
        || hub.listed.touches(device)
        || hub.elsewhere.get(device).is_some_and(|ends| *ends >= unix_s)
    {
        return true;
    }
    hub.elsewhere_pace.fill(now, LOOKS_PER_SECOND, Duration::from_secs(1));
    if hub.elsewhere_pace.tokens() < 1 || hub.turn >= LATE {
        return true;
    }
    hub.elsewhere_pace.take(1);
    let Ok(Some(ends)) = hub.storage.ends(device) else { return true };
    if hub.elsewhere.len() >= hub.listed.table().count() {
        hub.elsewhere.clear();
    }
    hub.elsewhere.insert(device.clone(), ends);
    ends >= unix_s
}
