//! The parts of a protocol: local state, a declaration, and a handler for each event it declares.
//!
//! The declaration is made by [`protocol!`](crate::protocol!). It builds a table of functions, one
//! for each event, out of the traits in here; so a declared event without a handler doesn't
//! compile, and neither does sending what isn't declared.

use alloc::vec::Vec;
use core::marker::PhantomData;

use crate::NodeId;
use crate::context::{Asker, Context, ReplyRoute};
use crate::event::{
    Envelope, Event, Message, Notification, ProtocolNumber, Request, Timer, decode, write,
};
use crate::interception::{Passage, Verdict};

/// A distributed protocol: an event-driven state machine.
pub trait Protocol: Declared {
    /// Begins: sets timers, says hello.
    fn start(&mut self, context: &mut Context<'_, Self>) {
        let _ = context;
    }

    /// Ends: says goodbye. Its timers and what waits for it are dropped by the framework.
    fn stop(&mut self, context: &mut Context<'_, Self>) {
        let _ = context;
    }
}

/// The declarations of [`protocol!`](crate::protocol!).
pub trait Declared: Send + Sized + 'static {
    /// The facts of the protocol that don't depend on its state.
    const DESCRIPTION: &'static Description;
    /// Its handlers.
    const HANDLERS: &'static [Handler<Self>];
    /// The handler of passing messages, if it intercepts.
    const INTERCEPTOR: Option<Interceptor<Self>>;
}

/// A protocol's interface.
#[derive(Debug, PartialEq, Eq)]
pub struct Description {
    /// The number that frames carry.
    pub number: ProtocolNumber,
    /// Its name.
    pub name: &'static str,
    /// The messages that it sends and takes, by their kind.
    pub messages: &'static [(u8, &'static str)],
    /// The kinds of those that carry somebody's data, or answer such a message: no control traffic.
    pub carries: &'static [u8],
    /// Its timers, by their kind.
    pub timers: &'static [(u8, &'static str)],
    /// The requests that it answers.
    pub serves: &'static [u16],
    /// The requests that it makes.
    pub asks: &'static [u16],
    /// The notifications that it wants.
    pub hears: &'static [u16],
    /// The notifications that it gives.
    pub tells: &'static [u16],
    /// Whether it can stand between others.
    pub intercepts: bool,
}

/// Takes a message of the type `M`.
pub trait Handles<M: Message>: Protocol {
    /// A message came.
    fn handle(&mut self, message: M, reception: Reception<'_>, context: &mut Context<'_, Self>);
}

/// Takes the timer `T`.
pub trait Expires<T: Timer>: Protocol {
    /// The timer went off.
    fn expire(&mut self, timer: T, context: &mut Context<'_, Self>);
}

/// Answers the request `R`.
pub trait Serves<R: Request>: Protocol {
    /// Answers a question. `None` if the answer comes later, to the [`Question::keep`]er, or never.
    fn serve(
        &mut self,
        request: R,
        question: &Question<'_, R>,
        context: &mut Context<'_, Self>,
    ) -> Option<R::Reply>;
}

/// Makes the request `R`, and takes what comes back.
pub trait Awaits<R: Request>: Protocol {
    /// The answer to `request`; `None` if nobody answers it on this node, or there was no room. Unless a
    /// protocol says otherwise, what isn't taken is as good as lost.
    fn answered(&mut self, request: R, reply: Option<R::Reply>, context: &mut Context<'_, Self>) {
        let _ = (request, reply, context);
    }
}

/// Takes the notification `N`.
pub trait Hears<N: Notification>: Protocol {
    /// Something is told, with `body` after it.
    fn hear(&mut self, notification: N, body: &[u8], context: &mut Context<'_, Self>);
}

/// The messages that may go through a protocol that intercepts: see [`crate::Stack::intercept`].
pub trait Intercepts: Protocol {
    /// `message` passes on its way; it may be changed, and is no longer than a frame if it goes to
    /// the network.
    fn intercept(
        &mut self,
        passage: &Passage,
        message: &mut Vec<u8>,
        context: &mut Context<'_, Self>,
    ) -> Verdict;
}

/// The function that [`Intercepts`] provides.
pub type Interceptor<P> = fn(&mut P, &Passage, &mut Vec<u8>, &mut Context<'_, P>) -> Verdict;

/// How a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception<'a> {
    /// The neighbour that sent it.
    pub from: NodeId,
    /// Whether it was for this node alone.
    pub addressed: bool,
    /// How strong the signal was in dBm, if the link knows.
    pub signal_dbm: Option<i8>,
    /// The bytes behind the typed head.
    pub body: &'a [u8],
}

/// The parts of a request beside its head.
#[derive(Debug)]
pub struct Question<'a, R> {
    /// The bytes behind the typed head.
    pub body: &'a [u8],
    /// The protocol that asks.
    pub from: ProtocolNumber,
    route: ReplyRoute,
    head: &'a [u8],
    answers: PhantomData<fn() -> R>,
}

impl<R> Question<'_, R> {
    /// Keeps who asked, to answer later by [`Context::answer`].
    pub fn keep(&self) -> Asker<R> {
        Asker { route: self.route, request: self.head.to_vec(), answers: PhantomData }
    }
}

