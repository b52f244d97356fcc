//! Which frames are lost, and which arrive late.

use std::time::Duration;

use tenure_hal::simulated::Random;

use super::Port;

/// How long a late frame waits if no other passes it.
const LATE: Duration = Duration::from_millis(20);

/// Loss and reordering, as a seed decides.
pub(super) struct Weather {
    lose: u64,
    reorder: u64,
    random: Random,
    held: Option<(Port, Vec<u8>)>,
}

impl Weather {
    /// Loses one frame in `lose`, and holds back one in `reorder`; 0 for none.
    pub(super) fn new(lose: u64, reorder: u64, seed: u64) -> Self {
        Self { lose, reorder, random: Random::new(seed), held: None }
    }

    /// The frame, if it goes on now.
    pub(super) fn pass(&mut self, from: Port, frame: Vec<u8>) -> Option<(Port, Vec<u8>)> {
        if self.strikes(self.lose) {
            return None;
        }
        if self.held.is_none() && self.strikes(self.reorder) {
            self.held = Some((from, frame));
            return None;
        }
        Some((from, frame))
    }

    /// How long nothing need be released, if something is held back.
    pub(super) fn holds_until(&self) -> Option<Duration> {
        self.held.as_ref().map(|_| LATE)
    }

    /// The frame that was held back.
    pub(super) fn release(&mut self) -> Option<(Port, Vec<u8>)> {
        self.held.take()
    }

    fn strikes(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.random.below(one_in) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::{Port, Weather};

    #[test]
    fn about_one_in_so_many_is_lost_and_as_many_are_late() {
        let mut weather = Weather::new(50, 50, 7);
        let (mut passed, mut late) = (0, 0);
        for _ in 0..10_000 {
            passed += usize::from(weather.pass(Port::Gateway, vec![1]).is_some());
            late += usize::from(weather.release().is_some());
        }
        assert!((9_300..9_900).contains(&passed), "{passed}");
        assert!((100..300).contains(&late), "{late}");
    }

    #[test]
    fn fair_weather_changes_nothing() {
        let mut weather = Weather::new(0, 0, 7);
        assert!((0..1000).all(|_| weather.pass(Port::Gateway, vec![1]).is_some()));
    }
}
