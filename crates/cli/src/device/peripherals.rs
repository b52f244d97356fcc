//! The peripherals that a device has, as a file describes them: simulated ones that follow a script.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use tenure_hal::Peripheral;
use tenure_hal::simulated::{Button, Camera, Lamp, Point, Thermometer};

use crate::written_file;

/// One peripheral of the file; the name of its table is its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum Description {
    /// Publishes a temperature in degrees, which changes evenly between its points.
    Thermometer {
        #[serde(default = "second_in_millis")]
        period_ms: u64,
        /// Seconds since the device started, and degrees.
        points: Vec<(f64, f64)>,
    },
    /// Publishes `pressed` and `released`.
    Button {
        /// Seconds since the device started.
        presses: Vec<f64>,
        #[serde(default = "short_press_ms")]
        held_ms: u64,
    },
    /// Follows `on` and `off`, and publishes which it is.
    Lamp {},
    /// Publishes pictures in parts, and thumbnails.
    Camera {
        width: u16,
        height: u16,
        #[serde(default = "second_in_millis")]
        period_ms: u64,
    },
}

fn second_in_millis() -> u64 {
    1_000
}

fn short_press_ms() -> u64 {
    200
}

/// Reads the file and makes the peripherals that it describes.
///
/// # Errors
/// The file can't be read, or describes what can't be.
pub fn load(path: &Path) -> anyhow::Result<Vec<Box<dyn Peripheral + Send>>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?;
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &str) -> anyhow::Result<Vec<Box<dyn Peripheral + Send>>> {
    let descriptions: BTreeMap<String, Description> = written_file::parse(text)?;
    descriptions
        .iter()
        .map(|(name, description)| {
            make(name, description).with_context(|| format!("peripheral `{name}`"))
        })
        .collect()
}

fn make(name: &str, description: &Description) -> anyhow::Result<Box<dyn Peripheral + Send>> {
    Ok(match description {
        Description::Thermometer { period_ms, points } => {
            let point = |(at, degrees): &(f64, f64)| {
                anyhow::ensure!(degrees.abs() < 1e9, "{degrees} is no temperature");
                Ok(Point { at: seconds(*at)?, value: (degrees * 1000.0).round() as i64 })
            };
            let points: Vec<Point> = points.iter().map(point).collect::<anyhow::Result<_>>()?;
            check_order(points.iter().map(|point| point.at))?;
            Box::new(Thermometer::new(name, Duration::from_millis(*period_ms), points))
        }
        Description::Button { presses, held_ms } => {
            let presses: Vec<Duration> =
                presses.iter().map(|at| seconds(*at)).collect::<anyhow::Result<_>>()?;
            let held = Duration::from_millis(*held_ms);
            check_order(presses.iter().flat_map(|at| [*at, *at + held]))?;
            Box::new(Button::new(name, presses, held))
        }
        Description::Lamp {} => Box::new(Lamp::new(name)),
        Description::Camera { width, height, period_ms } => {
            if !(8..=1024).contains(width) || !(8..=1024).contains(height) {
                bail!("a picture is 8 to 1024 pixels wide and high");
            }
            Box::new(Camera::new(name, *width, *height, Duration::from_millis(*period_ms)))
        }
    })
}

fn seconds(seconds: f64) -> anyhow::Result<Duration> {
    Duration::try_from_secs_f64(seconds).with_context(|| format!("{seconds} is no time"))
}

fn check_order(times: impl Iterator<Item = Duration>) -> anyhow::Result<()> {
    anyhow::ensure!(times.is_sorted(), "times must ascend, and a press end before the next begins");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_can_be_described() {
        let text = r#"
            [temperature]
            kind = "thermometer"
            points = [[0.0, 20.0], [60.0, 25.5]]
            [button]
            kind = "button"
            presses = [1.0, 2.5]
            [lamp]
            kind = "lamp"
            [camera]
            kind = "camera"
            width = 64
            height = 48
            period_ms = 500
        "#;
        let names: Vec<String> =
            parse(text).unwrap().iter().map(|one| one.name().to_string()).collect();
        assert_eq!(names, ["button", "camera", "lamp", "temperature"]);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_name() {
        for (table, reason) in [
            ("kind = \"kettle\"", "unknown variant"),
            ("kind = \"camera\"\nwidth = 4\nheight = 48", "8 to 1024 pixels"),
            ("kind = \"button\"\npresses = [2.0, 1.0]", "ascend"),
            ("kind = \"button\"\npresses = [1.0, 1.1]", "ascend"),
            ("kind = \"button\"\npresses = [-1.0]", "is no time"),
            ("kind = \"thermometer\"\npoints = [[0.0, nan]]", "is no temperature"),
        ] {
            let Err(error) = parse(&format!("[thing]\n{table}")) else { panic!("{table}") };
            assert!(format!("{error:#}").contains(reason), "{error:#}");
        }
    }
}
