//! The macros that turn the description into types, and the types that describe a host call.

use super::{GuestBuffer, GuestBytes, GuestText};

/// One host call, as data: what import checks and generators need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCallInfo {
    /// The number that stands for it in images.
    pub number: u16,
    /// The name that machines import.
    pub name: &'static str,
    /// Its parameters, in order.
    pub parameters: &'static [Parameter],
    /// The result.
    pub result: ResultKind,
}

impl HostCallInfo {
    /// Its work, a line of text each: for generators, and apart from the table, so that no device carries it.
    pub fn documentation(&self) -> &'static [&'static str] {
        let place = super::TABLE.iter().position(|call| call.number == self.number);
        place.map_or(&[], |place| super::DOCUMENTATION[place])
    }

    /// The wasm types of its parameters, in order.
    pub fn wasm_parameters(&self) -> impl Iterator<Item = WasmType> {
        self.parameters
            .iter()
            .flat_map(|parameter| core::iter::repeat_n(WasmType::I32, parameter.kind.slots()))
    }

    /// The wasm type of its result, if it has one.
    pub fn wasm_result(&self) -> Option<WasmType> {
        match self.result {
            ResultKind::Nothing => None,
            ResultKind::Status => Some(WasmType::I32),
            ResultKind::Time => Some(WasmType::I64),
        }
    }
}

/// The names by which components import host calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WitPackage {
    /// The package, without its version.
    pub package: &'static str,
    /// Its version: the second number changes when a call changes or goes, the third when one comes.
    pub version: &'static str,
    /// The interface that has all calls.
    pub interface: &'static str,
}

/// A parameter of a host call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in bindings.
    pub name: &'static str,
    /// The type.
    pub kind: ParameterKind,
}

/// The kinds of parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// An unsigned 32-bit number.
    Word,
    /// UTF-8 text: pointer and length.
    Text,
    /// Bytes: pointer and length.
    Bytes,
    /// Bytes, or nothing if the pointer is null.
    Optional,
    /// Room to write to: pointer and capacity.
    Buffer,
}

impl ParameterKind {
    /// How many wasm parameters it takes.
    pub const fn slots(self) -> usize {
        match self {
            Self::Word => 1,
            Self::Text | Self::Bytes | Self::Optional | Self::Buffer => 2,
        }
    }
}

/// The kinds of result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// None.
    Nothing,
    /// A signed 32-bit number: a length or count, or a negative error.
    Status,
    /// A signed 64-bit time.
    Time,
}

/// The value types of WebAssembly that host calls use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WasmType {
    /// A 32-bit integer.
    I32,
    /// A 64-bit integer.
    I64,
}

/// Takes the arguments of one call off the raw slots that the vm hands over.
pub(super) struct Slots<'a> {
    rest: core::slice::Iter<'a, u64>,
}

impl<'a> Slots<'a> {
    pub(super) fn new(slots: &'a [u64]) -> Self {
        Self { rest: slots.iter() }
    }

    /// The next slot; a missing one, which import checking rules out, reads as zero.
    fn next(&mut self) -> u32 {
        self.rest.next().map_or(0, |slot| *slot as u32)
    }
}

/// A kind of parameter as the kernel sees it.
pub(super) trait Argument {
    fn take(slots: &mut Slots<'_>) -> Self;

    /// The range of memory that it names, if it names one.
    fn range(&self) -> Option<GuestBytes>;
}

impl Argument for u32 {
    fn take(slots: &mut Slots<'_>) -> Self {
        slots.next()
    }

    fn range(&self) -> Option<GuestBytes> {
        None
    }
}

impl Argument for GuestBytes {
    fn take(slots: &mut Slots<'_>) -> Self {
        let pointer = slots.next();
        Self::new(pointer, slots.next())
    }

