//! A native machine: what every machine does, and each way to break out that there is.
#![no_std]

extern crate alloc;

use alloc::format;
use alloc::string::{String, ToString};
use core::cell::Cell;
use core::hint::black_box;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use tenure::{Error, events, host, log, secret, tree};

tenure::export!(
    place,
    entry,
    keep,
    count,
    ask,
    listen,
    on_door,
    doors,
    tell,
    read_secret,
    sleep,
    write,
    read,
    jump,
    privileged,
    overflow,
    spin,
    grow,
    bad_pointer,
    write_code,
    number,
    crash
);

/// In memory alone: gone when the machine is stopped.
static DOORS: AtomicU32 = AtomicU32::new(0);

fn entry() {
    log!("renegade is up");
    if tree::text("kept") == Ok(Some("labour".into())) {
        labour();
    }
}

/// Where one of its variables is.
fn place() -> String {
    format!("{:x}", DOORS.as_ptr().addr())
}

/// Stores a text, and gives what was there before.
fn keep(text: &str) -> Result<Option<String>, Error> {
    let before = tree::text("kept")?;
    tree::set_text("kept", text)?;
    Ok(before)
}

/// How often it was called since it was started: variables with a value, and a heap.
fn count() -> String {
    static CALLS: AtomicU32 = AtomicU32::new(100);
    let calls = CALLS.load(Ordering::Relaxed) + 1;
    CALLS.store(calls, Ordering::Relaxed);
    let numbers: alloc::vec::Vec<String> = (100..=calls).map(|number| number.to_string()).collect();
    numbers.join(" ")
}

/// "TARGET FUNCTION": calls it, with no parameter.
fn ask(words: &str) -> Result<String, String> {
    let (target, function) = words.split_once(' ').ok_or("two words, please")?;
    let answer = tenure::call(target, function, None).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&answer.unwrap_or_default()).into_owned())
}

fn listen() -> Result<(), Error> {
    events::subscribe("door.*").handler("on_door").start()
}

