//! Passes messages on without waiting: a call in the queue is made when the other side can be reached.
#![no_std]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use tenure::{Error, Level, log};

tenure::export!(send, delivered, lost, show);

static DELIVERED: AtomicU32 = AtomicU32::new(0);
static LOST: AtomicU32 = AtomicU32::new(0);

/// Puts a message into the queue: `tenure call relay send "the kettle boils"`
///
/// A queue that is full is the caller's to know: the message isn't taken then.
fn send(message: &str) -> Result<(), Error> {
    tenure::queue("store@cellar", "keep")
        .parameter(message.as_bytes())
        .deadline(Duration::from_secs(20))
        .retries(2)
        .on_success("delivered")
        .on_failure("lost")
        .send()?;
    Ok(())
}

/// Called with what the other machine answered.
fn delivered(answer: Option<&str>) {
    log!("delivered: {}", answer.unwrap_or("without a word"));
    DELIVERED.fetch_add(1, Ordering::Relaxed);
}

/// Called with the reason once all attempts failed.
fn lost(reason: Option<&str>) {
    log!(Level::Warning, "lost: {}", reason.unwrap_or("no reason"));
    LOST.fetch_add(1, Ordering::Relaxed);
}

/// The fate of the messages: `tenure call relay show`
fn show() -> String {
    let (delivered, lost) = (DELIVERED.load(Ordering::Relaxed), LOST.load(Ordering::Relaxed));
    format!("{delivered} delivered, {lost} lost")
}
