//! The Trickle timer (RFC 6206): when to say what others may already have said.

use core::time::Duration;

use tenure_mesh::{Context, Protocol, Sets, Timer};

/// One Trickle timer. Its owner has the two timers by which it goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trickle {
    interval_min: Duration,
    interval_max: Duration,
    /// RFC 6206's k.
    enough: u32,
    /// Its I.
    interval: Duration,
    /// Its c.
    consistent: u32,
}

impl Trickle {
    pub(crate) fn new(interval_min: Duration, interval_max: Duration, enough: u32) -> Self {
        Self { interval_min, interval_max, enough, interval: interval_max, consistent: 0 }
    }

    /// Something is inconsistent (§4.2, step 6). The timers are when to speak and when an interval is
    /// over.
    pub(crate) fn begin_anew<P: Protocol + Sets<S> + Sets<O>, S: Timer, O: Timer>(
        &mut self,
        timers: (&S, &O),
        context: &mut Context<'_, P>,
    ) {
        self.begin_within(self.interval_min, timers, context);
    }

    /// Something is new, which others have heard too most likely: an interval is no longer than that.
    pub(crate) fn begin_within<P: Protocol + Sets<S> + Sets<O>, S: Timer, O: Timer>(
        &mut self,
        interval: Duration,
        timers: (&S, &O),
        context: &mut Context<'_, P>,
    ) {
        if self.interval > interval {
            self.interval = interval;
            self.begin(timers, context);
        }
    }

    /// An interval is over (§4.2, step 5).
    pub(crate) fn go_on<P: Protocol + Sets<S> + Sets<O>, S: Timer, O: Timer>(
        &mut self,
        timers: (&S, &O),
        context: &mut Context<'_, P>,
    ) {
        self.interval = (self.interval * 2).min(self.interval_max);
        self.begin(timers, context);
    }

    /// An interval begins (§4.2, step 2).
    fn begin<P: Protocol + Sets<S> + Sets<O>, S: Timer, O: Timer>(
        &mut self,
        (say, over): (&S, &O),
        context: &mut Context<'_, P>,
    ) {
        self.consistent = 0;
        let half = self.interval / 2;
        let wait = half + context.random().below_span(half);
        context.after(wait, say);
        context.after(self.interval, over);
    }

    /// Somebody said the same (§4.2, step 3).
    pub(crate) fn heard_the_same(&mut self) {
        self.consistent += 1;
    }

    /// Whether too few said the same to keep silent (§4.2, step 4).
    pub(crate) fn has_something_to_say(&self) -> bool {
        self.consistent < self.enough
    }
}
