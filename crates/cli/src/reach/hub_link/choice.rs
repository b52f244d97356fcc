//! Which way to the hub is used: UDP, or a WebSocket while UDP gets no answer.
//!
//! Silence isn't failure: much of what is sent wants no answer, as the receipt of a result. So the hub is asked before a WebSocket
//! is opened. A hub that restarts is silent, too: UDP is used on until the WebSocket is open, and asked beside it.

use std::time::{Duration, Instant};

/// How long a hub is silent before a device opens a WebSocket.
pub const OF_DEVICES: Duration = Duration::from_secs(4);
/// The same of a command, whose user waits.
pub const OF_COMMANDS: Duration = Duration::from_secs(1);
/// How often a hub that is silent is asked in that time: a question may be lost.
const QUESTIONS: u32 = 2;
/// The first pause before a WebSocket that couldn't be had is tried again, and the longest; it doubles.
const AGAIN: Duration = Duration::from_secs(2);
const AGAIN_MAX: Duration = Duration::from_secs(60);
/// How soon the hub is asked by UDP after the WebSocket was opened, and how seldom at last; the pause doubles.
const ASKED: Duration = Duration::from_secs(5);
const ASKED_MAX: Duration = Duration::from_secs(60);
/// How long a WebSocket is kept that isn't used any more: until the hub, which sends its answers where it heard last, has heard by
/// UDP. A device says where it is every 20 s.
const KEPT: Duration = Duration::from_secs(45);

/// The way in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Udp,
    /// UDP, while a WebSocket is being opened.
    Opening,
    WebSocket,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// Open the WebSocket.
    Open,
    /// Ask the hub by UDP.
    Ask,
    /// Close the WebSocket.
    Close,
}

/// The choice of the way.
#[derive(Debug)]
pub(super) struct Choice {
    way: Way,
    patience: Duration,
    /// Whether there is no way to the hub by UDP at all.
    is_blocked: bool,
    /// Since when the hub is silent to what was sent by UDP.
    silent_since: Option<Instant>,
    /// How many questions it left without an answer since.
    questions: u32,
    /// When a WebSocket may be tried, and the next pause.
    open_at: Instant,
    open_pause: Duration,
    /// When to ask by UDP, and the next pause.
    ask_at: Instant,
    ask_pause: Duration,
    /// When to close a WebSocket that isn't used any more.
    close_at: Option<Instant>,
}

impl Choice {
    pub(super) fn new(now: Instant, patience: Duration) -> Self {
        Self {
            way: Way::Udp,
            patience,
            is_blocked: false,
            silent_since: None,
            questions: 0,
            open_at: now,
            open_pause: AGAIN,
            ask_at: now,
            ask_pause: ASKED,
            close_at: None,
        }
    }

    pub(super) fn is_by_websocket(&self) -> bool {
        self.way == Way::WebSocket
    }

    /// Says whether no address of the hub is known, so that UDP needn't be waited for.
    pub(super) fn is_blocked(&mut self, is_blocked: bool) {
        self.is_blocked = is_blocked;
    }

    /// Something was sent to the hub by UDP.
    pub(super) fn sent(&mut self, now: Instant) {
        self.silent_since = self.silent_since.or(Some(now));
    }

    /// Something came from the hub by UDP, which answers this link's own question or not; whether that changes the way.
    pub(super) fn heard_by_udp(&mut self, now: Instant, is_own: bool) -> bool {
        match self.way {
            // What else comes may have been on its way since UDP was blocked, or is somebody else's.
            Way::WebSocket if !is_own => return false,
            Way::WebSocket | Way::Opening => self.close_at = Some(now + KEPT),
            Way::Udp => {}
        }
        (self.silent_since, self.questions) = (None, 0);
        self.open_pause = AGAIN;
        std::mem::replace(&mut self.way, Way::Udp) == Way::WebSocket
    }

    /// The WebSocket is open; whether that changes the way.
    pub(super) fn opened(&mut self, now: Instant) -> bool {
        self.open_pause = AGAIN;
        // UDP answered meanwhile.
        if self.way != Way::Opening {
            return false;
        }
        (self.way, self.close_at) = (Way::WebSocket, None);
        self.ask_at = now + self.ask_pause;
        true
    }

