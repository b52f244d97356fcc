//! The parts that machines can sense and move: the lamp on the board, its button input, the thermometer of the chip, three analog
//! inputs, and an output with a duty cycle.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use rp2040_hal::pac;
use tenure_hal::{Instant, Peripheral};

/// The pins, by their numbers on the chip (Pico data sheet, 2.1).
const UARTS: [usize; 4] = [0, 1, 4, 5];
const BUTTON: usize = 15;
const OUTPUT: usize = 16;
const LAMP: usize = 25;
const ANALOG: [usize; 3] = [26, 27, 28];

/// Functions of a pin (data sheet, 2.19.2).
const FUNCTION_UART: u8 = 2;
const FUNCTION_PWM: u8 = 4;
const FUNCTION_SIO: u8 = 5;

/// How often an input is read unless it is told otherwise, and at most.
const PERIOD: Duration = Duration::from_secs(10);
const PERIOD_MIN: Duration = Duration::from_millis(10);
/// How often the button is looked at.
const BUTTON_PERIOD: Duration = Duration::from_millis(20);

/// The chip's pins, set up.
pub(super) struct Pins(());

impl Pins {
    /// Sets each pin up for what is on it.
    pub(super) fn new(
        bank: pac::IO_BANK0,
        pads: pac::PADS_BANK0,
        sio: pac::SIO,
        resets: &mut pac::RESETS,
    ) -> Self {
        resets
            .reset()
            .modify(|_, w| w.io_bank0().clear_bit().pads_bank0().clear_bit().pwm().clear_bit());
        loop {
            let done = resets.reset_done().read();
            if done.io_bank0().bit() && done.pads_bank0().bit() && done.pwm().bit() {
                break;
            }
        }
        let select = |pin: usize, function| {
            // SAFETY: one of the functions of a pin.
            bank.gpio(pin).gpio_ctrl().write(|w| unsafe { w.funcsel().bits(function) });
        };
        UARTS.iter().for_each(|pin| select(*pin, FUNCTION_UART));
        for pin in [BUTTON, LAMP] {
            select(pin, FUNCTION_SIO);
        }
        select(OUTPUT, FUNCTION_PWM);
        pads.gpio(BUTTON).write(|w| w.ie().set_bit().pue().set_bit());
        for pin in ANALOG {
            pads.gpio(pin).write(|w| w.ie().clear_bit().od().set_bit());
        }
        // SAFETY: a bit a pin.
        sio.gpio_oe_set().write(|w| unsafe { w.bits(1 << LAMP) });
        Self(())
    }

    /// The peripherals on them.
    pub(super) fn peripherals(
        self,
        _: pac::ADC,
        resets: &mut pac::RESETS,
    ) -> Vec<Box<dyn Peripheral + Send>> {
        start_converter(resets);
        start_output();
        let analog = |name, channel| -> Box<dyn Peripheral + Send> {
            Box::new(Analog { name, channel, every: PERIOD, next: None })
        };
        vec![
            Box::new(Lamp { told: None }),
            Box::new(Button { told: None }),
            Box::new(Output),
            analog("thermometer", THERMOMETER),
            analog("adc0", 0),
            analog("adc1", 1),
            analog("adc2", 2),
        ]
    }
}

fn sio() -> &'static pac::sio::RegisterBlock {
    // SAFETY: registers of the chip for good; setting and clearing bits of its own is all that anybody does.
    unsafe { &*pac::SIO::ptr() }
}

/// The lamp on the board: `on` and `off` switch it, and it says which it is when that changes.
struct Lamp {
    told: Option<bool>,
}

impl Peripheral for Lamp {
    fn name(&self) -> &str {
        "lamp"
    }

    fn poll(&mut self, _: Instant, publish: &mut dyn FnMut(&str, &[u8])) -> Option<Instant> {
        let is_on = sio().gpio_out().read().bits() & 1 << LAMP != 0;
        if self.told != Some(is_on) {
            self.told = Some(is_on);
            publish("", if is_on { b"on" } else { b"off" });
        }
        None
    }

    fn command(&mut self, _: Instant, part: &str, command: &[u8]) {
        match (part, command) {
            ("", b"on") => {
                // SAFETY: a bit a pin.
                sio().gpio_out_set().write(|w| unsafe { w.bits(1 << LAMP) });
            }
            ("", b"off") => {
                // SAFETY: as above.
                sio().gpio_out_clr().write(|w| unsafe { w.bits(1 << LAMP) });
            }
            _ => {}
        }
    }
}

/// A button between its pin and ground: says `pressed` and `released`.
struct Button {
    told: Option<bool>,
}

impl Peripheral for Button {
    fn name(&self) -> &str {
        "button"
    }

