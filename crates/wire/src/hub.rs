//! A hub's functions beside the directory: signing in to its pages and its API, taking receipts, and the work of
//! rollouts ([`rollout`](crate::rollout)), devices' reports ([`report`](crate::report)) and their logs
//! ([`live_log`](crate::live_log)).

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{Name, PublicKey, Signature, VerifyingKey, list};

/// Functions that a hub offers beside those of [`crate::directory`], by their names on the wire.
pub mod function {
    /// Takes a [`super::SignIn`], returns a [`super::Answer`] of a [`super::Pass`].
    pub const SIGN_IN: &str = "sign_in";
    /// Takes a [`super::Receipts`], returns a [`super::Answer`] of [`super::Taken`].
    pub const TAKE_RECEIPTS: &str = "take_receipts";
    /// Takes a [`super::Request`], returns an [`super::Answer`] of a [`super::Response`].
    pub const REQUEST: &str = "request";
    /// Takes a [`WorkQuery`](crate::rollout::WorkQuery), returns a [`super::Answer`] of a
    /// [`Work`](crate::rollout::Work).
    pub const WORK: &str = "work";
    /// Takes a [`PartQuery`](crate::rollout::PartQuery), returns a [`super::Answer`] of a
    /// [`Part`](crate::rollout::Part).
    pub const PART: &str = "part";
    /// Takes a [`Report`](crate::report::Report), returns an [`Answer`](super::Answer) of
    /// [`Reported`](crate::report::Reported).
    pub const REPORT: &str = "report";
    /// Takes a [`LogShare`](crate::live_log::LogShare), returns an [`Answer`](super::Answer) of a
    /// [`LogWish`](crate::live_log::LogWish).
    pub const LOG: &str = "log";
}

/// The answer to every function of a hub.
pub type Answer<T> = Result<T, HubRefusal>;

/// A key's holder asks for a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignIn {
    /// The key to sign in with: an owner's, a tenant's or a person's.
    pub key: VerifyingKey,
    /// The signature of this key over the [`SignInStatement`].
    pub signature: Signature,
    /// The pass that is asked for.
    pub access: Access,
}

/// The statement that is signed to sign in. It counts in one session with one hub alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignInStatement {
    /// The hub's key.
    pub hub: PublicKey,
    /// The caller's key in the session.
    pub session: PublicKey,
    /// The pass that is asked for.
    pub access: Access,
}

/// A kind of pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// A code that opens the pages in a browser, once, within two minutes.
    Page,
    /// A token for programs.
    Token {
        /// A name to tell it from others by.
        name: Name,
        /// For how many days it is good.
        days: u16,
        /// The parts of the API that it opens.
        #[serde(deserialize_with = "list::read")]
        scopes: Vec<Scope>,
    },
    /// A pass for [`function::REQUEST`] in this session alone, for ten minutes.
    Session,
    /// A code as of [`Access::Page`], by an invitation: the key is that person's from then on.
    Invitation {
        /// The invitation's code, which opens once.
        code: String,
    },
}

/// A part of a hub's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scope {
    /// Reads lists, bills and metrics.
    Read,
    /// Hands in receipts.
    Receipts,
    /// Pushes and deletes packages; pulls need [`Scope::Read`] or this one.
    Packages,
    /// Starts and steers rollouts.
    Rollouts,
    /// Ends the sign-ins and tokens of its key.
    Passes,
    /// Watches the logs of devices.
    Logs,
    /// Acknowledges alarms of rules.
    Alarms,
    /// Invites and dismisses the people of its key, and ends what they are signed in with.
    People,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::Receipts,
        Self::Packages,
        Self::Rollouts,
        Self::Passes,
        Self::Logs,
        Self::Alarms,
        Self::People,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Receipts => "receipts",
            Self::Packages => "packages",
            Self::Rollouts => "rollouts",
            Self::Passes => "passes",
            Self::Logs => "logs",
            Self::Alarms => "alarms",
            Self::People => "people",
        }
    }
}