/// A function of a protocol for one declared event.
pub struct Handler<P> {
    class: Class,
    number: u16,
    run: Run<P>,
}

type Run<P> = fn(&mut P, &Envelope, &[u8], &mut Context<'_, P>) -> Result<(), Malformed>;

/// The kind of event that a handler is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Message,
    Timer,
    Request,
    Reply,
    Notification,
}

/// The bytes of an event aren't what its number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl<P: Protocol> Handler<P> {
    /// For messages of the type `M`.
    pub const fn message<M: Message>() -> Self
    where
        P: Handles<M>,
    {
        Self { class: Class::Message, number: M::KIND as u16, run: message::<P, M> }
    }

    /// For the timer `T`.
    pub const fn timer<T: Timer>() -> Self
    where
        P: Expires<T>,
    {
        Self { class: Class::Timer, number: T::KIND as u16, run: timer::<P, T> }
    }

    /// For the request `R`.
    pub const fn request<R: Request>() -> Self
    where
        P: Serves<R>,
    {
        Self { class: Class::Request, number: R::NUMBER, run: request::<P, R> }
    }

    /// For answers to the request `R`.
    pub const fn reply<R: Request>() -> Self
    where
        P: Awaits<R>,
    {
        Self { class: Class::Reply, number: R::NUMBER, run: reply::<P, R> }
    }

    /// For the notification `N`.
    pub const fn notification<N: Notification>() -> Self
    where
        P: Hears<N>,
    {
        Self { class: Class::Notification, number: N::NUMBER, run: notification::<P, N> }
    }
}

/// Lets `protocol` handle an event.
pub(crate) fn dispatch<P: Protocol>(
    protocol: &mut P,
    envelope: &Envelope,
    bytes: &[u8],
    context: &mut Context<'_, P>,
) -> Result<(), Malformed> {
    let (class, number, bytes) = match envelope.event {
        Event::Message { .. } => {
            let (kind, bytes) = bytes.split_first().ok_or(Malformed)?;
            (Class::Message, u16::from(*kind), bytes)
        }
        Event::Timer { kind } => (Class::Timer, u16::from(kind), bytes),
        Event::Request { number, .. } => (Class::Request, number, bytes),
        Event::Reply { number, .. } => (Class::Reply, number, bytes),
        Event::Notification { number } => (Class::Notification, number, bytes),
    };
    let wanted = |handler: &&Handler<P>| handler.class == class && handler.number == number;
    let handler = P::HANDLERS.iter().find(wanted).ok_or(Malformed)?;
    (handler.run)(protocol, envelope, bytes, context)
}

