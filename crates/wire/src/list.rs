//! Lists as they come: no room is made for what a length only promises.
//!
//! serde's own lists reserve up to a megabyte for an alleged length, which a peer can have with a
//! message of a few kilobytes: more than the smallest devices have.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

/// Reads a list, for `#[serde(deserialize_with)]`.
pub(crate) fn read<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(List(PhantomData))
}

struct List<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = sequence.next_element()? {
            list.push(item);
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Name, PublicKey};
    use serde::de::value::{Error, SeqDeserializer};

    /// A list that alleges `length` items and has none.
    struct Empty(usize);

    impl<'de> SeqAccess<'de> for Empty {
        type Error = Error;

        fn next_element_seed<S: serde::de::DeserializeSeed<'de>>(
            &mut self,
            _: S,
        ) -> Result<Option<S::Value>, Error> {
            Ok(None)
        }

        fn size_hint(&self) -> Option<usize> {
            Some(self.0)
        }
    }

    #[test]
    fn an_alleged_length_reserves_nothing() {
        let list = List::<(Name, PublicKey)>(PhantomData).visit_seq(Empty(1 << 20)).unwrap();
        assert_eq!(list.capacity(), 0);
    }

    #[test]
    fn what_is_there_is_read_in_order() {
        let items = [1_u8, 2, 3].into_iter();
        assert_eq!(read::<_, u8>(SeqDeserializer::<_, Error>::new(items)).unwrap(), [1, 2, 3]);
    }
}
