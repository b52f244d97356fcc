//! A firmware without touches: it renews its records, as every hub takes them.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_wire::directory::{Registered, SignedRecord, function};
use tenure_wire::message;

use super::Registration;
use crate::directory::Directory;
use crate::known_hub::KnownHub;
use crate::moment::Moment;
use crate::outbound::Outbound;
use crate::services::Services;

/// No touches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touching;

impl Touching {
    pub(super) const NONE: Self = Self;

    pub(super) fn lasts(&self, life: Duration) -> Duration {
        life
    }

    pub(super) fn registration(
        &mut self,
        record: SignedRecord,
        _: u64,
        _: Duration,
    ) -> (&'static str, Vec<u8>) {
        (function::REGISTER, message::encode(&record))
    }

    pub(super) fn stays(&self) -> bool {
        false
    }

    pub(super) fn registered(
        &mut self,
        _: Registered,
        _: Instant,
        hub: &KnownHub,
        life: Duration,
    ) -> Duration {
        hub.renew_in(life)
    }

    pub(super) fn give_up(&mut self) -> bool {
        false
    }

    pub(super) fn wakes_at(&self) -> Option<Instant> {
        None
    }
}

impl Registration {
    pub(super) fn touch<F>(
        &mut self,
        _: &mut Services<F>,
        _: (&mut Directory, &mut Outbound),
        _: &mut Moment<'_>,
    ) {
    }

    pub(crate) fn spoke(&mut self, _: Instant, _: Duration) {}

    pub(crate) fn takes_no_touches(&mut self, _: Instant) -> bool {
        false
    }
}