    fn range(&self) -> Option<GuestBytes> {
        Some(*self)
    }
}

impl Argument for Option<GuestBytes> {
    fn take(slots: &mut Slots<'_>) -> Self {
        Some(GuestBytes::take(slots)).filter(|bytes| !bytes.is_null())
    }

    fn range(&self) -> Option<GuestBytes> {
        *self
    }
}

impl Argument for GuestText {
    fn take(slots: &mut Slots<'_>) -> Self {
        Self(GuestBytes::take(slots))
    }

    fn range(&self) -> Option<GuestBytes> {
        Some(self.0)
    }
}

impl Argument for GuestBuffer {
    fn take(slots: &mut Slots<'_>) -> Self {
        Self(GuestBytes::take(slots))
    }

    fn range(&self) -> Option<GuestBytes> {
        Some(self.0)
    }
}

macro_rules! argument_type {
    (Word) => { u32 };
    (Text) => { $crate::host_call::GuestText };
    (Bytes) => { $crate::host_call::GuestBytes };
    (Optional) => { Option<$crate::host_call::GuestBytes> };
    (Buffer) => { $crate::host_call::GuestBuffer };
}
pub(super) use argument_type;

macro_rules! host_calls {
    ($(
        $(#[doc = $documentation:literal])*
        $number:literal => $name:ident($($parameter:ident: $kind:ident),*) -> $result:ident;
    )*) => {
        /// A host call with its arguments, as a machine made it; nothing in it has been checked.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum HostCall {
            $(
                $(#[doc = $documentation])*
                $name {
                    $(
                        #[doc = concat!("The parameter `", stringify!($parameter), "`.")]
                        $parameter: table::argument_type!($kind)
                    ),*
                }
            ),*
        }

        impl HostCall {
            /// The call with this number and these raw argument slots, or `None` if no call has
            /// the number.
            pub fn decode(number: u16, slots: &[u64]) -> Option<Self> {
                #[allow(unused_mut, unused_variables)]
                let mut slots = table::Slots::new(slots);
                match number {
                    $($number => Some(Self::$name {
                        $($parameter: table::Argument::take(&mut slots)),*
                    }),)*
                    _ => None,
                }
            }

            /// Hands over the ranges of memory that the machine alleges, in the order of the
            /// parameters.
            pub fn for_each_range(&self, mut each: impl FnMut(GuestBytes)) {
                match self {
                    $(Self::$name { $($parameter),* } => {
                        $(table::Argument::range($parameter).into_iter().for_each(&mut each);)*
                    })*
                }
            }
        }

        /// Every host call, in the order of their numbers.
        pub const TABLE: &[HostCallInfo] = &[
            $(HostCallInfo {
                number: $number,
                name: stringify!($name),
                parameters: &[
                    $(Parameter {
                        name: stringify!($parameter),
                        kind: ParameterKind::$kind,
                    }),*
                ],
                result: ResultKind::$result,
            }),*
        ];

        /// The documentation of each host call, in the same order.
        pub(crate) const DOCUMENTATION: &[&[&str]] = &[$(&[$($documentation),*]),*];
    };
}
pub(super) use host_calls;

macro_rules! host_errors {
    ($($(#[doc = $documentation:literal])* $name:ident = $code:literal, $text:literal;)*) => {
        /// Why a host call failed, as the machine sees it: a negative `Status`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[repr(i32)]
        pub enum HostError {
            $($(#[doc = $documentation])* $name = $code),*
        }

        impl HostError {
            /// Every error with its name and the first words of its meaning, for generators.
            pub const ALL: &[(Self, &str)] = &[$((Self::$name, stringify!($name))),*];

            /// The number that the machine receives.
            pub const fn code(self) -> i32 {
                self as i32
            }

            /// The error with this number.
            pub const fn from_code(code: i32) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }
        }

        impl core::fmt::Display for HostError {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(match self { $(Self::$name => $text),* })
            }
        }

        impl core::error::Error for HostError {}
    };
}
pub(super) use host_errors;
