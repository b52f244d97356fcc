//! The macro that turns the table into types, and the types that describe a function.

/// A function of the owner's protocol, as data: what dispatch and client need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// The name on the wire.
    pub name: &'static str,
    /// The callers who may call it.
    pub access: Access,
    /// The first version of the protocol that has it.
    pub since: u16,
}

/// The rest of the table, for generators: apart, so that no device carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionDescription {
    /// The type of the request, empty if there is none.
    pub request: &'static str,
    /// The type of the answer, `()` if it is empty.
    pub response: &'static str,
    /// Its work, a line of text each.
    pub documentation: &'static [&'static str],
}

/// The callers of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The device's owner, by the key of the session.
    Owner,
    /// The holder of a request that a tenant signed, in any session, or who has shown one in it; the function
    /// checks the signature.
    Tenant,
    /// Anybody who reaches the device.
    Anybody,
}

impl Access {
    /// Whether `caller` may call a function with this access.
    pub const fn permits(self, caller: Caller) -> bool {
        match self {
            Self::Owner => matches!(caller, Caller::Owner),
            Self::Tenant | Self::Anybody => true,
        }
    }
}

/// The caller, as the session has proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The device's owner.
    Owner,
    /// The holder of any other key.
    Stranger,
}

/// A set of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Functions(u128);

impl Functions {
    /// Those whose places in the table are listed.
    pub(super) const fn at(places: &[usize]) -> Self {
        let (mut set, mut next) = (0, 0);
        while next < places.len() {
            set |= 1 << places[next];
            next += 1;
        }
        Self(set)
    }

    /// Whether the function at `place` is one of them.
    pub(super) const fn has(self, place: usize) -> bool {
        self.0 >> place & 1 == 1
    }

    /// Those of either set.
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Those that aren't in `others`.
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }
}

macro_rules! access {
    (owner) => {
        $crate::control::Access::Owner
    };
    (tenant) => {
        $crate::control::Access::Tenant
    };
    (anybody) => {
        $crate::control::Access::Anybody
    };
}
pub(super) use access;

/// The type of a request in a signature.
macro_rules! request_type {
    () => {
        ()
    };
    (raw) => {
        &[u8]
    };
    ($request:ty) => {
        $request
    };
}
pub(super) use request_type;

/// Reads a request, or leaves the function with [`ControlError::Malformed`](super::ControlError).
macro_rules! read_request {
    ($bytes:ident;) => {
        ()
    };
    ($bytes:ident; raw) => {
        $bytes
    };
    ($bytes:ident; $request:ty) => {
        match $crate::message::decode::<$request>($bytes) {
            Ok(request) => request,
            Err(_) => {
                return $crate::control::encode_answer::<()>(&Err(
                    $crate::control::ControlError::Malformed,
                ));
            }
        }
    };
}
pub(super) use read_request;

/// Writes a request.
macro_rules! write_request {
    ($request:ident;) => {{
        let () = $request;
        alloc::vec::Vec::new()
    }};
    ($request:ident; raw) => {
        $request.to_vec()
    };
    ($request:ident; $type:ty) => {
        $crate::message::encode(&$request)
    };
}
pub(super) use write_request;

macro_rules! control_functions {
    ($(
        $(#[doc = $documentation:literal])*
        $name:ident($($request:tt)*) -> $response:ty; $access:ident, since $since:literal;
    )*) => {
        /// A function of the owner's protocol.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Function {
            $($(#[doc = $documentation])* $name),*
        }

        impl Function {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Its row of the table.
            pub const fn info(self) -> &'static FunctionInfo {
                &TABLE[self as usize]
            }

            /// Its name on the wire.
            pub const fn name(self) -> &'static str {
                self.info().name
            }
        }

        /// Every function, in the order of [`Function`].
        pub const TABLE: &[FunctionInfo] = &[
            $(FunctionInfo {
                name: stringify!($name),
                access: table::access!($access),
                since: $since,
            }),*
        ];

        /// The description of each function, in the same order.
        pub const DESCRIPTIONS: &[FunctionDescription] = &[
            $(FunctionDescription {
                request: stringify!($($request)*),
                response: stringify!($response),
                documentation: &[$($documentation),*],
            }),*
        ];

        impl Functions {
            /// All of the table.
            pub const ALL: Self = Self::of(Function::ALL);

            /// Those that are listed.
            pub const fn of(functions: &[Function]) -> Self {
                let mut set = Self::at(&[]);
                let mut next = 0;
                while next < functions.len() {
                    set = set.and(Self::at(&[functions[next] as usize]));
                    next += 1;
                }
                set
            }
        }

        /// The functions as a device serves them. A function that isn't in [`Service::SERVES`] is
        /// answered [`ControlError::NoSuchFunction`].
        pub trait Service {
            /// The functions that are served; a device carries the code of no others.
            const SERVES: Functions;

            $(
                $(#[doc = $documentation])*
                ///
                /// # Errors
                /// As [`ControlError`] says.
                fn $name(&mut self, request: table::request_type!($($request)*)) -> Answer<$response> {
                    let _ = request;
                    Err(ControlError::NoSuchFunction)
                }
            )*
        }

        /// Serves one call to the device's own machine: looks the function up, checks that `caller`
        /// may call it, and returns the encoded answer.
        pub fn dispatch<S: Service>(
            service: &mut S,
            caller: Caller,
            name: &str,
            request: &[u8],
        ) -> Vec<u8> {
            $(
                if S::SERVES.has(Function::$name as usize) && name == stringify!($name) {
                    if !table::access!($access).permits(caller) {
                        return encode_answer::<()>(&Err(ControlError::NotOwner));
                    }
                    // Apart, so that the stack holds what one function needs, and not what each does.
                    #[inline(never)]
                    #[allow(unused_variables)]
                    fn serve<S: Service>(service: &mut S, request: &[u8]) -> Vec<u8> {
                        let request = table::read_request!(request; $($request)*);
                        encode_answer(&service.$name(request))
                    }
                    return serve(service, request);
                }
            )*
            // A stranger learns nothing of what a device can do.
            encode_answer::<()>(&Err(match caller {
                Caller::Owner => ControlError::NoSuchFunction,
                Caller::Stranger => ControlError::NotOwner,
            }))
        }

        /// The functions as an owner's tool calls them.
        pub trait Client {
            /// Why there is no answer.
            type Error;

            /// Calls `function` and waits for its answer, as [`dispatch`] encodes it.
            ///
            /// # Errors
            /// The device can't be reached.
            fn exchange(&mut self, function: Function, request: Vec<u8>) -> Result<Vec<u8>, Self::Error>;

            /// The error for an answer of the device that is none.
            fn refused(&self, function: Function, error: ControlError) -> Self::Error;

            $(
                $(#[doc = $documentation])*
                ///
                /// # Errors
                /// The device can't be reached, or refuses.
                fn $name(
                    &mut self,
                    request: table::request_type!($($request)*),
                ) -> Result<$response, Self::Error> {
                    let request = table::write_request!(request; $($request)*);
                    let answer = self.exchange(Function::$name, request)?;
                    decode_answer(&answer).map_err(|error| self.refused(Function::$name, error))
                }
            )*
        }
    };
}
pub(super) use control_functions;
