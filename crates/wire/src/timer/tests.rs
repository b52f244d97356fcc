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
    assert_eq!(refused("5-1 * * * *"), ScheduleError::Turned(0));
    assert_eq!(refused("0 0 * * fri-mon"), ScheduleError::Turned(4));
    for nickname in ["@reboot", "@Daily", "@daily @daily", "@every 5m", "@"] {
        assert_eq!(refused(nickname), ScheduleError::Nickname);
    }
    for minutes in ["*/0", "1,,2", "+1", "-", "/", "1/", "1-2-3", "999"] {
        assert_eq!(refused(&alloc::format!("{minutes} * * * *")), ScheduleError::Field(0));
    }
    // Letters of other crons.
    for (text, field) in [
        ("0 0 L * *", 2),
        ("0 0 15W * *", 2),
        ("0 0 * * 5#3", 4),
        ("0 0 ? * *", 2),
        ("0 ~ * * *", 1),
        ("1~5 * * * *", 0),
    ] {
        assert_eq!(refused(text), ScheduleError::Field(field), "{text}");
    }
    assert_eq!(refused("0 0 30 2 *"), ScheduleError::Never);
}

#[test]
fn a_nickname_is_the_schedule_that_the_manual_says() {
    for (nickname, fields) in NICKNAMES {
        assert_eq!(nickname.parse::<Schedule>(), fields.parse(), "{nickname}");
    }
    assert_eq!(next("@weekly", WEDNESDAY), WEDNESDAY + 4 * DAY);
}

/// Sunday is 7 only where it is said: `1/2` is Monday, Wednesday and Friday.
#[test]
fn a_step_behind_one_number_goes_to_the_end_of_its_field() {
    for (open, ranges) in [
        ("5/15 * * * *", "5-59/15 * * * *"),
        ("0 3/2 * * *", "0 3-23/2 * * *"),
        ("0 0 2/10 * *", "0 0 2-31/10 * *"),
        ("0 0 1 feb/3 *", "0 0 1 2-12/3 *"),
        ("0 0 * * 1/2", "0 0 * * 1-6/2"),
        ("0 0 * * mon/1", "0 0 * * 1-6"),
        ("0 0 * * sat/1", "0 0 * * 6"),
        ("0 0 * * 7/2", "0 0 * * 0"),
        ("0 0 * * sun/7", "0 0 * * 0"),
        ("59/1,1/200 0/24 * * *", "59,1 0 * * *"),
    ] {
        assert_eq!(open.parse::<Schedule>().unwrap(), ranges.parse().unwrap(), "{open}");
    }
}

#[test]
fn a_schedule_is_shown_so_that_it_reads_back_the_same() {
    for (text, shown) in [
        ("06:30", "30 6 * * *"),
        ("*/20 8-18 * * mon-fri", "*/20 8-18 * * 1-5"),
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

/// crontab(5) of Debian's cron: "If both fields are restricted (i.e., do not contain the "*" character), the command
/// will be run when either field matches the current time."
#[test]
fn star_in_a_field_of_days_makes_both_count() {
    let thursday = WEDNESDAY + DAY;
    // The 29th is a Thursday, and 4 March the Monday after it.
    assert_eq!(next("0 0 29 * mon", WEDNESDAY), thursday);
    assert_eq!(next("0 0 1-31 * mon", WEDNESDAY), thursday, "any day is in 1-31");
    assert_eq!(next("0 0 5 * 0-6", WEDNESDAY), thursday, "any day is in 0-6");
    assert_eq!(next("0 0 * * mon", WEDNESDAY), WEDNESDAY + 5 * DAY);
    // The next Monday with an odd number is 11 March.
    assert_eq!(next("0 0 */2 * mon", WEDNESDAY), WEDNESDAY + 12 * DAY);
    assert_eq!(next("0 0 2,*/2 * mon", WEDNESDAY), WEDNESDAY + 12 * DAY);
    // The next 5th that is a Sunday, Tuesday, Thursday or Saturday is in March, which begins in two days.
    assert_eq!(next("0 0 5 * */2", WEDNESDAY), WEDNESDAY + 6 * DAY);
    assert_eq!("0 0 30 2 */2".parse::<Schedule>(), Err(ScheduleError::Never));
    assert!("0 0 30 2 0-6".parse::<Schedule>().is_ok(), "any day of February");
}

/// 29 February is a Sunday in 2088, and then in 2128.
#[test]
fn two_fields_that_meet_once_in_forty_years_are_found() {
    let sunday_2088 = next("0 0 29 feb */7", 3_700_000_000);
    assert_eq!(next("0 0 29 feb */7", sunday_2088), sunday_2088 + 14_609 * DAY);
    let mut after = 0;
    while after < 400 * 366 * DAY {
        after = next("0 0 29 2 */7", after);
    }
}

#[test]
fn star_is_shown_and_packed_and_read_back() {
    for (text, shown) in [
        ("0 0 */2 * mon", "0 0 */2 * 1"),
        ("0 0 1-31 * 0-7", "0 0 1-31 * 0-6"),
        ("0 0 3,*/15,5-6 * */2", "0 0 */15,3,5-6 * */2"),
        ("0 0 */99 * *", "0 0 */31 * *"),
        ("*/60 */24 * * *", "*/60 */24 * * *"),
        ("* * * * */7", "* * * * */7"),
    ] {
        let schedule: Schedule = text.parse().unwrap();
        assert_eq!(schedule.to_string(), shown);
        assert_eq!(shown.parse(), Ok(schedule));
        let bytes = postcard::to_allocvec(&schedule).unwrap();
        assert_eq!(postcard::from_bytes(&bytes), Ok(schedule));
    }
}

/// Packages of before have sets alone: a full one of days was a star.
#[test]
fn schedule_of_before_counts_as_it_did() {
    let weekdays =
        postcard::to_allocvec(&(1_u64, 1_u32, u32::MAX - 1, 0x1FFE_u16, 0x3E_u8)).unwrap();
    let schedule: Schedule = postcard::from_bytes(&weekdays).unwrap();
    assert_eq!(Ok(schedule), "0 0 * * mon-fri".parse());
    let either = postcard::to_allocvec(&(1_u64, 1_u32, 2_u32, 0x1FFE_u16, 2_u8)).unwrap();
    let schedule: Schedule = postcard::from_bytes(&either).unwrap();
    assert_eq!(Ok(schedule), "0 0 1 * mon".parse());
}
