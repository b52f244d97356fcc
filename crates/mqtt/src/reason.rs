//! Reason codes (§2.4), with their names in the standard.

use core::fmt;

/// A reason code. From 128 on it says that something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason(pub u8);

impl Reason {
    /// Success, or a normal disconnection.
    pub const SUCCESS: Self = Self(0x00);
    /// A disconnection after which the broker publishes the will.
    pub const WITH_WILL: Self = Self(0x04);
    pub(crate) const MALFORMED: Self = Self(0x81);
    pub(crate) const PROTOCOL: Self = Self(0x82);
    pub(crate) const NO_SUCH_ID: Self = Self(0x92);
    pub(crate) const TOO_MANY: Self = Self(0x93);
    pub(crate) const ALIAS: Self = Self(0x94);
    pub(crate) const TOO_LONG: Self = Self(0x95);
    pub(crate) const NO_SHARED: Self = Self(0x9E);
    pub(crate) const NO_WILDCARDS: Self = Self(0xA2);

    /// Whether something failed.
    pub const fn is_failure(self) -> bool {
        self.0 >= 0x80
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            0x00 => "success",
            0x04 => "disconnect with will message",
            0x80 => "unspecified error",
            0x81 => "malformed packet",
            0x82 => "protocol error",
            0x83 => "implementation specific error",
            0x84 => "unsupported protocol version",
            0x85 => "client identifier not valid",
            0x86 => "bad user name or password",
            0x87 => "not authorized",
            0x88 => "server unavailable",
            0x89 => "server busy",
            0x8A => "banned",
            0x8B => "server shutting down",
            0x8C => "bad authentication method",
            0x8D => "keep alive timeout",
            0x8E => "session taken over",
            0x8F => "topic filter invalid",
            0x90 => "topic name invalid",
            0x91 => "packet identifier in use",
            0x92 => "packet identifier not found",
            0x93 => "receive maximum exceeded",
            0x94 => "topic alias invalid",
            0x95 => "packet too large",
            0x96 => "message rate too high",
            0x97 => "quota exceeded",
            0x98 => "administrative action",
            0x99 => "payload format invalid",
            0x9A => "retain not supported",
            0x9B => "QoS not supported",
            0x9C => "use another server",
            0x9D => "server moved",
            0x9E => "shared subscriptions not supported",
            0x9F => "connection rate exceeded",
            0xA0 => "maximum connect time",
            0xA1 => "subscription identifiers not supported",
            0xA2 => "wildcard subscriptions not supported",
            code => return write!(f, "reason {code:#04x}"),
        })
    }
}
