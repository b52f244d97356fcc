//! Messages between the protocols of a node: requests and notifications that belong to none of
//! them.
//!
//! | number | what |
//! |---|---|
//! | `0x01xx` | neighbours and links |
//! | `0x02xx` | routes and datagrams |
//! | `0x03xx` | broadcast |
//! | `0x04xx` | members and records |
//! | `0x05xx` | aggregates |
//! | `0x06xx` | experiments |
//!
//! Protocol numbers, which frames carry: 1–31 are of neighbours, datagrams, broadcast, members and
//! experiments; 32–63 of routers and aggregation; from 128 on they are free for applications.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_mesh::{NodeId, Notification, Request};

/// How good a link is, both ways, in 255ths of the frames that arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkQuality {
    /// Of the neighbour's frames, as many arrive here.
    pub to_us: u8,
    /// Of this node's frames, as many arrive there.
    pub from_us: u8,
    /// How strong the neighbour's signal is in dBm, if the link knows.
    pub signal_dbm: Option<i8>,
}

impl LinkQuality {
    /// How often a frame is sent on average until it and its acknowledgement arrive, in 256ths (ETX:
    /// De Couto et al., MobiCom 2003). At least 256, and at most 65,535.
    pub fn etx(self) -> u16 {
        let both = u32::from(self.to_us) * u32::from(self.from_us);
        let etx = (256 * 255 * 255_u32).checked_div(both).unwrap_or(u32::MAX);
        u16::try_from(etx).unwrap_or(u16::MAX)
    }
}

/// A neighbour hears this node and is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkUp {
    /// The neighbour.
    pub neighbour: NodeId,
    /// How good the link is.
    pub quality: LinkQuality,
}

impl Notification for LinkUp {
    const NUMBER: u16 = 0x0101;
}

/// The quality of a link that is up has changed noticeably.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkChanged {
    /// The neighbour.
    pub neighbour: NodeId,
    /// How good the link is now.
    pub quality: LinkQuality,
}

impl Notification for LinkChanged {
    const NUMBER: u16 = 0x0102;
}

/// A neighbour isn't heard any more, or doesn't hear this node any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkDown {
    /// The neighbour.
    pub neighbour: NodeId,
}

impl Notification for LinkDown {
    const NUMBER: u16 = 0x0103;
}

/// A frame to a neighbour wasn't acknowledged after many repetitions: the link may be gone, sooner
/// than discovery can know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkFailing {
    /// The neighbour.
    pub neighbour: NodeId,
}

impl Notification for LinkFailing {
    const NUMBER: u16 = 0x0104;
}

/// A frame to a neighbour isn't acknowledged yet after a few repetitions: a protocol that can ask it for a
/// sign of life should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkDoubted {
    /// The neighbour.
    pub neighbour: NodeId,
}

impl Notification for LinkDoubted {
    const NUMBER: u16 = 0x0107;
}

/// A neighbour passes on what it is given for others, or doesn't: whoever chooses next hops should go around one
/// that doesn't, where there is another way. Told when that changes, and again when it turns out the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextHopRated {
    /// The neighbour.
    pub neighbour: NodeId,
    /// Whether what it is given comes further.
    pub passes_on: bool,
}

impl Notification for NextHopRated {
    const NUMBER: u16 = 0x0108;
}

/// A failure detector thinks that a neighbour has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspected {
    /// The neighbour.
    pub neighbour: NodeId,
}

impl Notification for Suspected {
    const NUMBER: u16 = 0x0105;
}

/// A failure detector was wrong, or the neighbour is back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trusted {
    /// The neighbour.
    pub neighbour: NodeId,
}

impl Notification for Trusted {
    const NUMBER: u16 = 0x0106;
}

/// Which neighbour is the next on the way to `destination`? Every router answers it, at once or
/// once it has found a way; which router runs is a matter of configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Where to.
    pub destination: NodeId,
}

impl Request for Route {
    const NUMBER: u16 = 0x0201;
    type Reply = Routed;
}

