//! The statements of devices about themselves, and their questions to the directory.
//!
//! A record is signed by its device and carries the owner's enrolment of that device, so it proves
//! itself wherever it is found: a directory can withhold a record, and can't forge one. Its number
//! only goes up and it expires, so an old one can't be brought back.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::datagram::Epoch;
use crate::list;
use crate::ownership::SignedSuccession;
use crate::{Address, MachineId, Name, PublicKey, Signature, VerifyingKey};

/// Functions that a directory machine offers, by their names on the wire.
pub mod function {
    /// Takes a [`super::SignedRecord`], gives a [`super::Registered`], a [message](crate::message) that grows.
    pub const REGISTER: &str = "register";
    /// Takes a [`super::Query`], gives a [`super::Found`], or null if nobody is known by that name.
    pub const RESOLVE: &str = "resolve";
    /// Takes a [`super::ListFrom`], gives a [`super::Listing`].
    pub const LIST: &str = "list";
    /// Takes a [`super::Reach`], gives a [`super::Reached`].
    pub const REACH: &str = "reach";
    /// Takes nothing, gives a [`super::Seen`].
    pub const SEEN: &str = "seen";
    /// Takes a [`super::Stay`], gives a [`super::Registered`], a [message](crate::message) that grows. Only of a directory
    /// that says so ([`super::Registered::takes_touches`]).
    pub const STAY: &str = "stay";
    /// Takes a [`super::Touch`], gives a [`super::Touched`], both [messages](crate::message) that grow. Of whoever said
    /// that it stays.
    pub const TOUCH: &str = "touch";
}

/// The owner's word that a device carries a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolment {
    /// The device's name.
    pub device: Name,
    /// The device's own key.
    pub device_key: VerifyingKey,
    /// Goes up with each enrolment of that name; the highest counts.
    pub number: u64,
}

/// A device's statement about itself, signed by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// The enrolment that makes the name its own.
    pub enrolment: Enrolment,
    /// The owner who signed the enrolment.
    pub owner: VerifyingKey,
    /// The owner's signature over the enrolment.
    pub enrolment_signature: Signature,
    /// Goes up with each record of this device.
    pub sequence: u64,
    /// When the record expires, in seconds since 1970 UTC.
    pub expires_unix_s: u64,
    /// The epoch that initiations of sessions must name; see `rpc`.
    pub epoch: Epoch,
    /// Where the device listens, beside the address that the directory saw it come from.
    #[serde(deserialize_with = "list::read")]
    pub addresses: Vec<Address>,
    /// The key of the device's own machine, which the owner talks to.
    pub device_machine: PublicKey,
    /// The machines on it that others may call.
    #[serde(deserialize_with = "list::read")]
    pub machines: Vec<(Name, PublicKey)>,
    /// The succession by which the owner holds the device, if another one held it before: whoever knows
    /// the device as the former owner's sees by it that the name goes on.
    pub succession: Option<SignedSuccession>,
}

/// A [`DeviceRecord`] as it was signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedRecord {
    /// A byte for the version of the format, and the record in postcard's encoding.
    pub bytes: Vec<u8>,
    /// The device's signature over these bytes.
    pub signature: Signature,
}

/// The directory's answer to a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registered {
    /// Why the record isn't in force; `None` if it is.
    pub refusal: Option<Refusal>,
    /// The wall clock of the directory, in seconds since 1970 UTC, for devices that have none.
    pub unix_s: u64,
    /// Of a record that is refused because it would be one too many ([`Refusal::Full`]): how many devices the directory lists
    /// at most. Directories of before don't say it, and neither does one whose disk is full.
    #[serde(default)]
    pub devices_max: Option<u32>,
    /// Whether the directory takes touches in the place of renewals ([`Stay`], [`Touch`]). Directories of before take none.
    #[serde(default)]
    pub takes_touches: bool,
}

/// A record that lasts for long, of a device that touches meanwhile: once it is silent it isn't listed any more, however long
/// its record lasts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stay {
    /// The record. Whoever reads this as a [`SignedRecord`] has it.
    pub record: SignedRecord,
    /// How long the device may be silent, in seconds.
    pub life_s: u32,
}

/// A device is there, and its record still says what it would say. The session proves whose word that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touch {
    /// The number of the record that the directory took from it last.
    pub sequence: u64,
}

/// The directory's answer to a [`Touch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touched {
    /// The wall clock of the directory, in seconds since 1970 UTC, for devices that have none.
    pub unix_s: u64,
    /// Whether the touch counts. If not, the directory wants the device's record: it has none, another one, or one from another
    /// address.
    pub counts: bool,
    /// Whether there may be work for the device: if not, it needn't ask ([`Work`](crate::rollout::Work)).
    pub may_have_work: bool,
}