    /// The WebSocket is over, or couldn't be had; whether it was needed.
    pub(super) fn over(&mut self, now: Instant) -> bool {
        self.close_at = None;
        self.open_at = now + self.open_pause;
        self.open_pause = (self.open_pause * 2).min(AGAIN_MAX);
        std::mem::replace(&mut self.way, Way::Udp) != Way::Udp
    }

    /// What is due by `now`; what is told is taken to be done.
    pub(super) fn due(&mut self, now: Instant) -> Due {
        if self.due_at().is_none_or(|at| now < at) {
            return Due::Nothing;
        }
        match self.way {
            Way::WebSocket => {
                self.ask_at = now + self.ask_pause;
                self.ask_pause = (self.ask_pause * 2).min(ASKED_MAX);
                Due::Ask
            }
            Way::Udp if self.opens_at().is_some_and(|at| at <= now) => {
                // UDP that falls silent soon after it answered is asked more and more seldom.
                if self.close_at.take().is_none() {
                    self.ask_pause = ASKED;
                }
                self.way = Way::Opening;
                Due::Open
            }
            Way::Udp if self.asks_at().is_some_and(|at| at <= now) => {
                self.questions += 1;
                Due::Ask
            }
            Way::Udp | Way::Opening => {
                self.close_at = None;
                Due::Close
            }
        }
    }

    /// When something is due next, if nothing else happens.
    pub(super) fn due_at(&self) -> Option<Instant> {
        match self.way {
            Way::WebSocket => (!self.is_blocked).then_some(self.ask_at),
            Way::Udp => {
                [self.opens_at(), self.asks_at(), self.close_at].into_iter().flatten().min()
            }
            Way::Opening => None,
        }
    }

    /// When a hub that is silent by UDP is to be asked: in the second half of the time that it has.
    fn asks_at(&self) -> Option<Instant> {
        if self.is_blocked || self.patience.is_zero() || self.questions >= QUESTIONS {
            return None;
        }
        let half = self.patience / 2;
        self.silent_since.map(|since| since + half + half * self.questions / QUESTIONS)
    }

