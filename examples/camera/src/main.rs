//! `tenure-camera`: the frame rate of a camera with and without encryption on its way out.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;

use crate::camera::{Camera, FRAME_BYTES, FRAMES_PER_SECOND};
use crate::link::{Failure, Link};

mod camera;
mod link;

/// Stream a camera's frames, plain and encrypted by a cluster of threads, and print the frame rates.
#[derive(Parser)]
#[command(name = "tenure-camera", version)]
#[command(after_help = "Example: tenure-camera --seconds 5 --cores 2")]
struct Arguments {
    /// How long each of the four runs takes.
    #[arg(long, default_value = "2", value_name = "N", value_parser = seconds)]
    seconds: Duration,
    /// Cores that encrypt, 1 to 16; all, if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    cores: Option<u8>,
    /// One JSON object a line: paced, encrypted, cores, frame_bytes, frames, frames_per_second.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("tenure-camera: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut link = Link::new(arguments.cores.map(usize::from))?;
    for paced in [true, false] {
        for encrypted in [false, true] {
            let begin = Instant::now();
            let frames = stream(&mut link, arguments.seconds, paced, encrypted)?;
            let rate = f64::from(frames) / begin.elapsed().as_secs_f64();
            print(arguments, &link, paced, encrypted, frames, rate);
        }
    }
    Ok(())
}

/// Frames that arrived within `duration`.
fn stream(
    link: &mut Link,
    duration: Duration,
    paced: bool,
    encrypted: bool,
) -> Result<u32, Failure> {
    let mut camera = Camera::default();
    let begin = Instant::now();
    let mut frames = 0;
    while begin.elapsed() < duration {
        let frame = camera.take();
        if encrypted {
            link.send_encrypted(&frame)?
        } else {
            link.send(&frame)
        }
        frames += 1;
        if paced {
            let next = Duration::from_secs(1) / FRAMES_PER_SECOND * frames;
            std::thread::sleep(next.saturating_sub(begin.elapsed()));
        }
    }
    Ok(frames)
}

fn print(arguments: &Arguments, link: &Link, paced: bool, encrypted: bool, frames: u32, rate: f64) {
    if arguments.json {
        let line = serde_json::json!({
            "paced": paced,
            "encrypted": encrypted,
            "cores": link.cores(),
            "frame_bytes": FRAME_BYTES,
            "frames": frames,
            "frames_per_second": rate,
        });
        println!("{line}");
        return;
    }
    let how = if encrypted { "encrypted" } else { "plain" };
    let source = if paced { "as the camera gives them" } else { "as fast as possible" };
    println!("{how:<9} {rate:>11.1} frames/s, {source}");
}

/// Up to an hour, in seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds <= 3600.0);
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "a number above 0, at most 3600".into())
}
