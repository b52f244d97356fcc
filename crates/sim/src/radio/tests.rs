//! Reception of frames: range, carrier sense, hidden stations, repetition.

use tenure_hal::simulated::Random;

use super::{
    Bursts, Finished, Frame, Loss, Medium, Moment, RadioPlan, SetLink, Spot, Station, Wall,
};
use crate::agenda::Agenda;

/// A medium with stations at these places on a line, and what happens on it.
struct Air {
    medium: Medium,
    agenda: Agenda<Moment>,
    /// Each frame that was received: its sender and its receiver.
    heard: Vec<(Station, Station)>,
    over: Vec<Finished>,
}

impl Air {
    fn new(plan: RadioPlan, places: &[f32]) -> Self {
        let mut medium = Medium::new(plan, Vec::new(), Random::new(1));
        for x in places {
            let station = medium.add(Spot { x: *x, y: 0.0 });
            medium.set_power(station, true);
        }
        Self { medium, agenda: Agenda::default(), heard: Vec::new(), over: Vec::new() }
    }

    fn send(&mut self, at_us: u64, from: Station, to: Option<Station>) {
        let frame = Frame { to, bytes: vec![0; 500] };
        if let Some((at_us, moment)) = self.medium.send(at_us, from, frame) {
            self.agenda.plan(at_us, moment);
        }
    }

    fn run(&mut self) {
        let mut heard = Vec::new();
        while let Some((now_us, moment)) = self.agenda.next() {
            let next = match moment {
                Moment::Attempt(from) => self.medium.attempt(now_us, from),
                Moment::Finish(from) => {
                    let (finished, next) = self.medium.finish(now_us, from, &mut heard);
                    self.heard.extend(heard.iter().map(|station| (from, *station)));
                    self.over.extend(finished.filter(|finished| finished.is_over));
                    next
                }
            };
            if let Some((at_us, moment)) = next {
                self.agenda.plan(at_us, moment);
            }
        }
    }
}

#[test]
fn a_frame_reaches_those_in_range_and_nobody_else() {
    let mut air = Air::new(RadioPlan::default(), &[0.0, 80.0, 160.0, 99.0]);
    air.send(0, 0, None);
    air.run();
    assert_eq!(air.heard, [(0, 1), (0, 3)]);
}

#[test]
fn stations_that_hear_each_other_take_turns() {
    let mut air = Air::new(RadioPlan::default(), &[0.0, 50.0, 90.0]);
    (0..40).for_each(|_| [0, 1, 2].into_iter().for_each(|from| air.send(0, from, None)));
    air.run();
    // Two that draw the same slot do collide.
    let (heard, collisions) = (air.heard.len() as u64, air.medium.counts().collisions);
    assert_eq!(heard + collisions, 240);
    assert!((1..=60).contains(&collisions), "{collisions} of 240 collided");
}

#[test]
fn hidden_stations_collide_at_the_one_in_the_middle() {
    let mut air = Air::new(RadioPlan::default(), &[0.0, 90.0, 180.0]);
    for round in 0..50 {
        air.send(round * 20_000, 0, None);
        air.send(round * 20_000, 2, None);
        air.run();
    }
    let collisions = air.medium.counts().collisions;
    assert!(collisions > 50, "{collisions} of 100 collided: neither senses the other");
}

#[test]
fn a_frame_for_one_is_repeated_until_it_is_answered_and_handed_over_once() {
    let plan = RadioPlan { loss: Loss::even(0.5), ..RadioPlan::default() };
    let mut air = Air::new(plan, &[0.0, 50.0]);
    for round in 0..200 {
        air.send(round * 1_000_000, 0, Some(1));
        air.run();
    }
    let answered = air.over.iter().filter(|finished| finished.is_answered).count();
    assert!(air.heard.len() > 195 && air.heard.len() <= 200, "{} arrived", air.heard.len());
    // Of eight tries each fails with three quarters.
    assert!((160..195).contains(&answered), "{answered} were answered");
    assert!(air.medium.counts().transmissions > 500);
}

#[test]
fn the_share_that_a_link_loses_is_the_one_that_was_set() {
    let plan = RadioPlan { unicast_retries: 0, ..RadioPlan::default() };
    let mut air = Air::new(plan, &[0.0, 500.0]);
    air.medium.set_link(0, 1, Some(SetLink::even(0.3)));
    for round in 0..2_000 {
        air.send(round * 10_000, 0, None);
        air.run();
        air.send(round * 10_000 + 5_000, 1, None);
        air.run();
    }
    assert!((1_330..1_470).contains(&air.heard.len()), "{} of 2,000 arrived", air.heard.len());
    assert!(air.heard.iter().all(|(from, _)| *from == 0), "the link was set one way only");
}

