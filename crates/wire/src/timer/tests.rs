use alloc::string::ToString;

use super::*;

const DAY: u64 = DAY_S;
/// 2024-02-28 00:00 UTC, a Wednesday.
const WEDNESDAY: u64 = 1_709_078_400;

fn next(schedule: &str, after: u64) -> u64 {
    schedule.parse::<Schedule>().unwrap().next_after(after).unwrap()
}

#[test]
fn a_time_of_day_comes_each_day() {
    assert_eq!(next("06:30", WEDNESDAY), WEDNESDAY + 23_400);
    assert_eq!(next("06:30", WEDNESDAY + 23_399), WEDNESDAY + 23_400);
    assert_eq!(next("06:30", WEDNESDAY + 23_400), WEDNESDAY + DAY + 23_400);
}

/// The examples of crontab(5), in the words of its manual page.
#[test]
fn the_examples_of_the_manual_come_when_they_should() {
    // "run five minutes after midnight, every day"
    assert_eq!(next("5 0 * * *", WEDNESDAY + 300), WEDNESDAY + DAY + 300);
    // "run at 2:15pm on the first of every month"
    assert_eq!(next("15 14 1 * *", WEDNESDAY), WEDNESDAY + 2 * DAY + 51_300);
    // "run at 10 pm on weekdays"
    let friday = WEDNESDAY + 2 * DAY + 79_200;
    assert_eq!(next("0 22 * * 1-5", friday), friday + 3 * DAY);
    // "run 23 minutes after midnight, 2am, 4am ..., everyday"
    assert_eq!(next("23 0-23/2 * * *", WEDNESDAY + 1_380), WEDNESDAY + 2 * HOUR_S + 1_380);
    // "run at 5 after 4 every Sunday"
    assert_eq!(next("5 4 * * sun", WEDNESDAY), WEDNESDAY + 4 * DAY + 14_700);
    // "30 4 1,15 * 5 would cause a command to be run at 4:30 am on the 1st and 15th of each month, plus
    // every Friday"; 1 March 2024 was one.
    let first = next("30 4 1,15 * 5", WEDNESDAY);
    assert_eq!(first, WEDNESDAY + 2 * DAY + 16_200);
    let friday = next("30 4 1,15 * 5", first);
    assert_eq!(friday, first + 7 * DAY);
    assert_eq!(next("30 4 1,15 * 5", friday), friday + 7 * DAY, "the 15th is the Friday after");
}

#[test]
fn a_leap_day_comes_every_fourth_year_but_in_2100() {
    let leap_2024 = WEDNESDAY + DAY;
    assert_eq!(next("0 0 29 feb *", WEDNESDAY), leap_2024);
    assert_eq!(next("0 0 29 2 *", leap_2024), leap_2024 + 1461 * DAY);
    let leap_2096 = leap_2024 + 18 * 1461 * DAY;
    assert_eq!(next("0 0 29 2 *", leap_2096), leap_2096 + (2 * 1461 - 1) * DAY);
}

#[test]
fn text_that_is_no_schedule_is_refused_with_the_field() {
    let refused = |text: &str| text.parse::<Schedule>().unwrap_err();
    for text in ["", "* * * *", "* * * * * *", "noon"] {
        assert!(
            matches!(refused(text), ScheduleError::Fields | ScheduleError::Field(0)),
            "{text:?}"
        );
    }
    assert_eq!(refused("60 * * * *"), ScheduleError::Field(0));
    assert_eq!(refused("25:00"), ScheduleError::Field(1));
    assert_eq!(refused("0 0 0 * *"), ScheduleError::Field(2));
    assert_eq!(refused("0 0 1 13 *"), ScheduleError::Field(3));
    assert_eq!(refused("0 0 * * 8"), ScheduleError::Field(4));
    for minutes in ["5-1", "*/0", "1,,2", "+1", "-", "/", "1/", "1-2-3", "999"] {
        assert_eq!(refused(&alloc::format!("{minutes} * * * *")), ScheduleError::Field(0));
    }
    assert_eq!(refused("0 0 30 2 *"), ScheduleError::Never);
}

#[test]
fn a_schedule_is_shown_so_that_it_reads_back_the_same() {
    for (text, shown) in [
        ("06:30", "30 6 * * *"),
        ("*/20 8-18 * * mon-fri", "0,20,40 8-18 * * 1-5"),
        ("0 0 1,15 jan,dec 7", "0 0 1,15 1,12 0"),
        ("* * * * *", "* * * * *"),
    ] {
        let schedule: Schedule = text.parse().unwrap();
        assert_eq!(schedule.to_string(), shown);
        assert_eq!(shown.parse(), Ok(schedule));
    }
}

/// A package is a stranger's: its sets may hold anything.
#[test]
fn sets_that_no_text_makes_have_a_next_time_or_none() {
    let all = Schedule { minutes: !0, hours: !0, days: !0, months: !0, weekdays: !0 };
    assert_eq!(all.next_after(WEDNESDAY), Some(WEDNESDAY + 60));
    assert_eq!(all.next_after(u64::MAX), None);
    assert_eq!(all.next_after(u64::MAX / 2), Some((u64::MAX / 2 / 60 + 1) * 60));
    let none = Schedule { minutes: 0, hours: 0, days: 0, months: 0, weekdays: 0 };
    assert!(none.next_after(0).is_none() && !When::At(none).is_possible());
    assert!(!When::Every(9).is_possible() && When::Every(10).is_possible());
}
