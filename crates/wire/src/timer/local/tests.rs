use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tenure_hal::simulated::Random;

use super::*;
use crate::timer::{DAY_S, Date, HOUR_S, MINUTE_S, When};

const BERLIN: &str = "CET-1CEST,M3.5.0,M10.5.0/3";
/// 2026-03-29 00:00 UTC: an hour later clocks in Berlin go from two to three.
const FORWARD: u64 = 1_774_742_400;
/// 2026-10-25 00:00 UTC: an hour later clocks in Berlin go from three to two.
const BACK: u64 = 1_792_886_400;

fn local(zone: &str, schedule: &str) -> LocalSchedule {
    format!("TZ={zone} {schedule}").parse().unwrap()
}

/// The times of a schedule in Berlin within so many hours from `from` on, in minutes after it.
fn minutes(schedule: &str, from: u64, hours: u64) -> Vec<u64> {
    let schedule = local(BERLIN, schedule);
    let next = |at: u64| schedule.next_after(at).filter(|at| *at <= from + hours * HOUR_S);
    let times = core::iter::successors(next(from - 1), |at| next(*at));
    times.map(|at| (at - from) / MINUTE_S).collect()
}

#[test]
fn time_of_day_is_that_of_the_place_in_summer_and_winter() {
    let morning = local(BERLIN, "06:30");
    let (summer, winter) = (FORWARD + 60 * DAY_S, BACK + 60 * DAY_S);
    assert_eq!(morning.next_after(summer), Some(summer + 4 * HOUR_S + 1_800));
    assert_eq!(morning.next_after(winter), Some(winter + 5 * HOUR_S + 1_800));
    assert_eq!(When::at(&format!("TZ={BERLIN} 06:30")), Ok(When::AtLocal(morning)));
    assert_eq!(When::AtLocal(morning).to_string(), "at `30 6 * * *` UTC+01:00 (summer UTC+02:00)");
}

/// "If time was adjusted one hour forward, those jobs that would have run in the interval that has been skipped will be
/// run immediately." (cron(8) of Debian)
#[test]
fn times_that_the_clock_leaps_over_come_as_it_leaps() {
    assert_eq!(minutes("30 2 * * *", FORWARD, 24), [60]);
    assert_eq!(minutes("0,30 1-3 * * *", FORWARD, 3), [0, 30, 60, 90]);
    assert_eq!(minutes("30 2 * * *", FORWARD - DAY_S, 72), [90, 24 * 60 + 60, 48 * 60 + 30]);
}

/// "Conversely, if time was adjusted backward, running the same job twice is avoided."
#[test]
fn times_that_the_clock_shows_twice_come_once() {
    assert_eq!(minutes("30 2 * * *", BACK, 24), [30]);
    assert_eq!(minutes("0,30 1-3 * * *", BACK - HOUR_S, 4), [0, 30, 60, 90, 180, 210]);
    // A device that starts between the two showings hears of none of the first.
    assert_eq!(local(BERLIN, "30 2 * * *").next_after(BACK + 4_000), Some(BACK + DAY_S + 5_400));
}

/// "Jobs that run more frequently are scheduled normally": by the clock.
#[test]
fn times_of_a_star_are_those_that_the_clock_shows() {
    assert!(minutes("*/30 2 * * *", FORWARD, 23).is_empty());
    assert_eq!(minutes("*/30 2 * * *", BACK, 4), [0, 30, 60, 90]);
    assert_eq!(minutes("15 * * * *", FORWARD, 3), [15, 75, 135]);
    assert_eq!(minutes("15 */2 * * *", BACK, 4), [15, 75, 195]);
}

/// The last Sunday of March is always the day on which two is leapt over.
#[test]
fn times_that_are_always_leapt_over_never_come() {
    let text = format!("TZ={BERLIN} */10 2 25-31 3 */7");
    assert_eq!(text.parse::<LocalSchedule>(), Err(ScheduleError::Never));
    assert_eq!(
        minutes("0 2 25-31 3 */7", FORWARD, 1),
        [60],
        "without a star they come as it leaps"
    );
}

