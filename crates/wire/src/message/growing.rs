//! Structs inside messages that grow by themselves: each is preceded by its length in bytes.
//!
//! For `#[serde(with = "growing")]` and its two modules for lists and options. In formats for people
//! the fields are as without it.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};

/// Writes a struct with its length.
///
/// # Errors
/// The serializer's.
pub fn serialize<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        return value.serialize(serializer);
    }
    let bytes = postcard::to_allocvec(value).map_err(S::Error::custom)?;
    serializer.serialize_bytes(&bytes)
}

/// Reads a struct with its length.
///
/// # Errors
/// The deserializer's, or its bytes are no such struct.
pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    if deserializer.is_human_readable() {
        return T::deserialize(deserializer);
    }
    let bytes = <&[u8]>::deserialize(deserializer)?;
    super::decode(bytes).map_err(D::Error::custom)
}

/// A struct with its length.
struct Growing<T>(T);

impl<T: Serialize> Serialize for Growing<&T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self.0, serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Growing<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer).map(Self)
    }
}

/// For `Vec<T>`: each item has its length.
pub mod list {
    use super::*;

    /// Writes a list.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<T: Serialize, S: Serializer>(
        items: &[T],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(items.iter().map(Growing))
    }

    /// Reads a list; no room is made for items that aren't there.
    ///
    /// # Errors
    /// The deserializer's, or an item can't be read.
    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(Items(PhantomData))
    }

    struct Items<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
            let mut items = Vec::new();
            while let Some(Growing(item)) = sequence.next_element()? {
                items.push(item);
            }
            Ok(items)
        }
    }
}

/// For `Option<T>`: the value, if there is one, has its length.
pub mod option {
    use super::*;

    /// Writes an option.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<T: Serialize, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(Growing).serialize(serializer)
    }

    /// Reads an option.
    ///
    /// # Errors
    /// The deserializer's, or the value can't be read.
    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        let value = Option::<Growing<T>>::deserialize(deserializer)?;
        Ok(value.map(|Growing(value)| value))
    }
}
