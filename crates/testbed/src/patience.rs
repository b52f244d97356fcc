//! Waiting for other processes: for an event, with one limit for all tests.

use std::env;
use std::fmt::Display;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The environment's name for the factor by which tests wait longer, or less long.
const VARIABLE: &str = "TENURE_PATIENCE";
/// Far beyond what anything takes on a busy computer.
const PATIENCE_S: f64 = 240.0;
/// The pause between two looks, which leaves the processor to the process that is waited for.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a test waits for an event before it gives up: 240 seconds, times the factor in `TENURE_PATIENCE`.
///
/// # Panics
/// `TENURE_PATIENCE` is no number above zero.
#[must_use]
pub fn patience() -> Duration {
    let factor = env::var(VARIABLE).ok();
    scaled(factor.as_deref()).unwrap_or_else(|error| panic!("{error}"))
}

/// Tries again until `attempt` succeeds; returns its value.
///
/// # Panics
/// It still fails after [`patience`]; the text is its last error.
#[track_caller]
pub fn wait_until<T, E: Display>(mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + patience();
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(error) => assert!(Instant::now() < deadline, "waited in vain: {error}"),
        }
        sleep(PAUSE);
    }
}

fn scaled(factor: Option<&str>) -> Result<Duration, String> {
    let Some(text) = factor else { return Ok(Duration::from_secs_f64(PATIENCE_S)) };
    let factor = text.parse::<f64>().ok().filter(|factor| *factor > 0.0);
    let patience = factor.map(|factor| Duration::try_from_secs_f64(PATIENCE_S * factor));
    match patience {
        Some(Ok(patience)) => Ok(patience),
        _ => Err(format!(
            "{VARIABLE} is a number by which tests wait longer, as 3, and not {text:?}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factor_of_the_environment_scales_the_patience_and_nonsense_is_named() {
        assert_eq!(scaled(None), Ok(Duration::from_secs(240)));
        assert_eq!(scaled(Some("2.5")), Ok(Duration::from_secs(600)));
        for nonsense in ["", "long", "0", "-1", "NaN", "inf", "1e300"] {
            assert!(scaled(Some(nonsense)).unwrap_err().contains(VARIABLE), "{nonsense}");
        }
    }

    #[test]
    fn attempts_that_fail_at_first_are_made_again() {
        let mut attempts = 0;
        let value = wait_until(|| {
            attempts += 1;
            if attempts < 3 { Err("too early") } else { Ok("there") }
        });
        assert_eq!((value, attempts), ("there", 3));
    }
}
