//! Deep sleep of a device that is a process: the node is taken down and booted again from its flash,
//! as a board does by turning itself off.

use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::json;
use tenure_board_linux::{LinuxClock, Woken, wait_any};
use tenure_hal::{Clock as _, Instant};
use tenure_node::SleepPolicy;

use crate::terminal::clock::parse_span_or_seconds;
use crate::terminal::output::Output;
use crate::terminal::stop::Stop;

/// The longest that a sleeping device doesn't look at its clock, which goes on while the system is suspended; a wait doesn't
/// count that time.
const NAP: Duration = Duration::from_secs(10);

/// When a device sleeps with its power off.
#[derive(Clone, Copy, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub struct Sleeping {
    /// Turn the device off whenever nothing is due for so long; a timer or a datagram turns it on
    /// again. What machines are doing is written to flash before and goes on after. A number alone is seconds.
    #[arg(long, value_name = "SPAN", conflicts_with = "duty_cycle", value_parser = seconds)]
    deep_sleep_after: Option<Duration>,
    /// Let the device run and sleep by turns, as on a battery: 10s/5m runs for ten seconds and sleeps
    /// for five minutes; numbers alone are seconds. Machines are told by calls of their `on_sleep` and `on_wake`.
    #[arg(long, value_name = "RUN/SLEEP", value_parser = duty_cycle)]
    duty_cycle: Option<(Duration, Duration)>,
}

impl Sleeping {
    /// The policy of these options.
    pub fn policy(&self) -> SleepPolicy {
        match (self.deep_sleep_after, self.duty_cycle) {
            (Some(at_least), _) => SleepPolicy::WhenIdle { at_least },
            (None, Some((run, sleep))) => SleepPolicy::DutyCycle { run, sleep },
            (None, None) => SleepPolicy::Never,
        }
    }
}

fn seconds(text: &str) -> anyhow::Result<Duration> {
    let span = parse_span_or_seconds(text.trim()).map_err(anyhow::Error::msg)?;
    ensure!(span >= Duration::from_millis(1), "it is too short");
    Ok(span)
}

fn duty_cycle(text: &str) -> anyhow::Result<(Duration, Duration)> {
    let (run, sleep) =
        text.split_once('/').context("write two spans with a slash between them, as in 10s/5m")?;
    Ok((seconds(run)?, seconds(sleep)?))
}

/// Waits, while the node is off, for its time or the end; where it `hears`, for a datagram too. Meanwhile it calls `feed`, by
/// which the watchdog knows that the loop goes on.
///
/// # Errors
/// The link is broken.
pub fn wait(
    until: Option<Instant>,
    hears: bool,
    (links, clock): (&[&dyn AsFd], &LinuxClock),
    stop: &Stop,
    feed: impl Fn(),
) -> anyhow::Result<()> {
    let mut awaited: Vec<&dyn AsFd> = vec![stop];
    awaited.extend(links.iter().copied().filter(|_| hears));
    while !stop.is_requested() {
        feed();
        let left = until.map_or(NAP, |until| until.since(clock.now()));
        if left.is_zero() || wait_any(&awaited, left.min(NAP))? == Woken::ByDatagram {
            return Ok(());
        }
    }
    Ok(())
}

/// Says that the device goes to sleep.
pub fn announce_sleep(span: Option<Duration>, output: &Output) {
    let object = json!({ "event": "asleep", "for_ms": span.map(|span| span.as_millis() as u64) });
    match span {
        Some(span) => output.line(&format!("asleep for {:.3} s", span.as_secs_f64()), &object),
        None => output.line("asleep until it is called", &object),
    }
}

/// Says that the device is awake; without a span, that what it was doing is lost.
pub fn announce_wake(slept: Option<Duration>, output: &Output) {
    let object = json!({ "event": "awake", "slept_ms": slept.map(|span| span.as_millis() as u64) });
    match slept {
        Some(span) => output.line(&format!("awake after {:.3} s", span.as_secs_f64()), &object),
        None => output.line("awake, and all machines start afresh", &object),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tenure_board_linux::UdpLink;

    use super::*;

    #[test]
    fn watchdog_is_fed_in_a_sleep() {
        let link = UdpLink::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let (clock, stop) = (LinuxClock::start(), Stop::on_interrupts().unwrap());
        let (until, meals) = (clock.now() + Duration::from_millis(5), Cell::new(0));
        let feed = || meals.set(meals.get() + 1);
        wait(Some(until), true, (&[&link], &clock), &stop, feed).unwrap();
        assert!(meals.get() > 0 && clock.now() >= until);
    }

    #[test]
    fn spans_are_read_or_refused() {
        assert_eq!(seconds("0.5").unwrap(), Duration::from_millis(500));
        assert_eq!(duty_cycle("10/50").unwrap(), (seconds("10").unwrap(), seconds("50").unwrap()));
        for nonsense in ["", "0", "-1", "nan", "inf", "1/2/3"] {
            assert!(seconds(nonsense).is_err(), "{nonsense}");
            assert!(duty_cycle(&format!("1/{nonsense}")).is_err(), "{nonsense}");
        }
    }
}