#[test]
fn day_that_comes_once_in_forty_years_is_found() {
    // 29 February is a Sunday in 2088, and then in 2128: noon in Berlin.
    let noon = 3_728_890_800;
    let schedule = local(BERLIN, "0 12 29 2 */7");
    assert_eq!(schedule.next_after(noon - 1), Some(noon));
    assert_eq!(schedule.next_after(noon), Some(noon + 14_609 * DAY_S));
}

#[test]
fn text_that_is_no_local_schedule_is_refused() {
    let refused = |text: &str| text.parse::<LocalSchedule>().unwrap_err();
    assert_eq!(refused("TZ=UTC0"), ScheduleError::Fields);
    assert_eq!(refused("TZ=UTC0 * * * *"), ScheduleError::Fields);
    assert_eq!(refused("TZ=UTC0 0 0 30 2 *"), ScheduleError::Never);
    assert!(matches!(refused("TZ=Europe/Berlin 06:30"), ScheduleError::Zone(_)));
    assert!(matches!(refused("TZ= 06:30"), ScheduleError::Zone(_)));
}

/// The rules of a stranger's package.
#[test]
fn times_far_away_have_a_next_time_or_none() {
    let schedule = local(BERLIN, "06:30");
    for at in [u64::MAX, u64::MAX / 2, END_S as u64, END_S as u64 - 1, 0, 1] {
        assert!(schedule.next_after(at).is_none_or(|next| next > at));
    }
}

/// Zones whose clocks change in all ways that there are.
const ZONES: [&str; 9] = [
    BERLIN,
    "EST5EDT,M3.2.0,M11.1.0",
    // By half an hour, in the south.
    "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
    // At a quarter.
    "<+1245>-12:45<+1345>,M9.5.0/2:45,M4.1.0/3:45",
    // On the day before.
    "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
    // At the day's end.
    "<-04>4<-03>,M9.1.6/24,M4.1.6/24",
    // Whose other time is behind.
    "IST-1GMT0,M10.5.0,M3.5.0/1",
    // By two hours.
    "<+00>0<+02>-2,M3.5.0/1,M10.5.0/3",
    "UTC0",
];

/// A schedule as cron keeps it: a flag for each number, and which fields begin with a star.
struct Entry {
    text: String,
    sets: [[bool; 60]; 5],
    stars: [bool; 5],
}

impl Entry {
    fn draw(random: &mut Random) -> Self {
        let mut entry = Self { text: String::new(), sets: [[false; 60]; 5], stars: [false; 5] };
        // Hours at which clocks change are the more likely.
        for (index, (least, most)) in
            [(0, 59), (0, 4), (1, 31), (1, 12), (0, 6)].into_iter().enumerate()
        {
            let number = |random: &mut Random| random.between(least..=most);
            let (first, second) = (number(random), number(random));
            let (first, last) = (first.min(second), first.max(second));
            let step = random.between(1..=7);
            let is_star = random.chance(400 + 100 * u64::from(index > 1));
            let (text, numbers): (String, Vec<u64>) = match (is_star, random.below(4)) {
                (true, 0) => (format!("*/{step}"), Vec::new()),
                (true, _) => ("*".into(), Vec::new()),
                (false, 0) => (format!("{first}"), [first].into()),
                (false, 1) => (format!("{first},{last}"), [first, last].into()),
                (false, 2) => (format!("{first}-{last}"), (first..=last).collect()),
                (false, _) => {
                    let numbers = (first..=last).step_by(step as usize).collect();
                    (format!("{first}-{last}/{step}"), numbers)
                }
            };
            // A star is all numbers of the field, not of those that are drawn.
            let star_most = [59, 23, 31, 12, 6][index];
            let numbers = match text.strip_prefix('*') {
                Some("") => (least..=star_most).collect(),
                Some(_) => (least..=star_most).step_by(step as usize).collect(),
                None => numbers,
            };
            for number in numbers {
                entry.sets[index][number as usize] = true;
            }
            entry.stars[index] = is_star;
            entry.text += &format!("{}{text}", if index > 0 { " " } else { "" });
        }
        entry
    }

