//! How long a peer takes to answer: RFC 6298, in microseconds.

use core::time::Duration;

use crate::{Config, PeerAddress};

/// The estimate for one peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTrip {
    estimate: Option<Estimate>,
}

#[derive(Clone, Copy, Debug)]
struct Estimate {
    smoothed_us: u64,
    variation_us: u64,
}

impl RoundTrip {
    /// Takes in one measured round trip, of a message that was sent once (Karn's algorithm).
    pub(crate) fn sample(&mut self, measured: Duration) {
        let measured_us = tenure_hal::micros_of(measured).min(60_000_000);
        self.estimate = Some(match self.estimate {
            None => Estimate { smoothed_us: measured_us, variation_us: measured_us / 2 },
            Some(Estimate { smoothed_us, variation_us }) => Estimate {
                variation_us: (variation_us * 3 + smoothed_us.abs_diff(measured_us)) / 4,
                smoothed_us: (smoothed_us * 7 + measured_us) / 8,
            },
        });
    }

    /// How long to wait for an answer from `route` after `retransmissions` without one: doubling, within the
    /// limits of `config`.
    pub(crate) fn timeout<A: PeerAddress>(
        &self,
        config: &Config,
        route: &A,
        retransmissions: u32,
    ) -> Duration {
        let base = match self.estimate {
            None => config.timeout_initial,
            Some(estimate) => {
                Duration::from_micros(estimate.smoothed_us + 4 * estimate.variation_us)
            }
        };
        base.max(config.timeout_min)
            .max(route.patience())
            .saturating_mul(1 << retransmissions.min(16))
            .min(config.timeout_max)
    }
}

#[cfg(test)]
mod tests {
    use tenure_wire::Address;

    use super::*;

    #[test]
    fn answer_from_a_mesh_is_waited_for_while_it_looks_for_a_way() {
        let mut round_trip = RoundTrip::default();
        round_trip.sample(Duration::from_millis(10));
        let config = Config::default();
        let mesh = Address::Mesh([7; 6]);
        let waits = [0, 1, 2, 3].map(|sent| round_trip.timeout(&config, &mesh, sent).as_secs());
        assert_eq!(waits, [1, 2, 4, 4]);
        let udp = Address::Udp(([127, 0, 0, 1], 7).into());
        assert_eq!(round_trip.timeout(&config, &udp, 0), config.timeout_min);
    }
}
