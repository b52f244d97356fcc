//! The one way into a node and the one way out of it: what a board hands in, and what it takes out.
//!
//! A node's state changes by [`Door::take`] and [`Door::give`] alone, once it is set up. Beside them it reads
//! what its board lends it: flash, randomness, peripherals. Whoever writes down all of that can repeat the run.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tenure_hal::Instant;
#[cfg(feature = "reach")]
use tenure_kernel::{OutgoingVisit, Visited};
#[cfg(feature = "mesh")]
use tenure_mesh::{Destination, NodeId, Parcel, Rejected, SatelliteNumber};
use tenure_wire::Address;
#[cfg(feature = "hub-addresses")]
use tenure_wire::PublicKey;
#[cfg(feature = "bridge")]
use tenure_wire::control::OutsideStatus;
use tenure_wire::control::{Answer, Client, ControlError, Function, MachineStatus};
#[cfg(feature = "bridge")]
use tenure_wire::{LogLevel, Topic};

use crate::moment::{Moment, Wake};
use crate::notice::Notice;
use crate::sleep::{Bedtime, SleepError};

/// An input of a node.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// It is time for a turn: the node does what is due and runs one slice of one machine.
    Turn,
    /// Time has passed. What is [given](Door::give) after it is what is due now.
    Time,
    /// A datagram that came from `from`.
    Datagram {
        /// Its sender.
        from: Address,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// A frame of the mesh.
    #[cfg(feature = "mesh")]
    Frame {
        /// Its bytes.
        bytes: &'a [u8],
        /// The strength of its signal, where the link knows it.
        signal_dbm: Option<i8>,
    },
    /// A frame for this neighbour wasn't acknowledged.
    #[cfg(feature = "mesh")]
    Undelivered(NodeId),
    /// An action that a protocol of the mesh on an executor of its own wants.
    #[cfg(feature = "mesh")]
    Parcel(Parcel),
    /// The device has a link into a mesh and asks whoever is in reach to be let in, until that happens.
    #[cfg(feature = "mesh")]
    Knock,
    /// A device is said to listen at this address on the same network; nobody proved that.
    #[cfg(feature = "discovery")]
    Neighbour(Address),
    /// The addresses at which the name of the hub is found now, in the order in which they are tried. A device whose settings
    /// named no address of its hub has one from then on.
    #[cfg(feature = "hub-addresses")]
    HubFound {
        /// At least one; none changes nothing.
        addresses: Vec<Address>,
        /// The hub's key, if it is pinned; of a hub that the settings named, they alone say so.
        key: Option<PublicKey>,
    },
    /// The end of a visit to a server outside.
    #[cfg(feature = "reach")]
    Visited(Visited),
    /// An event from a topic outside, which a rule of the owner's lets in.
    #[cfg(feature = "bridge")]
    Event {
        /// The topic that it is published under.
        topic: Topic,
        /// Its payload.
        payload: &'a [u8],
    },
    /// A line for the device's own log, of something that the board runs beside the node.
    #[cfg(feature = "bridge")]
    Remark {
        /// How grave.
        level: LogLevel,
        /// The line.
        message: &'a str,
    },
    /// The state of what the board runs beside the node, for the owner who asks.
    #[cfg(feature = "bridge")]
    Outside(Box<OutsideStatus>),
    /// A call to the device's own machine by whoever holds the device in hand, with the rights of its owner.
    Owner {
        /// Which function.
        function: Function,
        /// Its request, encoded.
        request: &'a [u8],
    },
    /// A package that is at hand, to be installed.
    Install {
        /// The package.
        package: &'a [u8],
        /// The placement that the owner signed.
        placement: &'a [u8],
    },
    /// Everything that was counted is to be written to flash, and periods that are over are to end: after this
    /// nothing that was used until now is lost with the power.
    Checkpoint,
    /// The board will turn the device off until then, where [`Bedtime`] didn't say when.
    WillSleepUntil(Instant),
    /// The board is about to turn the power off: the node writes down what that would lose. The board then sends
    /// what is left, which tells those whose calls are being served until when the device sleeps. A boot on the same
    /// flash continues where this was; the board's clock must run on meanwhile.
    FallAsleep,
}

