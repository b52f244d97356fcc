//! `tenure serial`: a device at the end of a serial line, for commands that take an address.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use tenure_board_linux::{SERIAL_FRAME_BYTES_MAX, SerialLink, UdpLink, wait_any};
use tenure_hal::Link as _;

use crate::reach::network::{DATAGRAMS_PER_TURN, DEVICE_PORT, address_of};
use crate::terminal::output::Output;
use crate::terminal::stop::Stop;

/// How fast a serial line is unless told otherwise.
pub(crate) const BAUD: u32 = 115_200;

/// The longest that the loop sleeps, so that Ctrl-C is heard.
const NAP: Duration = Duration::from_millis(200);

/// Give a device at the end of a serial line an address, until Ctrl-C.
///
/// A leaf, which has no network, has a line at which its owner sits. As long as this runs, commands such
/// as `tenure enrol`, `invite`, `list`, `call` and `tree` reach the device by the address, one at a time.
/// The device may be plugged in later, or unplugged and plugged in again. Datagrams on the line are encrypted from end to end, as on a network.
///
/// Example: tenure serial /dev/ttyUSB0 --listen 127.0.0.1:7370
#[derive(clap::Args)]
pub struct Arguments {
    /// The terminal device.
    tty: PathBuf,
    /// How fast it is, in bits a second.
    #[arg(long, value_name = "RATE", default_value_t = BAUD)]
    baud: u32,
    /// The address to give it.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7370")]
    listen: String,
}

/// Runs `tenure serial` until it is told to stop.
///
/// # Errors
/// The terminal device is there and can't be opened, or breaks, or the address is taken.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    let mut line = SerialLink::open_or_await(&arguments.tty, arguments.baud)?;
    let mut network = UdpLink::bind(address_of(&arguments.listen, DEVICE_PORT)?)?;
    let (address, name) = (network.address().to_string(), line.name().to_string());
    output.line(
        &format!("the device at {name} is at {address}"),
        &serde_json::json!({ "event": "listening", "address": address, "line": name }),
    );
    // The sender of the last one: a line has one end.
    let mut asking: Option<SocketAddr> = None;
    let mut datagram = vec![0; SERIAL_FRAME_BYTES_MAX];
    let mut was_there = true;
    while !stop.is_requested() {
        for _ in 0..DATAGRAMS_PER_TURN {
            let Some((length, from)) = network.receive(&mut datagram)? else { break };
            asking = Some(from);
            // A datagram that the line has no room for is lost, and will be sent again.
            let _ = line.send(&(), &datagram[..length]);
        }
        while let Some((length, ())) = line.receive(&mut datagram)? {
            if let Some(to) = &asking {
                // As above.
                let _ = network.send(to, &datagram[..length]);
            }
        }
        if was_there != line.is_plugged_in() {
            was_there = line.is_plugged_in();
            tell_plugged(was_there, &name, output);
        }
        let sockets: Vec<&dyn AsFd> = line.socket().into_iter().chain([&network as _]).collect();
        wait_any(&sockets, if line.is_sending() { Duration::from_millis(1) } else { NAP })?;
    }
    output.line("stopped", &serde_json::json!({ "event": "stopped" }));
    Ok(())
}

/// Prints that the terminal device `name` isn't there, or that it came.
pub(crate) fn tell_plugged(is_there: bool, name: &str, output: &Output) {
    let (text, event) = if is_there {
        (format!("{name} is plugged in"), "plugged-in")
    } else {
        (format!("{name} isn't plugged in; it is used once it is"), "unplugged")
    };
    output.line(&text, &serde_json::json!({ "event": event, "line": name }));
}
