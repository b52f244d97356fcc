//! Timers: functions called later, or again and again, by a machine that serves others meanwhile.

use std::time::Duration;

use tenure_kernel::Ran;
use tenure_wire::host_call::HostError;
use tenure_wire::timer::{PackageTimer, When};
use tenure_wire::{Budget, MachineId};

use crate::world::{Device, digit, name, text};

const IMPORTS: &str = r#"
    (import "tenure" "timer_after" (func $timer_after (param i32 i32 i32 i32 i32 i32) (result i32)))
    (import "tenure" "timer_at" (func $timer_at (param i32 i32 i32 i32 i32 i32) (result i32)))
    (import "tenure" "timer_schedule"
      (func $timer_schedule (param i32 i32 i32 i32 i32 i32) (result i32)))
    (import "tenure" "timer_cancel" (func $timer_cancel (param i32 i32) (result i32)))"#;

/// Sets a timer for `on_tick`, whose parameter is what it logs, by the numbers in its parameter.
const TICKING: &str = r#"
    (data (i32.const 0) "on_tick") (data (i32.const 16) "tick") (data (i32.const 32) "nowhere")
    (func $number (param $at i32) (result i32)
      (drop (call $parameter_read (local.get $at) (i32.const 512) (i32.const 4)))
      (i32.load (i32.const 512)))
    (func $status (param i32) (call $reply_digit (i32.sub (i32.const 0) (local.get 0))))
    (func (export "after") (call $status (call $timer_after (i32.const 0) (i32.const 7)
      (i32.const 16) (i32.const 4) (call $number (i32.const 0)) (call $number (i32.const 4)))))
    (func (export "at") (call $status (call $timer_at (i32.const 0) (i32.const 7)
      (i32.const 16) (i32.const 4) (call $number (i32.const 0)) (call $number (i32.const 4)))))
    (func (export "schedule")
      (drop (call $parameter_read (i32.const 0) (i32.const 512) (call $parameter_length)))
      (call $status (call $timer_schedule (i32.const 0) (i32.const 7)
        (i32.const 16) (i32.const 4) (i32.const 512) (call $parameter_length))))
    (func (export "cancel") (call $status (call $timer_cancel (i32.const 0) (i32.const 7))))
    (func (export "missing") (call $status (call $timer_after (i32.const 32) (i32.const 7)
      (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0))))
    (func (export "long") (call $status (call $timer_after (i32.const 0) (i32.const 7)
      (i32.const 16) (i32.const 65) (i32.const 1) (i32.const 0))))
    (func (export "trap") unreachable)
    (export "echo" (func $echo))
    (func (export "on_tick") (local $length i32)
      (local.set $length (call $parameter_length))
      (drop (call $parameter_read (i32.const 0) (i32.const 1024) (local.get $length)))
      (call $log (i32.const 2) (i32.const 1024) (local.get $length)))"#;

fn device() -> (Device, MachineId) {
    let mut device = Device::new();
    device.imports = IMPORTS;
    let ticking = device.install("ticking", TICKING);
    device.settle(10);
    (device, ticking)
}

fn set(device: &mut Device, machine: MachineId, how: &str, first: u32, period_ms: u32) {
    let parameter = [first.to_le_bytes(), period_ms.to_le_bytes()].concat();
    assert_eq!(text(device.call(machine, how, Some(&parameter))), "0");
}

fn ticks(device: &Device) -> usize {
    device.log.iter().filter(|line| *line == "ticking tick").count()
}

/// Lets time pass as a device does that sleeps until it is wanted; returns how often it woke.
fn pass(device: &mut Device, span: Duration) -> usize {
    let (end, mut wakes) = (device.now + span, 0);
    loop {
        match device.step() {
            Ran::Slice => {}
            Ran::Idle { until: Some(until) } if until <= end => {
                assert!(until > device.now, "what is due is done");
                device.now = until;
                wakes += 1;
            }
            Ran::Idle { .. } => {
                device.now = end;
                return wakes;
            }
        }
    }
}