fn message<P: Handles<M>, M: Message>(
    protocol: &mut P,
    envelope: &Envelope,
    bytes: &[u8],
    context: &mut Context<'_, P>,
) -> Result<(), Malformed> {
    let Event::Message { from, addressed, signal_dbm, .. } = envelope.event else {
        return Err(Malformed);
    };
    let (message, body) = decode(bytes).ok_or(Malformed)?;
    protocol.handle(message, Reception { from, addressed, signal_dbm, body }, context);
    Ok(())
}

fn timer<P: Expires<T>, T: Timer>(
    protocol: &mut P,
    _: &Envelope,
    bytes: &[u8],
    context: &mut Context<'_, P>,
) -> Result<(), Malformed> {
    let (timer, _) = decode(bytes).ok_or(Malformed)?;
    protocol.expire(timer, context);
    Ok(())
}

fn request<P: Serves<R>, R: Request>(
    protocol: &mut P,
    envelope: &Envelope,
    bytes: &[u8],
    context: &mut Context<'_, P>,
) -> Result<(), Malformed> {
    let Event::Request { number, asker, incarnation, .. } = envelope.event else {
        return Err(Malformed);
    };
    let (request, body) = decode::<R>(bytes).ok_or(Malformed)?;
    let head = &bytes[..bytes.len() - body.len()];
    let route = ReplyRoute { to: asker, incarnation, number };
    let question = Question { body, from: asker, route, head, answers: PhantomData };
    if let Some(reply) = protocol.serve(request, &question, context) {
        context.answer_bytes(route, head, |bytes| write(&reply, bytes));
    }
    Ok(())
}

fn reply<P: Awaits<R>, R: Request>(
    protocol: &mut P,
    envelope: &Envelope,
    bytes: &[u8],
    context: &mut Context<'_, P>,
) -> Result<(), Malformed> {
    let Event::Reply { request_bytes, answered, .. } = envelope.event else {
        return Err(Malformed);
    };
    let (request, reply) = bytes.split_at_checked(request_bytes.into()).ok_or(Malformed)?;
    let (request, _) = decode(request).ok_or(Malformed)?;
    let reply = if answered { Some(decode(reply).ok_or(Malformed)?.0) } else { None };
    protocol.answered(request, reply, context);
    Ok(())
}

fn notification<P: Hears<N>, N: Notification>(
    protocol: &mut P,
    _: &Envelope,
    bytes: &[u8],
    context: &mut Context<'_, P>,
) -> Result<(), Malformed> {
    let (notification, body) = decode(bytes).ok_or(Malformed)?;
    protocol.hear(notification, body, context);
    Ok(())
}