/// The answer to [`Route`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routed {
    /// The neighbour to give it to; `None` if there is no way.
    pub next_hop: Option<NodeId>,
    /// In which of its lives, counted by boots, the neighbour told what the way rests on; [`ANY_LIFE`]
    /// if the router doesn't tell lives apart. In another life it may have another way, and that one
    /// may lead back.
    pub life: u32,
}

/// A life that stands for all of them.
pub const ANY_LIFE: u32 = 0;

/// A router has another next hop for a destination than before. `None`: it can't be reached now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteChanged {
    /// Where to.
    pub destination: NodeId,
    /// By which neighbour.
    pub next_hop: Option<NodeId>,
}

impl Notification for RouteChanged {
    const NUMBER: u16 = 0x0202;
}

/// The purpose of a datagram: the receiver's protocols each take those of their own port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Port(pub u8);

impl Port {
    /// Nobody's: whether a datagram to it comes further is all that is asked.
    pub const NOTHING: Self = Self(0);
    /// Sessions between machines: what `rpc` sends.
    pub const RPC: Self = Self(1);
    /// Fragments of what is longer than a frame.
    pub const FRAGMENTS: Self = Self(2);
    /// Bodies that are acknowledged end to end.
    pub const RELIABLE: Self = Self(3);
    /// Records of the replicated directory.
    pub const RECORDS: Self = Self(4);
    /// Word between an experiment's director and its nodes.
    pub const EXPERIMENT: Self = Self(5);
    /// Bodies that are repaired after a broadcast.
    pub const REPAIRED: Self = Self(6);
    /// Announcements of members.
    pub const MEMBERS: Self = Self(7);
    /// Word between members of a large network.
    pub const VIEWS: Self = Self(8);
    /// Nothing: whoever gets it is to send its own record to [`Port::RECORDS`].
    pub const RECORD_WANTED: Self = Self(9);
    /// The messages of members about strangers that knock.
    pub const JOINING: Self = Self(10);
    /// The messages of members about records that they keep for each other.
    pub const LOOKUP: Self = Self(11);
    /// Bodies and their names on a tree of members.
    pub const TREE: Self = Self(12);
    /// The first one that is free for applications.
    pub const APPLICATION: Self = Self(128);
}

/// Send the body to a node anywhere in the mesh: each hop makes sure of the next one, and nobody
/// makes sure of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendDatagram {
    /// Where to; this node itself will do.
    pub to: NodeId,
    /// The purpose.
    pub port: Port,
}

impl Request for SendDatagram {
    const NUMBER: u16 = 0x0203;
    type Reply = Taken;
}

/// The fate of something that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Taken {
    /// It is under way.
    UnderWay,
    /// Too much is under way already.
    Full,
    /// It is too long.
    TooLong,
}

/// A datagram arrived, which is the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatagramArrived {
    /// The node that sent it.
    pub from: NodeId,
    /// The purpose.
    pub port: Port,
}

impl Notification for DatagramArrived {
    const NUMBER: u16 = 0x0204;
}

/// As [`SendDatagram`], of a body that may be longer than a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendLarge {
    /// Where to.
    pub to: NodeId,
    /// The purpose.
    pub port: Port,
}

impl Request for SendLarge {
    const NUMBER: u16 = 0x0205;
    type Reply = Taken;
}

/// Send the body to a node anywhere in the mesh until that node acknowledges it. It arrives once,
/// and in the order in which it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendReliably {
    /// Where to.
    pub to: NodeId,
    /// The purpose.
    pub port: Port,
}

impl Request for SendReliably {
    const NUMBER: u16 = 0x0206;
    type Reply = Acknowledged;
}

/// The fate of [`SendReliably`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Acknowledged {
    /// It has arrived.
    Yes,
    /// Nobody acknowledged it: it may have arrived.
    No,
    /// It wasn't sent: too much is under way already, or it is too long.
    NotSent,
}

/// Send the body to every node of the mesh, as well as the broadcast that runs can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publish {
    /// The purpose.
    pub port: Port,
}