#[test]
fn a_timer_fires_again_and_again_while_its_machine_answers_calls() {
    let (mut device, ticking) = device();
    set(&mut device, ticking, "after", 10_000, 10_000);
    pass(&mut device, Duration::from_millis(9_999));
    assert_eq!(ticks(&device), 0);
    for minute in 1..=10 {
        pass(&mut device, Duration::from_secs(60));
        assert_eq!(ticks(&device), minute * 6);
        assert_eq!(device.call(ticking, "echo", Some(b"x")), Ok(Some(b"x".to_vec())));
    }
}

#[test]
fn a_timer_without_a_period_fires_once() {
    let (mut device, ticking) = device();
    set(&mut device, ticking, "after", 500, 0);
    pass(&mut device, Duration::from_secs(60));
    assert_eq!(ticks(&device), 1);
    let mut device = device.reboot();
    pass(&mut device, Duration::from_secs(60));
    assert_eq!(ticks(&device), 0, "not after a restart either");
}

#[test]
fn a_timer_ends_when_it_is_told_to() {
    let (mut device, ticking) = device();
    set(&mut device, ticking, "after", 1_000, 1_000);
    pass(&mut device, Duration::from_millis(3_500));
    assert_eq!(text(device.call(ticking, "cancel", None)), "0");
    assert_eq!(text(device.call(ticking, "cancel", None)), digit(HostError::NotFound));
    pass(&mut device, Duration::from_secs(60));
    assert_eq!(ticks(&device), 3);
    assert_eq!(pass(&mut device.reboot(), Duration::from_secs(60)), 0);
}

#[test]
fn timers_outlast_faults_restarts_swapping_and_deep_sleep() {
    let (mut device, ticking) = device();
    set(&mut device, ticking, "after", 5_000, 5_000);
    device.deliver(ticking, "trap", None).unwrap();
    pass(&mut device, Duration::from_secs(6));
    assert_eq!(ticks(&device), 1, "after a fault");
    device.kernel.suspend_all().unwrap();
    pass(&mut device, Duration::from_secs(5));
    assert_eq!(ticks(&device), 2, "in flash");
    let mut device = device.sleep(Duration::from_secs(3), &[]);
    pass(&mut device, Duration::from_secs(3));
    assert_eq!(ticks(&device), 1, "after a deep sleep, when it was due");
    let mut device = device.reboot();
    pass(&mut device, Duration::from_secs(6));
    assert_eq!(ticks(&device), 1, "after a loss of power");
}

#[test]
fn a_deep_sleep_ends_in_time_for_a_timer() {
    let (mut device, ticking) = device();
    set(&mut device, ticking, "after", 60_000, 60_000);
    let Ran::Idle { until: Some(until) } = device.step() else { panic!("it has nothing to do") };
    let wait = until.since(device.now);
    assert!(wait >= Duration::from_secs(60) && wait <= Duration::from_secs(61), "{wait:?}");
}

#[test]
fn timers_of_many_machines_share_their_wake_ups() {
    let mut device = Device::new();
    device.imports = IMPORTS;
    for letter in b'a'..b'a' + 8 {
        let machine = device.install(&format!("{}ticking", char::from(letter)), TICKING);
        device.settle(10);
        set(&mut device, machine, "after", 60_000, 60_000);
        device.pass(Duration::from_millis(100));
    }
    let wakes = pass(&mut device, Duration::from_secs(3_605));
    let ticks = device.log.iter().filter(|line| line.ends_with("ticking tick")).count();
    assert_eq!(ticks, 8 * 60);
    assert!(wakes <= 60, "{wakes} wake-ups for {ticks} calls");
}

#[test]
fn a_timer_that_fires_again_and_again_writes_nothing() {
    let (mut device, ticking) = device();
    set(&mut device, ticking, "after", 1_000, 1_000);
    device.kernel.take_usage(device.now, ticking).unwrap();
    pass(&mut device, Duration::from_secs(600));
    set(&mut device, ticking, "after", 1_000, 1_000);
    let usage = device.kernel.take_usage(device.now, ticking).unwrap();
    assert_eq!(usage.flash_bytes, 0, "nor does setting it again");
    assert!(usage.fuel > 600 * 800, "each call is on the bill: {}", usage.fuel);
    set(&mut device, ticking, "after", 2_000, 2_000);
    let usage = device.kernel.take_usage(device.now, ticking).unwrap();
    assert!(usage.flash_writes == 1 && usage.flash_bytes > 0, "setting another one does");
}