impl core::str::FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or(UnknownScope)
    }
}

/// There is no such scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownScope;

impl core::fmt::Display for UnknownScope {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a scope is read, receipts, packages, rollouts, passes, logs, alarms or people")
    }
}

impl core::error::Error for UnknownScope {}

/// A request to the hub's HTTP API, made in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The secret of a pass for this session ([`Access::Session`]).
    pub pass: String,
    /// The method, as `POST`.
    pub method: String,
    /// The path with its parameters.
    pub path: String,
    /// The headers that matter.
    #[serde(deserialize_with = "list::read")]
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(deserialize_with = "list::read")]
    pub body: Vec<u8>,
}

/// The answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// The status, as `200`.
    pub status: u16,
    /// The headers that matter.
    #[serde(deserialize_with = "list::read")]
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(deserialize_with = "list::read")]
    pub body: Vec<u8>,
}

/// A secret that opens a hub's pages or its API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    /// The secret.
    pub secret: String,
    /// Where the hub's pages are.
    pub url: String,
}

/// Receipts that are handed in, each as its device signed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipts {
    /// Some of them, as many as fit a call.
    #[serde(deserialize_with = "list::read")]
    pub receipts: Vec<Vec<u8>>,
}

/// How many receipts a hub took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// Receipts that it didn't have yet.
    pub new: u32,
    /// Receipts that it had already.
    pub known: u32,
}

/// Why a hub refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HubRefusal {
    /// The parameter can't be read.
    Malformed,
    /// A signature is wrong.
    Signature,
    /// The key owns no device here, no receipt names it as a tenant, and it is no person's.
    UnknownKey,
    /// A receipt is of a device that isn't listed here, or of another owner than the device's.
    UnknownDevice,
    /// As many as are taken in a day, or as are good at once, were asked for already.
    TooMany,
    /// The hub can't store it.
    Full,
    /// The hub serves no pages.
    NoPages,
    /// The pass isn't good in this session, or not any more.
    Pass,
    /// The answer doesn't fit a reply.
    TooLong,
    /// The caller is no device that is listed here.
    Stranger,
    /// No step of a rollout that is under way on the device needs that package.
    NotNeeded,
    /// The key is known as a tenant alone, which opens less than the token that it asks for.
    TenantAlone,
    /// The hub's database can't be reached now.
    Away,
    /// The invitation isn't good, or not any more.
    Invitation,
    /// The key is an owner's or a person's here already.
    KnownKey,
    /// The person's role opens less than the token that is asked for.
    Role,
}

impl core::fmt::Display for HubRefusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the hub can't read it; use a tool of the hub's version",
            Self::Signature => "the signature is wrong",
            Self::UnknownKey => "the key owns no device at this hub, is no tenant of one, and no person's who was invited",
            Self::UnknownDevice => {
                "the receipt is of a device that isn't listed at this hub, or of another owner"
            }
            Self::TooMany => "the hub takes no more of that for now",
            Self::Full => "the hub can't store it",
            Self::NoPages => "the hub serves no pages; start it with --pages",
            Self::Pass => "the hub doesn't know this sign-in, or it is over",
            Self::TooLong => "the answer doesn't fit; ask for less at once",
            Self::Stranger => "the caller is no device that is listed at this hub",
            Self::NotNeeded => "no rollout that is under way on the device needs that package",
            Self::TenantAlone => "the key owns no device at this hub; as a tenant it gets tokens with the scopes read, receipts and passes",
            Self::Away => "the hub's database can't be reached now; try again",
            Self::Invitation => "the invitation isn't good, or isn't any more: it opens once, within a day; ask for another one",
            Self::KnownKey => "the key is an owner's or a person's at this hub already; sign in with it, or take another folder of keys (TENURE_HOME)",
            Self::Role => "the person's role opens less than that token; name fewer scopes with --scope",
        })
    }
}

impl core::error::Error for HubRefusal {}
