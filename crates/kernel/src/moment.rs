//! How instants are written down: in microseconds since boot.

use serde::{Deserialize, Deserializer, Serializer};
use tenure_hal::Instant;

pub(crate) fn serialize<S: Serializer>(at: &Instant, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(at.as_micros())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Instant, D::Error> {
    u64::deserialize(from).map(Instant::from_micros)
}

/// The same for an instant that may not be there.
pub(crate) mod optional {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use tenure_hal::Instant;

    pub(crate) fn serialize<S: Serializer>(at: &Option<Instant>, to: S) -> Result<S::Ok, S::Error> {
        at.map(Instant::as_micros).serialize(to)
    }

    pub(crate) fn deserialize<'de, D>(from: D) -> Result<Option<Instant>, D::Error>
    where
        D: Deserializer<'de>,
    {
        Ok(Option::<u64>::deserialize(from)?.map(Instant::from_micros))
    }
}