#[test]
fn a_machine_that_is_busy_has_one_call_of_a_timer_waiting() {
    let mut device = Device::new();
    device.imports = IMPORTS;
    let body = format!(r#"{TICKING} (func (export "spin") (call $sleep_ms (i32.const 60000)))"#);
    let ticking = device.install("ticking", &body);
    device.settle(10);
    set(&mut device, ticking, "after", 1_000, 1_000);
    device.deliver(ticking, "spin", None).unwrap();
    pass(&mut device, Duration::from_millis(59_500));
    let queue = device.kernel.machines().next().unwrap().queue_length;
    assert_eq!((ticks(&device), queue), (0, 1));
    pass(&mut device, Duration::from_millis(700));
    assert_eq!(ticks(&device), 1, "what was missed is missed");
}

#[test]
fn a_timer_takes_a_function_a_short_parameter_and_room() {
    let (mut device, ticking) = device();
    assert_eq!(text(device.call(ticking, "missing", None)), digit(HostError::NotFound));
    assert_eq!(text(device.call(ticking, "long", None)), digit(HostError::TooLong));
    let brief = [1_u32.to_le_bytes(), 9_u32.to_le_bytes()].concat();
    assert_eq!(text(device.call(ticking, "after", Some(&brief))), digit(HostError::Invalid));
    let poor = Budget { flash_bytes_per_day: 0, ..Budget::default() };
    let poor = device.try_install("poor", TICKING, 1, poor).unwrap();
    let parameter = [1_000_u32.to_le_bytes(), 0_u32.to_le_bytes()].concat();
    let status = text(device.call(poor, "after", Some(&parameter)));
    assert_eq!(status, "=", "the budget for flash is spent: -13");
}

#[test]
fn an_update_ends_the_timers_of_the_version_before() {
    let (mut device, ticking) = device();
    set(&mut device, ticking, "after", 1_000, 1_000);
    device.try_install("ticking", TICKING, 2, Budget::default()).unwrap();
    assert_eq!(pass(&mut device, Duration::from_secs(60)), 0);
    set(&mut device, ticking, "after", 1_000, 1_000);
    device.kernel.tenancy(device.now).remove(&name("ticking")).unwrap();
    device.try_install("other", TICKING, 2, Budget::default()).unwrap();
    assert_eq!(
        pass(&mut device, Duration::from_secs(60)),
        0,
        "another machine in its slot has none"
    );
}

#[test]
fn a_timer_by_the_time_of_day_fires_at_it_every_day_and_after_a_restart() {
    const DAY: u32 = 86_400;
    let (mut device, ticking) = device();
    let six = 20_000 * DAY + 6 * 3_600;
    let booted = u64::from(six - 7_200);
    device.booted_unix_s = Some(booted);
    set(&mut device, ticking, "at", six, DAY * 1_000);
    let hours = |count: u64| Duration::from_secs(count * 3_600);
    pass(&mut device, hours(1));
    assert_eq!(ticks(&device), 0);
    pass(&mut device, hours(2));
    assert_eq!(ticks(&device), 1);
    pass(&mut device, hours(48));
    assert_eq!(ticks(&device), 3);
    // It is seven; the device is off for three days, and then doesn't know the time for an hour.
    let off = device.now.as_micros() / 1_000_000 + 3 * u64::from(DAY);
    let mut device = device.reboot();
    pass(&mut device, hours(1));
    device.booted_unix_s = Some(booted + off);
    pass(&mut device, hours(21));
    assert_eq!(ticks(&device), 0);
    pass(&mut device, hours(2));
    assert_eq!(ticks(&device), 1);
}

/// A machine whose package brings a timer for `on_tick`, which logs `none` without a parameter.
const BROUGHT: &str = r#"
    (data (i32.const 0) "on_tick") (data (i32.const 16) "tick")
    (func (export "on_tick") (call $log (i32.const 2) (i32.const 16) (i32.const 4)))
    (func (export "cancel") (drop (call $timer_cancel (i32.const 0) (i32.const 7))))
    (func (export "trap") unreachable)"#;

fn with_timer(when: When) -> Device {
    let mut device = Device::new();
    device.imports = IMPORTS;
    let timer = |function: &str| PackageTimer { function: function.to_string(), when };
    device.package_timers = vec![timer("on_tick"), timer("nowhere")];
    device
}

#[test]
fn a_timer_of_a_package_fires_from_the_start_on_and_after_all_that_stops_its_machine() {
    let mut device = with_timer(When::Every(10_000));
    let ticking = device.install("ticking", BROUGHT);
    pass(&mut device, Duration::from_millis(9_900));
    assert_eq!(ticks(&device), 0);
    pass(&mut device, Duration::from_millis(51_200));
    assert_eq!(ticks(&device), 6);
    device.deliver(ticking, "trap", None).unwrap();
    pass(&mut device, Duration::from_secs(20));
    assert_eq!(ticks(&device), 8, "after a fault");
    device.kernel.suspend_all().unwrap();
    let mut device = device.sleep(Duration::from_secs(5), &[]);
    pass(&mut device, Duration::from_secs(5));
    assert_eq!(ticks(&device), 1, "after a deep sleep, when it was due");
    let mut device = device.reboot();
    pass(&mut device, Duration::from_secs(21));
    assert_eq!(ticks(&device), 2, "after a loss of power");
    device.kernel.tenancy(device.now).halt(&name("ticking")).unwrap();
    assert_eq!(pass(&mut device, Duration::from_secs(60)), 0, "while it is stopped");
    device.kernel.tenancy(device.now).start(&name("ticking")).unwrap();
    pass(&mut device, Duration::from_secs(11));
    assert_eq!(ticks(&device), 3, "once it is started again");
}

#[test]
fn a_timer_of_a_package_that_its_machine_ended_comes_back_with_an_update() {
    let mut device = with_timer(When::Every(1_000));
    let ticking = device.install("ticking", BROUGHT);
    pass(&mut device, Duration::from_millis(2_200));
    device.call(ticking, "cancel", None).unwrap();
    let mut device = device.reboot();
    assert_eq!(pass(&mut device, Duration::from_secs(60)), 0, "it stays ended");
    device.package_timers = with_timer(When::Every(1_000)).package_timers;
    device.imports = IMPORTS;
    device.try_install("ticking", BROUGHT, 2, Budget::default()).unwrap();
    pass(&mut device, Duration::from_millis(2_200));
    assert_eq!(ticks(&device), 2);
}

#[test]
fn a_schedule_of_a_package_counts_once_the_time_is_known_and_each_day() {
    const DAY: u64 = 86_400;
    let mut device = with_timer(When::At("30 6 * * mon-fri".parse().unwrap()));
    device.install("ticking", BROUGHT);
    let hours = |count: u64| Duration::from_secs(count * 3_600);
    pass(&mut device, hours(48));
    assert_eq!(ticks(&device), 0, "it doesn't know the time");
    // 1970-01-05 was a Monday; the device learns the time on a Thursday at six.
    let thursday = 4 * DAY + 7 * 1_000 * DAY + 3 * DAY + 6 * 3_600;
    device.booted_unix_s = Some(thursday - device.now.as_micros() / 1_000_000);
    pass(&mut device, Duration::from_secs(1_790));
    assert_eq!(ticks(&device), 0);
    pass(&mut device, Duration::from_secs(20));
    assert_eq!(ticks(&device), 1);
    pass(&mut device, hours(24));
    assert_eq!(ticks(&device), 2, "on Friday");
    pass(&mut device, hours(48));
    assert_eq!(ticks(&device), 2, "not on Saturday and Sunday");
    // The device loses power on Sunday, and is back on Monday at six.
    let mut device = device.reboot();
    device.booted_unix_s = Some(thursday + 4 * DAY);
    pass(&mut device, Duration::from_secs(1_810));
    assert_eq!(ticks(&device), 1, "on Monday");
}

#[test]
fn time_of_day_that_is_heard_while_a_machine_keeps_the_device_busy_has_timers_looked_at_again() {
    let mut device = with_timer(When::At("06:30".parse().unwrap()));
    device.install("ticking", BROUGHT);
    device.settle(100);
    device.package_timers.clear();
    device.install("spinner", r#"(func (export "entry") (loop (br 0)))"#);
    for _ in 0..4 {
        assert_eq!(device.step(), Ran::Slice);
    }
    let nearly = 20_000 * 86_400 + 6 * 3_600 + 1_790;
    device.booted_unix_s = Some(nearly - device.now.as_micros() / 1_000_000);
    for _ in 0..20 {
        device.pass(Duration::from_secs(1));
        assert_eq!(device.step(), Ran::Slice, "it is never idle");
    }
    assert_eq!(ticks(&device), 1);
}

#[test]
fn a_schedule_that_a_machine_sets_counts_as_one_of_its_package_does() {
    const DAY: u64 = 86_400;
    let (mut device, ticking) = device();
    let schedule =
        |device: &mut Device, text: &str| device.call(ticking, "schedule", Some(text.as_bytes()));
    let set = schedule(&mut device, "30 6 * * mon-fri");
    assert_eq!(text(set), "0");
    let hours = |count: u64| Duration::from_secs(count * 3_600);
    pass(&mut device, hours(48));
    assert_eq!(ticks(&device), 0, "it doesn't know the time");
    let thursday = 4 * DAY + 7 * 1_000 * DAY + 3 * DAY + 6 * 3_600;
    device.booted_unix_s = Some(thursday - device.now.as_micros() / 1_000_000);
    pass(&mut device, hours(25));
    assert_eq!(ticks(&device), 2, "on Thursday and on Friday");
    pass(&mut device, hours(48));
    assert_eq!(ticks(&device), 2, "not on Saturday and Sunday");
    // The device loses power on Sunday, and is back on Monday at six, and on Tuesday at seven.
    let mut device = device.reboot();
    device.booted_unix_s = Some(thursday + 4 * DAY);
    pass(&mut device, hours(1));
    assert_eq!(ticks(&device), 1, "on Monday");
    let mut device = device.reboot();
    device.booted_unix_s = Some(thursday + 5 * DAY + 3_600);
    pass(&mut device, hours(23));
    assert_eq!(ticks(&device), 0, "none is made up for");
    pass(&mut device, hours(1));
    assert_eq!(ticks(&device), 1, "on Wednesday");
}

/// In Berlin clocks go from two to three in the morning on 2026-03-29, and from three to two on 2026-10-25.
#[test]
fn schedule_goes_by_the_clock_of_its_zone_which_is_put_forward_and_back() {
    const HALF_PAST_TWO: &str = "TZ=CET-1CEST,M3.5.0,M10.5.0/3 02:30";
    let mut brought = with_timer(When::at(HALF_PAST_TWO).unwrap());
    brought.install("ticking", BROUGHT);
    let (mut set, ticking) = device();
    assert_eq!(text(set.call(ticking, "schedule", Some(HALF_PAST_TWO.as_bytes()))), "0");
    for mut device in [brought, set] {
        let until = |device: &mut Device, unix_s: u64| {
            let now_s = device.booted_unix_s.unwrap() + device.now.as_micros() / 1_000_000;
            pass(device, Duration::from_secs(unix_s - now_s));
            ticks(device)
        };
        // 01:30 in Berlin, half an hour before two is leapt over.
        let forward = 1_774_744_200;
        device.booted_unix_s = Some(forward - device.now.as_micros() / 1_000_000);
        assert_eq!(until(&mut device, forward + 1_790), 0);
        assert_eq!(until(&mut device, forward + 1_810), 1, "as two is leapt over");
        assert_eq!(until(&mut device, forward + 24 * 3_600 - 1_810), 1);
        assert_eq!(
            until(&mut device, forward + 24 * 3_600 + 10),
            2,
            "at half past two of the next day"
        );
        // 02:15 in Berlin, the first time.
        let back = 1_792_887_300;
        device.booted_unix_s = Some(back - device.now.as_micros() / 1_000_000);
        let before = until(&mut device, back);
        assert_eq!(until(&mut device, back + 910), before + 1);
        assert_eq!(
            until(&mut device, back + 24 * 3_600),
            before + 1,
            "not at the second half past two"
        );
        assert_eq!(until(&mut device, back + 24 * 3_600 + 4_510), before + 2);
    }
}

#[test]
fn a_schedule_is_written_once_however_often_it_is_set_and_refused_if_it_never_comes() {
    let (mut device, ticking) = device();
    let long = format!("{} * * * *", "1,".repeat(64) + "1");
    for (schedule, error) in [
        ("", HostError::Invalid),
        ("0 0 30 2 *", HostError::Invalid),
        ("60 * * * *", HostError::Invalid),
        ("* * * * * *", HostError::Invalid),
        ("TZ=Europe/Berlin 06:30", HostError::Invalid),
        ("TZ=UTC0", HostError::Invalid),
        (&long, HostError::TooLong),
    ] {
        let status = device.call(ticking, "schedule", Some(schedule.as_bytes()));
        assert_eq!(text(status), digit(error), "{schedule}");
    }
    device.call(ticking, "schedule", Some(b"06:30")).unwrap();
    device.kernel.take_usage(device.now, ticking).unwrap();
    for same in ["06:30", "30 6 * * *", "30 06 */1 * */1"] {
        assert_eq!(text(device.call(ticking, "schedule", Some(same.as_bytes()))), "0");
    }
    let usage = device.kernel.take_usage(device.now, ticking).unwrap();
    assert_eq!(usage.flash_bytes, 0, "the same again changes nothing");
    device.call(ticking, "schedule", Some(b"06:31")).unwrap();
    assert_eq!(device.kernel.take_usage(device.now, ticking).unwrap().flash_writes, 1);
}

#[test]
fn clock_that_is_set_back_a_little_brings_no_time_of_day_again() {
    const DAY: u64 = 86_400;
    let morning = 20_000 * DAY + 6 * 3_600;
    let set_clock = |device: &mut Device, unix_s: u64| {
        device.booted_unix_s = Some(unix_s - device.now.as_micros() / 1_000_000);
    };
    let mut scheduled = with_timer(When::At("06:30".parse().unwrap()));
    scheduled.install("ticking", BROUGHT);
    let (mut set_at, ticking) = device();
    let first = u32::try_from(morning + 1_800).unwrap();
    set(&mut set_at, ticking, "at", first, u32::try_from(DAY * 1_000).unwrap());
    for mut device in [scheduled, set_at] {
        set_clock(&mut device, morning + 1_790);
        pass(&mut device, Duration::from_secs(20));
        assert_eq!(ticks(&device), 1);
        set_clock(&mut device, morning);
        pass(&mut device, Duration::from_secs(7_200));
        assert_eq!(ticks(&device), 1, "half past six was there already");
        pass(&mut device, Duration::from_secs(DAY));
        assert_eq!(ticks(&device), 2, "and comes the next day");
        // The clock was a year ahead: what came by it doesn't count.
        set_clock(&mut device, morning + 365 * DAY + 1_790);
        pass(&mut device, Duration::from_secs(20));
        assert_eq!(ticks(&device), 3);
        set_clock(&mut device, morning + 2 * DAY + 1_790);
        pass(&mut device, Duration::from_secs(20));
        assert_eq!(ticks(&device), 4);
    }
}

/// A tenant brings the rarest schedules that there are, under a clock that a false hub throws about.
#[test]
fn rarest_schedules_under_a_clock_that_jumps_neither_fire_wrongly_nor_hold_up_a_neighbour() {
    let mut device = with_timer(When::At("0 0 29 2 *".parse().unwrap()));
    device.install("ticking", BROUGHT);
    device.package_timers = Vec::new();
    let neighbour = device.install("neighbour", TICKING);
    let after_2096 = 3_981_312_000 + 86_400;
    for unix_s in [0, after_2096, u64::from(u32::MAX), 253_402_300_800, 1 << 53, u64::MAX / 4, 1] {
        device.booted_unix_s = Some(unix_s);
        let wakes = pass(&mut device, Duration::from_secs(3_600));
        assert!(wakes <= 60, "{wakes} wakes in an hour after {unix_s}");
        let answer = device.call(neighbour, "echo", Some(b"x"));
        assert_eq!(answer, Ok(Some(b"x".to_vec())), "after {unix_s}");
    }
    assert_eq!(ticks(&device), 0, "none of these hours is on a 29 February");
    // Eight years lie between the leap days about 2100, and the second comes.
    device.booted_unix_s = Some(4_233_686_400 - 10 - device.now.as_micros() / 1_000_000);
    pass(&mut device, Duration::from_secs(60));
    assert_eq!(ticks(&device), 1);
}