/// A node's response to an [`Input`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Done.
    Done,
    /// The turn is over; the next one is due then.
    Wake(Wake),
    /// The frame came from this neighbour, or is refused.
    #[cfg(feature = "mesh")]
    Frame(Result<NodeId, Rejected>),
    /// The encoded answer of the device's own machine.
    Answer(Vec<u8>),
    /// The machine that was installed, or why it wasn't.
    Installed(Box<Answer<MachineStatus>>),
    /// Whether the device can be turned off.
    Asleep(Result<(), SleepError>),
}

/// An output of a node.
#[derive(Clone, Debug)]
pub enum Output {
    /// A datagram to send.
    Datagram {
        /// Its receiver.
        to: Address,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A frame of the mesh to send.
    #[cfg(feature = "mesh")]
    Frame {
        /// The neighbour that it is for, or all.
        to: Destination,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// An event for a protocol of the mesh on an executor of its own.
    #[cfg(feature = "mesh")]
    Parcel(Parcel),
    /// A visit to a server outside, which ends with [`Input::Visited`].
    #[cfg(feature = "reach")]
    Visit(OutgoingVisit),
    /// An event for topics outside.
    #[cfg(feature = "bridge")]
    Event {
        /// The topic that it was published under.
        topic: Topic,
        /// Its payload.
        payload: Vec<u8>,
        /// The machines that may have published it, one number for each set of them; 0 for the device itself.
        publishers: u64,
    },
    /// A notice to show, if anybody watches.
    Notice(Notice),
    /// The device is to start anew, with the firmware that has come; the board hands in a
    /// [`Checkpoint`](Input::Checkpoint) and resets.
    Restart,
    /// It is time to sleep; a board that can hands in [`FallAsleep`](Input::FallAsleep).
    Bedtime(Bedtime),
}

/// A kind of [`Output`], for a board that can take that kind now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlet {
    /// Datagrams.
    Datagrams,
    /// Frames of the mesh.
    #[cfg(feature = "mesh")]
    Frames,
    /// Events for protocols on that executor.
    #[cfg(feature = "mesh")]
    Parcels(SatelliteNumber),
    /// Visits to servers outside.
    #[cfg(feature = "reach")]
    Visits,
    /// Events for topics outside.
    #[cfg(feature = "bridge")]
    Events,
    /// Notices.
    Notices,
    /// The wish to start anew.
    Restart,
    /// The wish to sleep, once everything is sent.
    Bedtime,
}

/// A node as its board sees it: one function for all input and one for all output, and by these the shapes in which
/// boards ask most often.
pub trait Door {
    /// Takes one input at one moment.
    fn take(&mut self, moment: &mut Moment<'_>, input: Input<'_>) -> Taken;

    /// Returns the next output of one kind. It is what is due at the moment of the last input.
    fn give(&mut self, outlet: Outlet) -> Option<Output>;

    /// Has a [turn](Input::Turn), and returns when the next one is due.
    fn poll(&mut self, moment: &mut Moment<'_>) -> Wake {
        match self.take(moment, Input::Turn) {
            Taken::Wake(wake) => wake,
            _ => Wake::Now,
        }
    }

    /// Takes a datagram that came from `from`.
    fn receive(&mut self, moment: &mut Moment<'_>, from: Address, datagram: &[u8]) {
        self.take(moment, Input::Datagram { from, bytes: datagram });
    }

    /// The next datagram to send, and where to.
    fn transmit(&mut self) -> Option<(Address, Vec<u8>)> {
        match self.give(Outlet::Datagrams)? {
            Output::Datagram { to, bytes } => Some((to, bytes)),
            _ => None,
        }
    }