impl Request for Publish {
    const NUMBER: u16 = 0x0301;
    type Reply = Taken;
}

/// A body came by broadcast, for the first time. Who sent it isn't told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// The node that sent it.
    pub from: NodeId,
    /// The purpose.
    pub port: Port,
}

impl Notification for Published {
    const NUMBER: u16 = 0x0302;
}

/// As [`Publish`], and what a hop lost is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishReliably {
    /// The purpose.
    pub port: Port,
}

impl Request for PublishReliably {
    const NUMBER: u16 = 0x0303;
    type Reply = Taken;
}

/// As [`Published`], of what was sent by [`PublishReliably`]; in no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedReliably {
    /// The node that sent it.
    pub from: NodeId,
    /// The purpose.
    pub port: Port,
}

impl Notification for PublishedReliably {
    const NUMBER: u16 = 0x0304;
}

/// The sum of all nodes' values, as far as this node knows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many nodes there are.
    pub count: f64,
    /// The sum of their values.
    pub sum: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

impl Summary {
    /// The mean value.
    pub fn average(&self) -> f64 {
        self.sum / self.count
    }
}

/// A question for the sum of all nodes' values. Every aggregation protocol answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summarise;

impl Request for Summarise {
    const NUMBER: u16 = 0x0501;
    /// `None` while too little is known.
    type Reply = Option<Summary>;
}

/// This node's own value is another one now.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contribute {
    /// The value. What isn't finite is refused.
    pub value: f64,
}

impl Contribute {
    /// The value, if it is one.
    pub fn accepted(&self) -> Option<f64> {
        Some(self.value).filter(|value| value.is_finite())
    }
}

impl Request for Contribute {
    const NUMBER: u16 = 0x0502;
    /// Whether it was taken.
    type Reply = bool;
}

/// A question for the members of the network, as far as this node knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members;

impl Request for Members {
    const NUMBER: u16 = 0x0401;
    type Reply = Vec<NodeId>;
}

/// A node is a member now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberUp {
    /// The node.
    pub member: NodeId,
}

impl Notification for MemberUp {
    const NUMBER: u16 = 0x0402;
}

/// A node is a member no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberDown {
    /// The node.
    pub member: NodeId,
}

impl Notification for MemberDown {
    const NUMBER: u16 = 0x0403;
}

/// Lose so many of a thousand messages to and from a neighbour: 1000 cuts the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// The neighbour.
    pub neighbour: NodeId,
    /// How many.
    pub lost_permille: u16,
}

impl Request for Shape {
    const NUMBER: u16 = 0x0601;
    type Reply = Shaped;
}

/// The fate of [`Shape`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shaped {
    /// The link is shaped.
    Yes,
    /// Too many links are shaped already.
    Full,
}

/// A record that replicates is new here, or newer than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordArrived {
    /// Which.
    pub key: RecordKey,
}

impl Notification for RecordArrived {
    const NUMBER: u16 = 0x0404;
}

/// The mark that tells one record that replicates from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordKey(pub [u8; 8]);

/// The owner's order for an experiment, which is the body, has come to this node and counts: the
/// host carries it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordered {
    /// The order's number, which grows.
    pub number: u64,
    /// The node that gave it, to which logs go.
    pub director: NodeId,
}

impl Notification for Ordered {
    const NUMBER: u16 = 0x0602;
}

/// A node's log of the experiment, which is the body, has come to the director.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogArrived {
    /// Whose.
    pub from: NodeId,
}

impl Notification for LogArrived {
    const NUMBER: u16 = 0x0603;
}

/// Note the body in this node's log of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note;

impl Request for Note {
    const NUMBER: u16 = 0x0604;
    type Reply = ();
}

/// Give the whole deployment a signed order, which is the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Direct;

impl Request for Direct {
    const NUMBER: u16 = 0x0605;
    type Reply = Directed;
}

/// The fate of [`Direct`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Directed {
    /// It is under way.
    UnderWay,
    /// The owner didn't sign it, or a later one was given.
    Refused,
}
