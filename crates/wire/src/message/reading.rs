//! A reader of structs that may end before their last field, or go on after it.

use serde::Deserializer;
use serde::de::{DeserializeSeed, SeqAccess, Visitor};

/// The bytes of a message. All but structs, and options of them, is read as postcard does.
pub(super) struct Message<'de> {
    pub(super) bytes: &'de [u8],
}

/// The fields of a struct, until the bytes end.
struct Fields<'de> {
    rest: &'de [u8],
}

impl<'de> SeqAccess<'de> for Fields<'de> {
    type Error = postcard::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Self::Error> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut field = postcard::Deserializer::from_bytes(self.rest);
        let value = seed.deserialize(&mut field)?;
        self.rest = field.finalize()?;
        Ok(Some(value))
    }
}

/// Hands a method over to postcard.
macro_rules! as_postcard {
    ($($method:ident($($name:ident: $type:ty),*);)*) => {
        $(
            fn $method<V: Visitor<'de>>(
                self,
                $($name: $type,)*
                visitor: V,
            ) -> Result<V::Value, Self::Error> {
                postcard::Deserializer::from_bytes(self.bytes).$method($($name,)* visitor)
            }
        )*
    };
}

impl<'de> Deserializer<'de> for Message<'de> {
    type Error = postcard::Error;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_seq(Fields { rest: self.bytes })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.bytes.split_first() {
            Some((0, _)) => visitor.visit_none(),
            Some((1, bytes)) => visitor.visit_some(Self { bytes }),
            _ => Err(postcard::Error::DeserializeBadOption),
        }
    }

    as_postcard! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(length: usize);
        deserialize_tuple_struct(name: &'static str, length: usize);
        deserialize_map();
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }
}