/// Why a record is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// It can't be read, or a list in it is too long.
    Malformed,
    /// Its sender isn't the device.
    Sender,
    /// The device's signature is wrong.
    Signature,
    /// The owner's enrolment is wrong.
    Enrolment,
    /// The owner isn't one whom this directory, or this device, trusts.
    Owner,
    /// The name belongs to a device of another owner.
    NameTaken,
    /// A record or an enrolment with that or a higher number is known.
    Stale,
    /// It has expired, or lasts longer than is allowed.
    Expired,
    /// The directory has no room.
    Full,
    /// The directory lists as many devices of this owner, or from this address, as it takes.
    Quota,
    /// The device sends new records more often than the directory stores them.
    TooOften,
    /// The succession in it wasn't signed by the owner that it replaces, or is for another device or owner.
    Succession,
    /// The record's format is of a version that isn't read here.
    Version,
    /// The device's owner revoked it.
    Revoked,
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the record can't be read",
            Self::Sender => "somebody else than the device sent the record",
            Self::Signature => "the device's signature is wrong",
            Self::Enrolment => "the owner's enrolment is wrong",
            Self::Owner => "the device's owner isn't trusted here",
            Self::NameTaken => "the name belongs to a device of another owner",
            Self::Stale => "a newer record is known",
            Self::Expired => "by its clock the record is over or lasts too long: the clocks of device and hub differ",
            Self::Full => "the directory is full, or its disk is",
            Self::Revoked => "the device's owner revoked it",
            Self::Quota => {
                "the directory takes no more devices of this owner, or from this address"
            }
            Self::TooOften => "the device sends new records too often; it is accepted again soon",
            Self::Succession => {
                "the record's proof of who held the device before is wrong: it is for another device or \
                 owner, or forged"
            }
            Self::Version => {
                "the record's format is of another version; update the older of the two sides"
            }
        })
    }
}

impl core::error::Error for Refusal {}

/// The device or machine that is looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Query {
    /// The device of that name.
    Device(Name),
    /// The device that holds the machine with that id.
    Id(MachineId),
    /// The device that holds the machine with that key.
    Key(PublicKey),
}

/// A record that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The record.
    pub record: SignedRecord,
    /// Where the directory last heard from the device.
    pub seen_at: Address,
}

/// The question how a device can be reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// Whom it is about.
    pub query: Query,
    /// The asking one's word whose it is; a device needs none, as its record says so.
    pub asker: Option<Asker>,
}

/// The word of an owner that a session with a hub is its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asker {
    /// The owner's key.
    pub owner: VerifyingKey,
    /// The signature of this key over the [`AskerStatement`].
    pub signature: Signature,
}

/// What an [`Asker`] signs. It counts in one session's key with one hub alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskerStatement {
    /// The hub's key.
    pub hub: PublicKey,
    /// The caller's key in its sessions with the hub.
    pub session: PublicKey,
}

/// How a device can be reached, as its directory knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Its record, and where it was last heard from; `None` if nobody is known by that name.
    pub found: Option<Found>,
    /// Whether it answers others than the directory there; `None` as long as the directory hasn't looked.
    pub answers_others: Option<bool>,
    /// The number of the way by which the directory relays to it.
    pub relayed: Result<[u8; 8], NotRelayed>,
}

/// Why a hub doesn't relay to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NotRelayed {
    /// It relays for nobody.
    Never,
    /// It relays between an owner and its devices alone.
    Stranger,
    /// The asking one's word doesn't prove whose it is.
    Signature,
    /// The device has no session with this hub now.
    Away,
    /// It relays for as many as it can.
    Busy,
}

/// A caller, as the directory sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Where the call came from: if the caller is behind a router, the router's address.
    pub from: Address,
    /// The wall clock of the directory, in seconds since 1970 UTC.
    pub unix_s: u64,
}

/// From which machine on to list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListFrom {
    /// How many machines to skip.
    pub skip: u32,
}

/// Machines that the directory knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// A page of them.
    #[serde(deserialize_with = "list::read")]
    pub machines: Vec<ListedMachine>,
    /// How many there are in all.
    pub total: u32,
}

/// One machine of a [`Listing`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedMachine {
    /// Its name.
    pub machine: Name,
    /// Its device's name.
    pub device: Name,
    /// Its key.
    pub key: PublicKey,
}