    /// When a WebSocket is to be opened.
    fn opens_at(&self) -> Option<Instant> {
        let patience = if self.is_blocked { Duration::ZERO } else { self.patience };
        self.silent_since.map(|since| (since + patience).max(self.open_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        choice: Choice,
        start: Instant,
    }

    impl Scene {
        fn new() -> Self {
            let start = Instant::now();
            Self { choice: Choice::new(start, OF_DEVICES), start }
        }

        fn at(&self, seconds: u64) -> Instant {
            self.start + Duration::from_secs(seconds)
        }

        fn due(&mut self, seconds: u64) -> Due {
            self.choice.due(self.at(seconds))
        }

        /// By WebSocket since the fifth second.
        fn blocked() -> Self {
            let mut scene = Self::new();
            scene.choice.sent(scene.start);
            assert_eq!([scene.due(1), scene.due(2)], [Due::Nothing, Due::Ask]);
            assert_eq!([scene.due(2), scene.due(3)], [Due::Nothing, Due::Ask]);
            assert_eq!(scene.due(4), Due::Open);
            assert!(!scene.choice.is_by_websocket(), "not before it is open");
            assert!(scene.choice.opened(scene.at(5)) && scene.choice.is_by_websocket());
            scene
        }
    }

    #[test]
    fn hub_that_answers_by_udp_is_never_asked_for_a_websocket() {
        let mut scene = Scene::new();
        for second in 0..100 {
            let now = scene.at(second);
            scene.choice.sent(now);
            assert_eq!(scene.due(second), Due::Nothing);
            assert!(!scene.choice.heard_by_udp(now, false));
        }
        assert_eq!(scene.due(1_000), Due::Nothing, "nothing was sent");
    }

    #[test]
    fn hub_that_answers_the_question_after_what_wants_no_answer_is_spoken_to_by_udp() {
        let mut scene = Scene::new();
        for start in (0..1_000).step_by(20) {
            scene.choice.sent(scene.at(start));
            assert_eq!([scene.due(start + 1), scene.due(start + 2)], [Due::Nothing, Due::Ask]);
            assert!(!scene.choice.heard_by_udp(scene.at(start + 3), true));
            assert_eq!([scene.due(start + 3), scene.due(start + 19)], [Due::Nothing; 2]);
        }
        assert!(!scene.choice.is_by_websocket());
    }

    #[test]
    fn udp_that_answers_now_and_then_alone_is_asked_more_and_more_seldom() {
        let mut scene = Scene::blocked();
        let (mut pauses, mut second) = (Vec::new(), 5);
        for _ in 0..6 {
            let asked = (second..).find(|second| scene.due(*second) == Due::Ask).unwrap();
            pauses.push(asked - second);
            assert!(scene.choice.heard_by_udp(scene.at(asked), true));
            scene.choice.sent(scene.at(asked));
            second = asked + 4;
            assert_eq!(scene.due(second), Due::Open);
            assert!(scene.choice.opened(scene.at(second)));
        }
        assert_eq!(pauses, [5, 10, 20, 40, 60, 60]);
    }

    #[test]
    fn websocket_is_used_while_udp_is_silent_and_udp_is_asked_beside_it() {
        let mut scene = Scene::blocked();
        let asked: Vec<u64> = (5..400).filter(|second| scene.due(*second) == Due::Ask).collect();
        assert_eq!(asked, [10, 15, 25, 45, 85, 145, 205, 265, 325, 385]);
        // What comes unasked proves nothing.
        assert!(!scene.choice.heard_by_udp(scene.at(400), false));
        assert!(scene.choice.is_by_websocket());
        assert!(scene.choice.heard_by_udp(scene.at(400), true));
        assert!(!scene.choice.is_by_websocket());
        // What is on its way there is still taken.
        assert_eq!(
            [scene.due(444), scene.due(445), scene.due(446)],
            [Due::Nothing, Due::Close, Due::Nothing]
        );
    }

    #[test]
    fn websocket_that_is_kept_is_used_again_if_udp_falls_silent_soon() {
        let mut scene = Scene::blocked();
        assert!(scene.choice.heard_by_udp(scene.at(10), true));
        scene.choice.sent(scene.at(11));
        assert_eq!(scene.due(15), Due::Open);
        assert!(scene.choice.opened(scene.at(15)) && scene.choice.is_by_websocket());
        assert_eq!(scene.due(19), Due::Nothing, "it isn't closed any more");
    }

    #[test]
    fn udp_that_answers_while_the_websocket_is_being_opened_stays() {
        let mut scene = Scene::new();
        scene.choice.sent(scene.start);
        assert_eq!(scene.due(4), Due::Open);
        assert!(!scene.choice.heard_by_udp(scene.at(5), false), "the way is as it was");
        assert!(!scene.choice.opened(scene.at(6)) && !scene.choice.is_by_websocket());
        assert_eq!([scene.due(49), scene.due(50)], [Due::Nothing, Due::Close]);
    }

    #[test]
    fn websocket_that_cannot_be_had_is_tried_again_more_and_more_seldom() {
        let mut scene = Scene::new();
        scene.choice.sent(scene.start);
        let mut tried = Vec::new();
        for second in 0..300 {
            if scene.due(second) == Due::Open {
                tried.push(second);
                assert!(scene.choice.over(scene.at(second)), "it was needed");
            }
        }
        assert_eq!(tried, [4, 6, 10, 18, 34, 66, 126, 186, 246]);
    }

    #[test]
    fn hub_without_an_address_is_not_waited_for_nor_asked_by_udp() {
        let mut scene = Scene::new();
        scene.choice.is_blocked(true);
        assert_eq!(scene.due(0), Due::Nothing);
        scene.choice.sent(scene.start);
        assert_eq!(scene.due(0), Due::Open);
        assert!(scene.choice.opened(scene.at(1)));
        assert_eq!(scene.due(1_000), Due::Nothing);
        assert!(scene.choice.over(scene.at(1_000)));
        scene.choice.sent(scene.at(1_000));
        assert_eq!([scene.due(1_001), scene.due(1_002)], [Due::Nothing, Due::Open]);
    }
}