/// Declares a protocol: its number and name, and what it sends and takes.
///
/// ```
/// # use core::time::Duration;
/// # use serde::{Deserialize, Serialize};
/// use tenure_mesh::{Context, Expires, Handles, Protocol, Reception};
///
/// /// Says hello every second, and counts who does.
/// #[derive(Default)]
/// struct Greeter { heard: u32 }
///
/// #[derive(Serialize, Deserialize)]
/// struct Hello;
/// #[derive(Serialize, Deserialize)]
/// struct Beat;
///
/// tenure_mesh::protocol! {
///     Greeter = 200, "greeter";
///     messages { Hello = 1 }
///     timers { Beat = 1 }
/// }
///
/// impl Protocol for Greeter {
///     fn start(&mut self, context: &mut Context<'_, Self>) {
///         context.every(Duration::from_secs(1), &Beat);
///     }
/// }
/// impl Expires<Beat> for Greeter {
///     fn expire(&mut self, _: Beat, context: &mut Context<'_, Self>) {
///         context.broadcast(&Hello);
///     }
/// }
/// impl Handles<Hello> for Greeter {
///     fn handle(&mut self, _: Hello, _: Reception<'_>, _: &mut Context<'_, Self>) {
///         self.heard += 1;
///     }
/// }
/// ```
///
/// Between messages and timers `carries { Message, … }` may name those that carry somebody's data, or
/// answer such a message one for one: all others are control traffic, which lives within the [budget of air](crate::Air).
/// After timers there may be, in this order and each at most once:
/// `serves { Request, … }` (answers them: [`Serves`](crate::Serves)), `asks { Request, … }`
/// (makes them: [`Awaits`](crate::Awaits)), `hears { Notification, … }`
/// ([`Hears`](crate::Hears)), `tells { Notification, … }`, and `intercepts;`
/// ([`Intercepts`](crate::Intercepts)). A generic protocol's parameters stand in brackets before
/// its name: `[T: Records] Replicated<T> = 12, "replicated";`.
#[macro_export]
macro_rules! protocol {
    (@declare [$([$($generics:tt)*])?] $protocol:ty = $number:expr, $name:expr;
        $(messages { $($message:ty = $message_kind:literal),* $(,)? })?
        $(carries { $($carries:ty),* $(,)? })?
        $(timers { $($timer:ty = $timer_kind:literal),* $(,)? })?
        $(serves { $($serves:ty),* $(,)? })?
        $(asks { $($asks:ty),* $(,)? })?
        $(hears { $($hears:ty),* $(,)? })?
        $(tells { $($tells:ty),* $(,)? })?
        $(intercepts $intercepts:tt)?
    ) => {
        $($(impl $crate::Message for $message {
            const KIND: u8 = $message_kind;
        })*)?
        $($(impl $crate::Timer for $timer {
            const KIND: u8 = $timer_kind;
        })*)?
        $crate::protocol! { @links [$([$($generics)*])?] $protocol; Sends $($($message),*)? }
        $crate::protocol! { @links [$([$($generics)*])?] $protocol; Sets $($($timer),*)? }
        $crate::protocol! { @links [$([$($generics)*])?] $protocol; Asks $($($asks),*)? }
        $crate::protocol! { @links [$([$($generics)*])?] $protocol; Tells $($($tells),*)? }
        impl $(<$($generics)*>)? $crate::Declared for $protocol {
            const DESCRIPTION: &'static $crate::Description = &$crate::Description {
                number: $crate::ProtocolNumber($number),
                name: $name,
                messages: &[$($(($message_kind, stringify!($message))),*)?],
                carries: &[$($(<$carries as $crate::Message>::KIND),*)?],
                timers: &[$($(($timer_kind, stringify!($timer))),*)?],
                serves: &[$($(<$serves as $crate::Request>::NUMBER),*)?],
                asks: &[$($(<$asks as $crate::Request>::NUMBER),*)?],
                hears: &[$($(<$hears as $crate::Notification>::NUMBER),*)?],
                tells: &[$($(<$tells as $crate::Notification>::NUMBER),*)?],
                intercepts: <Self as $crate::Declared>::INTERCEPTOR.is_some(),
            };
            const HANDLERS: &'static [$crate::Handler<Self>] = &[
                $($($crate::Handler::message::<$message>(),)*)?
                $($($crate::Handler::timer::<$timer>(),)*)?
                $($($crate::Handler::request::<$serves>(),)*)?
                $($($crate::Handler::reply::<$asks>(),)*)?
                $($($crate::Handler::notification::<$hears>(),)*)?
            ];
            const INTERCEPTOR: Option<$crate::Interceptor<Self>> =
                $crate::protocol!(@intercepts $($intercepts)?);
        }
    };
    (@links $generics:tt $protocol:ty; $link:ident $($linked:ty),*) => {
        $($crate::protocol! { @link $generics $protocol; $link<$linked> })*
    };
    (@link [$([$($generics:tt)*])?] $protocol:ty; $link:ident<$linked:ty>) => {
        impl $(<$($generics)*>)? $crate::$link<$linked> for $protocol {}
    };
    (@intercepts) => { None };
    (@intercepts $semicolon:tt) => { Some(<Self as $crate::Intercepts>::intercept) };
    ([$($generics:tt)*] $protocol:ty = $($rest:tt)*) => {
        $crate::protocol! { @declare [[$($generics)*]] $protocol = $($rest)* }
    };
    ($protocol:ty = $($rest:tt)*) => {
        $crate::protocol! { @declare [] $protocol = $($rest)* }
    };
}
