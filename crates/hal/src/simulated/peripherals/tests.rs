use super::*;
use alloc::string::ToString;
use alloc::vec;

/// The reading of a peripheral at a moment, as text, and when it wants to be polled next.
fn said(peripheral: &mut dyn Peripheral, millis: u64) -> (Vec<String>, Option<u64>) {
    let mut readings = Vec::new();
    let next = peripheral.poll(Instant::from_millis(millis), &mut |part, payload| {
        let text = String::from_utf8_lossy(payload);
        readings.push(if part.is_empty() { text.to_string() } else { format!("{part} {text}") });
    });
    (readings, next.map(Instant::as_millis))
}

fn point(seconds: u64, value: i64) -> Point {
    Point { at: Duration::from_secs(seconds), value }
}

#[test]
fn a_thermometer_reads_what_its_script_says_once_a_period() {
    let points = vec![point(0, 20_000), point(10, 30_000), point(20, -500)];
    let mut thermometer = Thermometer::new("temperature", Duration::from_secs(1), points);
    assert_eq!(said(&mut thermometer, 0), (vec!["20.0".to_string()], Some(1_000)));
    assert_eq!(said(&mut thermometer, 999), (vec![], Some(1_000)));
    assert_eq!(said(&mut thermometer, 1_500), (vec!["21.5".to_string()], Some(2_000)));
    assert_eq!(said(&mut thermometer, 60_000), (vec!["-0.5".to_string()], Some(61_000)));
}

#[test]
fn a_thermometer_can_be_told_how_often_to_read() {
    let mut thermometer = Thermometer::new("temperature", Duration::from_secs(60), vec![]);
    assert_eq!(said(&mut thermometer, 0).1, Some(60_000));
    thermometer.command(Instant::BOOT, "period", b"250");
    assert_eq!(said(&mut thermometer, 0), (vec![], Some(250)));
    for nonsense in [&b""[..], b"soon", b"-1", b"\xff"] {
        thermometer.command(Instant::BOOT, "period", nonsense);
    }
    assert_eq!(said(&mut thermometer, 250).1, Some(500));
}

#[test]
fn a_button_tells_each_change_once() {
    let presses = [1, 5].map(Duration::from_secs).to_vec();
    let mut button = Button::new("button", presses, Duration::from_millis(200));
    assert_eq!(said(&mut button, 0), (vec![], Some(1_000)));
    assert_eq!(said(&mut button, 1_100), (vec!["pressed".to_string()], Some(1_200)));
    let rest = vec!["released".to_string(), "pressed".to_string(), "released".to_string()];
    assert_eq!(said(&mut button, 9_000), (rest, None));
    assert_eq!(said(&mut button, 9_001), (vec![], None));
}

#[test]
fn a_lamp_does_as_it_is_told_and_says_so() {
    let mut lamp = Lamp::new("lamp");
    assert_eq!(said(&mut lamp, 0), (vec!["off".to_string()], None));
    lamp.command(Instant::BOOT, "", b"on");
    lamp.command(Instant::BOOT, "", b"blue");
    assert_eq!(said(&mut lamp, 1), (vec!["on".to_string()], None));
    assert_eq!(said(&mut lamp, 2), (vec![], None));
}

#[test]
fn the_parts_of_a_frame_make_the_whole() {
    let mut camera = Camera::new("camera", 64, 48, Duration::from_secs(1));
    for (number, millis) in [(0, 0), (1, 1_000), (2, 1_500)] {
        if millis == 1_500 {
            camera.command(Instant::from_millis(millis), "", b"capture");
        }
        let (mut frame, mut thumbnails) = (Vec::new(), 0);
        camera.poll(Instant::from_millis(millis), &mut |part, payload| {
            if part == "thumbnail" {
                assert_eq!(payload.len(), 64);
                thumbnails += 1;
                return;
            }
            assert!(payload.len() <= CHUNK_BYTES);
            let field = |at: usize| u32::from_le_bytes(payload[at..at + 4].try_into().unwrap());
            assert_eq!((field(0), field(4), field(8)), (number, frame.len() as u32, 64 * 48));
            frame.extend_from_slice(&payload[CHUNK_HEADER_BYTES..]);
        });
        assert_eq!((frame.len(), thumbnails), (64 * 48, 1));
        assert!(frame.contains(&255) && frame.contains(&16));
    }
}
