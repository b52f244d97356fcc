//! Peripherals of devices, by a script, and what a machine there heard of them.
//!
//! Each device that has any gets a machine `listener`, which subscribes to `device.*` and tells each event
//! in its log.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Peripheral;
use tenure_hal::simulated::{Button, Camera, Point, Thermometer};

/// A peripheral of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeripheralPlan {
    /// Whose it is.
    pub node: u32,
    /// Its name: machines hear of it as `device.NAME`.
    pub name: String,
    /// The peripheral's behaviour.
    #[serde(flatten)]
    pub script: Script,
}

/// The behaviour of a peripheral; times count from when its device is switched on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Script {
    /// It measures once a period; between the points the temperature changes evenly.
    Thermometer {
        /// How often, in milliseconds.
        period_ms: u64,
        /// Seconds and degrees, in order.
        degrees: Vec<[f64; 2]>,
    },
    /// It says `pressed` and `released`.
    Button {
        /// When it is pressed, in seconds, in order.
        presses_s: Vec<f64>,
        /// For how long, in milliseconds.
        held_ms: u64,
    },
    /// It publishes pictures in parts.
    Camera {
        /// Pixels across.
        width: u16,
        /// Pixels down.
        height: u16,
        /// How often it takes one, in milliseconds.
        period_ms: u64,
    },
}

impl PeripheralPlan {
    /// The driver, as it is when the device is switched on.
    pub(crate) fn driver(&self) -> Box<dyn Peripheral + Send> {
        let name = &self.name;
        let period = |ms: &u64| Duration::from_millis(*ms);
        match &self.script {
            Script::Thermometer { period_ms, degrees } => {
                let point = |[at_s, degrees]: &[f64; 2]| Point {
                    at: Duration::from_secs_f64(at_s.max(0.0)),
                    value: (degrees * 1000.0) as i64,
                };
                let points = degrees.iter().map(point).collect();
                Box::new(Thermometer::new(name, period(period_ms), points))
            }
            Script::Button { presses_s, held_ms } => {
                let presses = presses_s.iter().map(|at_s| Duration::from_secs_f64(at_s.max(0.0)));
                Box::new(Button::new(name, presses.collect(), period(held_ms)))
            }
            Script::Camera { width, height, period_ms } => {
                Box::new(Camera::new(name, *width, *height, period(period_ms)))
            }
        }
    }
}

/// Events of a topic that were received.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Heard {
    /// How many events.
    pub events: u64,
    /// The first bytes of the last one, as text.
    pub last: String,
    /// The least and the most, where they are numbers.
    pub range: Option<[f64; 2]>,
}

impl Heard {
    /// One more event.
    pub(crate) fn hear(&mut self, payload: &[u8]) {
        self.events += 1;
        self.last = String::from_utf8_lossy(payload).into_owned();
        if let Ok(number) = self.last.parse::<f64>() {
            let [least, most] = self.range.unwrap_or([number; 2]);
            self.range = Some([least.min(number), most.max(number)]);
        }
    }
}