#[test]
fn who_moves_leaves_old_neighbours_and_finds_new_ones() {
    let mut air = Air::new(RadioPlan::default(), &[0.0, 80.0, 1_000.0]);
    air.medium.place(0, Spot { x: 950.0, y: 0.0 });
    air.send(0, 0, None);
    air.send(500_000, 1, None);
    air.run();
    assert_eq!(air.heard, [(0, 2)]);
}

#[test]
fn parts_of_the_world_do_not_hear_each_other_and_power_that_is_off_hears_nothing() {
    let mut air = Air::new(RadioPlan::default(), &[0.0, 50.0, 60.0]);
    air.medium.set_part(1, 1);
    air.send(0, 0, None);
    air.run();
    assert_eq!(air.heard, [(0, 2)]);
    air.medium.set_power(2, false);
    air.send(1_000_000, 0, None);
    air.run();
    assert_eq!(air.heard.len(), 1);
}

/// Which of 2,000 frames arrive on a link that is set so, of those for everybody and of those for one.
fn arrivals(link: SetLink) -> [Vec<bool>; 2] {
    let plan = RadioPlan { contention: false, unicast_retries: 0, ..RadioPlan::default() };
    let mut medium = Medium::new(plan, Vec::new(), Random::new(5));
    let stations = [0.0, 10.0].map(|x| medium.add(Spot { x, y: 0.0 }));
    stations.iter().for_each(|station| medium.set_power(*station, true));
    medium.set_link(0, 1, Some(link));
    [(None, 0), (Some(1), 2000)].map(|(to, first)| {
        (first..first + 2000)
            .map(|number| {
                let now_us = number * 5000;
                medium.send(now_us, 0, Frame { to, bytes: vec![0; 20] });
                medium.attempt(now_us, 0);
                let mut heard = Vec::new();
                medium.finish(now_us + 1000, 0, &mut heard);
                !heard.is_empty()
            })
            .collect()
    })
}

#[test]
fn a_gray_link_carries_what_is_for_everybody_and_nothing_else() {
    let link = SetLink { unicast_loss: 1.0, ..SetLink::even(0.0) };
    let [for_all, for_one] = arrivals(link);
    assert!(for_all.iter().all(|it| *it) && for_one.iter().all(|it| !*it));
}

#[test]
fn a_link_with_bursts_is_bad_for_its_share_of_the_time_and_in_turns() {
    let bursts = Some(Bursts { bad_ms: 100.0, good_ms: 300.0, loss: 1.0 });
    let [for_all, for_one] = arrivals(SetLink { bursts, ..SetLink::even(0.0) });
    for arrived in [for_all, for_one] {
        let share = arrived.iter().filter(|it| **it).count() as f64 / 2000.0;
        assert!((0.65..0.85).contains(&share), "{share}");
        // Ten seconds hold about 25 turns of each kind; independent losses would change 750 times.
        let changes = arrived.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!((20..100).contains(&changes), "{changes}");
    }
}

#[test]
fn behind_a_wall_a_station_is_as_good_as_further_away() {
    let wall = |x: f32, db| Wall { from: [x, -10.0], to: [x, 10.0], db };
    // 30 dB are ten times the distance: 9 m and 11 m behind it sound like 90 m and 110 m.
    let walls = vec![wall(-1.0, 30.0), wall(50.0, 3.0)];
    let mut medium = Medium::new(RadioPlan::default(), walls, Random::new(1));
    for x in [0.0, -9.0, -11.0, 75.0, 49.0] {
        let station = medium.add(Spot { x, y: 0.0 });
        medium.set_power(station, true);
    }
    let reached: Vec<bool> = (1..5).map(|to| medium.reaches(0, to)).collect();
    assert_eq!(reached, [true, false, true, true]);
    let without = |distance_m: f32| (-40.0 - 30.0 * distance_m.log10()) as i8;
    assert_eq!(
        [1, 3, 4].map(|to| medium.signal(0, to)),
        [without(90.0), without(75.0) - 3, without(49.0)]
    );
    // Whoever goes around the wall is heard.
    medium.place(2, Spot { x: -11.0, y: 200.0 });
    medium.place(2, Spot { x: -1.0, y: 11.0 });
    assert!(medium.reaches(0, 2) && medium.reaches(2, 0));
}
