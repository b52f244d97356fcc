//! The serde traits of a type whose one form outside of the program is its text.

/// Implements what `#[serde(try_from = "String", into = "String")]` asks for, from the type's
/// `FromStr` and `Display`, so that what is read was checked as text typed by a person is.
macro_rules! serialized_as_text {
    ($type:ty) => {
        impl TryFrom<alloc::string::String> for $type {
            type Error = <$type as core::str::FromStr>::Err;

            fn try_from(text: alloc::string::String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$type> for alloc::string::String {
            fn from(value: $type) -> Self {
                alloc::format!("{value}")
            }
        }
    };
}

pub(crate) use serialized_as_text;