fn on_door(payload: &str) {
    log!("door: {payload}");
    DOORS.store(DOORS.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

fn doors() -> String {
    DOORS.load(Ordering::Relaxed).to_string()
}

fn tell(payload: &str) -> Result<String, Error> {
    events::publish("door.back", payload.as_bytes()).map(|queues| queues.to_string())
}

fn read_secret(name: &str) -> Result<String, String> {
    let value = secret::read(name).map_err(|error| error.to_string())?;
    Ok(value.map_or("none".into(), |value| String::from_utf8_lossy(&value).into_owned()))
}

fn sleep(milliseconds: &str) -> Result<String, core::num::ParseIntError> {
    let before = tenure::uptime();
    tenure::sleep(Duration::from_millis(milliseconds.parse()?));
    Ok((tenure::uptime() - before).as_millis().to_string())
}

/// Works for three seconds without a pause, and then rests; says how often time went on without it, and what
/// its heap held meanwhile. Once.
fn labour() {
    let _ = tree::delete("kept");
    let held: alloc::vec::Vec<_> = (0..32_u32).map(alloc::boxed::Box::new).collect();
    let began = tenure::uptime();
    let (mut last, mut sleeps) = (began, 0);
    while last - began < Duration::from_secs(3) {
        (0..10_000).for_each(|round| _ = black_box(round));
        let now = tenure::uptime();
        sleeps += u32::from(now - last > Duration::from_secs(1));
        last = now;
    }
    tenure::sleep(Duration::from_millis(2500));
    let rested = (tenure::uptime() - last).as_millis();
    let sum: u32 = held.iter().map(|number| **number).sum();
    log!("laboured through {sleeps} sleeps, holds {sum}, rested {rested} ms");
}

fn address(text: &str) -> Result<usize, core::num::ParseIntError> {
    usize::from_str_radix(text, 16)
}

/// Instructions that a processor ignores in an unprivileged program, without a fault: turning
/// interrupts off, taking another stack, becoming privileged.
fn seize() {
    #[cfg(target_arch = "arm")]
    // SAFETY: none; the device must see to it that this is in vain.
    unsafe {
        use core::arch::asm;
        asm!(
            "cpsid i",
            "msr control, {0}",
            "msr primask, {1}",
            "msr msp, {0}",
            "isb",
            in(reg) 0,
            in(reg) 1,
        );
    }
}

fn write(place: &str) -> Result<(), core::num::ParseIntError> {
    seize();
    // SAFETY: none; the device must stop this.
    unsafe { (address(place)? as *mut u32).write_volatile(0xA5A5_A5A5) };
    Ok(())
}

fn read(place: &str) -> Result<String, core::num::ParseIntError> {
    seize();
    // SAFETY: as above.
    Ok(format!("{:x}", unsafe { (address(place)? as *const u32).read_volatile() }))
}

fn jump(place: &str) -> Result<(), core::num::ParseIntError> {
    // A Thumb function's address is odd.
    let place = address(place)? | usize::from(cfg!(target_arch = "arm"));
    // SAFETY: as above.
    let there: extern "C" fn() = unsafe { core::mem::transmute(place) };
    there();
    Ok(())
}

/// Instructions for whoever is privileged alone.
fn privileged(which: &str) -> String {
    #[cfg(target_arch = "riscv32")]
    // SAFETY: as above.
    unsafe {
        use core::arch::asm;
        match which {
            "status" => asm!("csrsi mstatus, 8"),
            "protection" => asm!("csrw pmpcfg0, zero"),
            "vector" => asm!("csrw mtvec, zero"),
            "return" => asm!("mret"),
            "wait" => asm!("wfi"),
            _ => asm!("unimp"),
        }
    }
    #[cfg(target_arch = "arm")]
    // SAFETY: as above.
    unsafe {
        use core::arch::asm;
        match which {
            "coprocessor" => asm!(".inst.w 0xEE000000"),
            // To an even address, for instructions of another set.
            "state" => asm!("bx {0}", in(reg) write_code as *const () as usize & !1),
            "debugger" => asm!("bkpt #0xAB", inlateout("r0") 0x18 => _, in("r1") 0x20026),
            "unaligned" => asm!("ldm r1!, {{r2, r3}}", inlateout("r1") 0x1001 => _, out("r2") _, out("r3") _),
            "wait" => asm!("wfi"),
            _ => asm!("udf #0"),
        }
    }
    which.to_string()
}

fn overflow() -> String {
    fn deeper(depth: u32, above: &Cell<u32>) -> u32 {
        let here = Cell::new(black_box(above.get() + depth));
        if depth == u32::MAX { 0 } else { deeper(depth + 1, black_box(&here)) + here.get() }
    }
    deeper(black_box(0), &Cell::new(1)).to_string()
}

fn spin() {
    seize();
    loop {
        black_box(());
    }
}

/// Uses up its heap; a machine that has no more stops with a panic.
fn grow() -> String {
    let mut held = alloc::vec::Vec::new();
    loop {
        held.push(black_box([1_u8; 512]));
    }
}

const WIDE: usize = 0xFFFF_FFF0;

/// "CALL ADDRESS LENGTH": makes that host call with each of its pointers so; all must end the
/// machine, or be refused.
fn bad_pointer(words: &str) -> Result<String, &'static str> {
    let mut words = words.split(' ');
    let mut next = || words.next().ok_or("three words, please");
    let number: usize = next()?.parse().map_err(|_| "no number")?;
    let pointer = address(next()?).map_err(|_| "no address")?;
    let length = address(next()?).map_err(|_| "no length")?;
    let (bytes, room) = (pointer as *const u8, pointer as *mut u8);
    // SAFETY: as above.
    let result = unsafe {
        match number {
            0 => {
                host::log(2, bytes, length);
                0
            }
            3 => host::public_key(room, length),
            4 => host::caller(room, length),
            6 => host::parameter_read(0, room, length),
            7 => host::reply(bytes, length),
            8 => host::tree_set(bytes, length, 0, bytes, length),
            9 => host::tree_get(bytes, length, room, length),
            10 => host::tree_delete(bytes, length),
            11 => host::tree_list(b"".as_ptr(), 0, room, length),
            12 => host::call(bytes, length, bytes, length, bytes, length, 10),
            13 => host::result_read(0, room, length),
            14 => host::queue(
                bytes, length, bytes, length, bytes, length, bytes, length, bytes, length, 10, 0,
            ),
            17 => host::random(room, length),
            18 => host::peers(3, room, length),
            19 => host::resolve(bytes, length, room, length),
            20 => {
                host::abort(bytes, length);
                0
            }
            25 => host::timer_after(bytes, length, bytes, length, 10, 0),
            26 => host::timer_at(bytes, length, bytes, length, 10, 0),
            27 => host::timer_cancel(bytes, length),
            28 => host::timer_schedule(bytes, length, bytes, length, bytes, length),
            30 => host::publish(bytes, length, bytes, length),
            31 => host::subscribe(bytes, length, 0, 1, bytes, length),
            32 => host::unsubscribe(bytes, length),
            34 => host::event_topic(room, length),
            35 => host::event_read(0, room, length),
            37 => host::topic_dropped(bytes, length),
            40 => host::secret_read(bytes, length, room, length),
            _ => return Err("no such call"),
        }
    };
    Ok(result.to_string())
}

/// Lets the host write where the machine itself may not: to its own code.
fn write_code() -> String {
    let code = write_code as *const () as usize & !1;
    // SAFETY: as above.
    unsafe { host::random(code as *mut u8, 16) }.to_string()
}

/// A host call whose further arguments are nowhere, and one that isn't there.
fn number(which: &str) -> String {
    #[cfg(target_arch = "riscv32")]
    // SAFETY: as above.
    unsafe {
        use core::arch::asm;
        match which {
            "arguments" => asm!("ecall", in("a7") 14, inlateout("a0") 0 => _, in("a5") WIDE),
            _ => asm!("ecall", in("a7") 99, inlateout("a0") 0 => _),
        }
    }
    #[cfg(target_arch = "arm")]
    // SAFETY: as above.
    unsafe {
        use core::arch::asm;
        match which {
            "arguments" => asm!("svc #14", inlateout("r0") 0 => _, in("r5") WIDE),
            _ => asm!("svc #99", inlateout("r0") 0 => _),
        }
    }
    which.to_string()
}

fn crash() {
    panic!("on purpose");
}