    fn poll(&mut self, now: Instant, publish: &mut dyn FnMut(&str, &[u8])) -> Option<Instant> {
        let is_pressed = sio().gpio_in().read().bits() & 1 << BUTTON == 0;
        let told = self.told.replace(is_pressed);
        if told.unwrap_or(false) != is_pressed {
            publish("", if is_pressed { b"pressed" } else { b"released" });
        }
        Some(now + BUTTON_PERIOD)
    }

    fn command(&mut self, _: Instant, _: &str, _: &[u8]) {}
}

/// The slice and channel of the output's pin (data sheet, 4.5.2): GPIO 16 is channel A of slice 0.
const SLICE: usize = OUTPUT / 2 % 8;
/// A period of 1,000 steps at 125 MHz divided by 125: 1 kHz.
const STEPS: u16 = 1000;
const _: () = assert!(OUTPUT.is_multiple_of(2));

fn start_output() {
    // SAFETY: registers of the chip for good; the slice is the output's alone.
    let slice = unsafe { (*pac::PWM::ptr()).ch(SLICE) };
    // SAFETY: values as the data sheet has them, 4.5.3.
    unsafe {
        slice.div().write(|w| w.int().bits(125));
        slice.top().write(|w| w.top().bits(STEPS - 1));
        slice.cc().write(|w| w.a().bits(0));
    }
    slice.csr().write(|w| w.en().set_bit());
}

/// An output with a duty cycle: the command is how many thousandths of the time it is on.
struct Output;

impl Peripheral for Output {
    fn name(&self) -> &str {
        "output"
    }

    fn poll(&mut self, _: Instant, _: &mut dyn FnMut(&str, &[u8])) -> Option<Instant> {
        None
    }

    fn command(&mut self, _: Instant, part: &str, command: &[u8]) {
        let text = core::str::from_utf8(command).unwrap_or_default();
        if let ("", Ok(steps @ 0..=STEPS)) = (part, text.trim().parse()) {
            // SAFETY: as in `start_output`.
            unsafe { (*pac::PWM::ptr()).ch(SLICE).cc().write(|w| w.a().bits(steps)) };
        }
    }
}

/// The converter's channel that is the chip's own temperature (data sheet, 4.9.5).
const THERMOMETER: u8 = 4;

fn converter() -> &'static pac::adc::RegisterBlock {
    // SAFETY: registers of the chip for good; each reading is begun and ended in one call.
    unsafe { &*pac::ADC::ptr() }
}

fn start_converter(resets: &mut pac::RESETS) {
    resets.reset().modify(|_, w| w.adc().clear_bit());
    while resets.reset_done().read().adc().bit_is_clear() {}
    converter().cs().write(|w| w.en().set_bit().ts_en().set_bit());
    while converter().cs().read().ready().bit_is_clear() {}
}

/// One reading of 12 bits, against 3.3 V: takes 2 microseconds.
fn convert(channel: u8) -> u32 {
    // SAFETY: one of the five channels.
    converter().cs().modify(|_, w| unsafe { w.ainsel().bits(channel).start_once().set_bit() });
    while converter().cs().read().ready().bit_is_clear() {}
    converter().result().read().result().bits().into()
}

/// An input of the converter: volts as text such as `1.203`, or degrees for the thermometer. The command `period` says
/// how often it is read, in milliseconds.
struct Analog {
    name: &'static str,
    channel: u8,
    every: Duration,
    next: Option<Instant>,
}

impl Peripheral for Analog {
    fn name(&self) -> &str {
        self.name
    }

    fn poll(&mut self, now: Instant, publish: &mut dyn FnMut(&str, &[u8])) -> Option<Instant> {
        if self.next.is_none_or(|next| next <= now) {
            self.next = Some(now + self.every);
            let millivolts = convert(self.channel) * 3300 / 4095;
            let text = if self.channel == THERMOMETER {
                let tenths = tenths_of_a_degree(millivolts as i32);
                let sign = if tenths < 0 { "-" } else { "" };
                format!("{sign}{}.{}", tenths.abs() / 10, tenths.abs() % 10)
            } else {
                format!("{}.{:03}", millivolts / 1000, millivolts % 1000)
            };
            publish("", text.as_bytes());
        }
        self.next
    }

    fn command(&mut self, now: Instant, part: &str, command: &[u8]) {
        let text = core::str::from_utf8(command).unwrap_or_default();
        if let ("period", Ok(millis)) = (part, text.trim().parse()) {
            self.every = Duration::from_millis(millis).max(PERIOD_MIN);
            self.next = Some(now + self.every);
        }
    }
}

/// T = 27 - (V - 0.706) / 0.001721 (data sheet, 4.9.5).
fn tenths_of_a_degree(millivolts: i32) -> i32 {
    270 - (millivolts - 706) * 10_000 / 1721
}
