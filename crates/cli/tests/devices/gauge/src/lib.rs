//! Takes the mean of readings, of which there may be none.
#![no_std]

tenure::export!(work);

/// A sensor's word.
#[derive(Clone, Copy)]
#[allow(dead_code)]
enum Reading {
    Missing,
    Tenths(i32),
    Failed { code: u8, is_final: bool },
}

struct Mean {
    sum: i32,
    count: i32,
    unit: &'static str,
}

impl Mean {
    #[inline(never)]
    fn add(&mut self, reading: Reading) {
        match reading {
            Reading::Tenths(tenths) => {
                self.sum += tenths;
                self.count += 1;
            }
            Reading::Failed { .. } => self.count = 0,
            Reading::Missing => {}
        }
    }

    #[inline(never)]
    fn value(&self) -> i32 {
        self.sum / self.count
    }
}

fn work() {
    let mut mean = Mean { sum: 0, count: 0, unit: "tenths" };
    let readings =
        [Reading::Tenths(205), Reading::Missing, Reading::Failed { code: 7, is_final: true }];
    for reading in readings {
        mean.add(reading);
    }
    tenure::log!("{} {}", mean.value(), mean.unit);
}
