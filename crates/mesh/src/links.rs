//! The list of all that a protocol sends, sets, asks and tells; a [`Context`](crate::Context) lets it do nothing else.

use crate::event::{Message, Notification, Request, Timer};

/// Declares that a protocol sends `M`.
pub trait Sends<M: Message> {}
/// Declares that a protocol sets `T`.
pub trait Sets<T: Timer> {}
/// Declares that a protocol makes the request `R`.
pub trait Asks<R: Request> {}
/// Declares that a protocol gives the notification `N`.
pub trait Tells<N: Notification> {}
