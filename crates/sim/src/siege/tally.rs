//! The results of sieges: those that put nothing to the test show nothing.

use std::fmt;

use serde::Serialize;

/// The result of one siege.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Calls that the owner made and that were served.
    pub owner_served: u64,
    /// How long the owner waited at most, in milliseconds.
    pub owner_waited_ms_max: u64,
    /// How often the owner installed a machine during the siege.
    pub installed: u64,
    /// How often the owner read the whole list of machines during the siege.
    pub listed: u64,
    /// Calls of honest newcomers that were served.
    pub newcomers_served: u64,
    /// How long one of them waited at most, in milliseconds.
    pub newcomer_waited_ms_max: u64,
    /// Datagrams that attackers sent.
    pub hostile_datagrams: u64,
    /// Frames that a hostile member sent.
    pub frames: u64,
    /// How often the device lost its power.
    pub restarts: u64,
    /// Messages that were sealed, each under a nonce of its own; 0 in a build that doesn't watch.
    pub sealed: u64,
    /// Signatures that the device made and verified; 0 in a build that doesn't watch.
    pub signatures: u64,
    /// Bytes that the device programmed into its store.
    pub programmed_bytes: u64,
    /// How often it registered with its hub.
    pub registrations: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner_served, owner_waited_ms_max, newcomers_served, .. } = self;
        let Self { newcomer_waited_ms_max, hostile_datagrams, frames, sealed, .. } = self;
        let Self { signatures, programmed_bytes, registrations, restarts, .. } = self;
        write!(
            f,
            "{owner_served} calls of the owner, {owner_waited_ms_max} ms at most, {newcomers_served} of \
             newcomers, {newcomer_waited_ms_max} ms at most; {hostile_datagrams} hostile datagrams, \
             {frames} hostile frames, {restarts} restarts; {sealed} seals, {signatures} signatures, \
             {programmed_bytes} bytes programmed, {registrations} registrations"
        )
    }
}