    /// Whether it is on at a minute that a clock shows, in minutes since 1970 (`find_jobs` of cron).
    fn is_on(&self, shown: i64) -> bool {
        let (day, minute) = (shown.div_euclid(1440), shown.rem_euclid(1440) as usize);
        let date = Date::of(day as u32);
        let [minutes, hours, days, months, weekdays] = &self.sets;
        let of_month = days[usize::from(date.day)];
        let of_week = weekdays[(day + 4).rem_euclid(7) as usize];
        let is_day =
            if self.stars[2] || self.stars[4] { of_month && of_week } else { of_month || of_week };
        minutes[minute % 60] && hours[minute / 60] && months[usize::from(date.month)] && is_day
    }

    /// Whether cron takes it for one that goes by the clock alone (`MIN_STAR | HR_STAR`).
    fn is_wild(&self) -> bool {
        self.stars[0] || self.stars[1]
    }
}

/// The minutes at which Debian's cron runs an entry: its main loop, which compares the minute that the clock shows with
/// the last for which it ran jobs.
fn by_cron(entry: &Entry, zone: &Zone, (from, to): (i64, i64)) -> Vec<u64> {
    let shown = |minute: i64| (minute * 60 + zone.ahead_s(minute * 60)).div_euclid(60);
    // Times that it showed before it was put back.
    let mut virtually = (from - 180..=from).map(shown).max().unwrap();
    let mut runs = Vec::new();
    for minute in from + 1..=to {
        let running = shown(minute);
        let is_on = match running - virtually {
            // The clock was put back: wildcard jobs alone, until it shows more than before.
            -180..=0 if entry.is_wild() => entry.is_on(running),
            -180..=0 => false,
            // Put forward: wildcard jobs as of now, and the others of all that was leapt over.
            2..=180 if entry.is_wild() => entry.is_on(running),
            1..=180 => (virtually + 1..=running).any(|shown| entry.is_on(shown)),
            _ => entry.is_on(running),
        };
        virtually = virtually.max(running);
        if is_on {
            runs.push(minute as u64 * 60);
        }
    }
    runs
}

fn check_against_cron(schedules: u32) {
    let mut random = Random::new(1);
    for _ in 0..schedules {
        let entry = Entry::draw(&mut random);
        let text = *random.pick(&ZONES);
        let zone: Zone = text.parse().unwrap();
        let Ok(schedule) = entry.text.parse::<Schedule>() else { continue };
        let local = LocalSchedule { schedule, zone };
        // Around each change of five years, and as many other days.
        let mut at = FORWARD as i64 + random.below(30 * DAY_S) as i64;
        let end = at + 5 * 366 * DAY_S as i64;
        while at < end {
            let from = at.div_euclid(60) - random.between(0..=2_000) as i64;
            let to = from + 3_000;
            let next = |at: u64| local.next_after(at).filter(|at| *at <= to as u64 * 60);
            let ours = core::iter::successors(next(from as u64 * 60), |at| next(*at));
            let ours: Vec<u64> = ours.collect();
            assert_eq!(
                ours,
                by_cron(&entry, &zone, (from, to)),
                "{} in {text} from {from}",
                entry.text
            );
            let change = zone.change_after(at + 2 * DAY_S as i64).map(|change| change.at);
            let other = at + random.between(DAY_S..=90 * DAY_S) as i64;
            at = change.filter(|_| random.chance(700)).unwrap_or(other);
        }
    }
}

#[test]
fn times_are_those_of_cron() {
    check_against_cron(60);
}

#[test]
#[ignore = "takes a minute: cargo test -p tenure-wire --release -- --ignored times_of_ten_thousand"]
fn times_of_ten_thousand_schedules_are_those_of_cron() {
    check_against_cron(10_000);
}