    /// Takes a frame of the mesh; returns the neighbour that sent it.
    ///
    /// # Errors
    /// Why it is refused; [`Rejected::NotForUs`] if the device has nothing to do with a mesh.
    #[cfg(feature = "mesh")]
    fn receive_frame(
        &mut self,
        moment: &mut Moment<'_>,
        bytes: &[u8],
        signal_dbm: Option<i8>,
    ) -> Result<NodeId, Rejected> {
        match self.take(moment, Input::Frame { bytes, signal_dbm }) {
            Taken::Frame(taken) => taken,
            _ => Err(Rejected::NotForUs),
        }
    }

    /// The next frame of the mesh to send, and whom it is for.
    #[cfg(feature = "mesh")]
    fn transmit_frame(&mut self) -> Option<(Destination, Vec<u8>)> {
        match self.give(Outlet::Frames)? {
            Output::Frame { to, bytes } => Some((to, bytes)),
            _ => None,
        }
    }

    /// The next visit to a server outside.
    #[cfg(feature = "reach")]
    fn visit(&mut self) -> Option<OutgoingVisit> {
        match self.give(Outlet::Visits)? {
            Output::Visit(visit) => Some(visit),
            _ => None,
        }
    }

    /// The next event for topics outside, with whose it is.
    #[cfg(feature = "bridge")]
    fn event(&mut self) -> Option<(Topic, Vec<u8>, u64)> {
        match self.give(Outlet::Events)? {
            Output::Event { topic, payload, publishers } => Some((topic, payload, publishers)),
            _ => None,
        }
    }

    /// The next notice, if anybody watches.
    fn notice(&mut self) -> Option<Notice> {
        match self.give(Outlet::Notices)? {
            Output::Notice(notice) => Some(notice),
            _ => None,
        }
    }

    /// Whether the device wants to start anew, with the firmware that has come.
    fn wants_restart(&mut self) -> bool {
        self.give(Outlet::Restart).is_some()
    }

    /// Whether it is time to sleep.
    fn bedtime(&mut self) -> Option<Bedtime> {
        match self.give(Outlet::Bedtime)? {
            Output::Bedtime(bedtime) => Some(bedtime),
            _ => None,
        }
    }

    /// Installs a package that is at hand.
    ///
    /// # Errors
    /// As [`ControlError`] says; the device is as before then.
    fn install(
        &mut self,
        moment: &mut Moment<'_>,
        package: &[u8],
        placement: &[u8],
    ) -> Answer<MachineStatus> {
        match self.take(moment, Input::Install { package, placement }) {
            Taken::Installed(installed) => *installed,
            _ => Err(ControlError::NoSuchFunction),
        }
    }

    /// Writes down what a sleep with the power off would lose: see [`Input::FallAsleep`].
    ///
    /// # Errors
    /// As [`SleepError`] says; the node is awake then and can be polled on.
    fn fall_asleep(&mut self, moment: &mut Moment<'_>) -> Result<(), SleepError> {
        match self.take(moment, Input::FallAsleep) {
            Taken::Asleep(asleep) => asleep,
            _ => Ok(()),
        }
    }

    /// The device's own machine, as its owner calls it, for whoever holds the device in hand.
    fn as_owner<'a, 'm>(&'a mut self, moment: &'a mut Moment<'m>) -> AsOwner<'a, 'm, Self>
    where
        Self: Sized,
    {
        AsOwner { door: self, moment }
    }
}

/// Calls a device's own machine through its [`Door`], with the rights of its owner: see [`Input::Owner`].
pub struct AsOwner<'a, 'm, D> {
    door: &'a mut D,
    moment: &'a mut Moment<'m>,
}

impl<D: Door> Client for AsOwner<'_, '_, D> {
    type Error = ControlError;

    fn exchange(&mut self, function: Function, request: Vec<u8>) -> Answer<Vec<u8>> {
        match self.door.take(self.moment, Input::Owner { function, request: &request }) {
            Taken::Answer(answer) => Ok(answer),
            _ => Err(ControlError::NoSuchFunction),
        }
    }

    fn refused(&self, _: Function, error: ControlError) -> ControlError {
        error
    }
}
