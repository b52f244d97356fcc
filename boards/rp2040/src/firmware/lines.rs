//! The lines: two UARTs, and a serial port over USB; and the console, which is text between frames.
//!
//! Bytes from a UART are laid into a ring of RAM by direct memory access, since nothing that stands in flash, an
//! interrupt handler or the loop, runs while flash is erased: at 115,200 bits a second 500 bytes come meanwhile.

use alloc::boxed::Box;
use core::fmt;

use rp2040_hal::pac;
use rp2040_hal::usb::UsbBus;
use tenure_board_rp2040::chip::Chip;
use tenure_hal::LinkError;
use tenure_mesh::Port;
use usb_device::bus::UsbBusAllocator;
use usb_device::device::{
    StringDescriptors, UsbDevice, UsbDeviceBuilder, UsbDeviceState, UsbVidPid,
};
use usbd_serial::SerialPort;

/// 115,200 bits a second at 125 MHz: 67 and 52/64.
const DIVIDED_BY: (u16, u8) = (67, 52);
const RING_BYTES: usize = 2048;
/// The logarithm of a ring's length, as the controller wants it.
const RING_BITS: u8 = 11;
const _: () = assert!(1 << RING_BITS == RING_BYTES);
/// The number that a transfer counts down from; the channel is started again when it is done, after four days of traffic.
const TRANSFER: u32 = u32::MAX;

/// A ring, aligned to its length.
#[repr(C, align(2048))]
struct Ring([u8; RING_BYTES]);

#[unsafe(link_section = ".banks")]
static mut RINGS: [Ring; 2] = [const { Ring([0; RING_BYTES]) }; 2];

/// One of the UARTs, with its ring.
#[derive(Debug)]
pub(super) struct Uart {
    /// 0 or 1.
    number: usize,
    /// How much of what has come was taken, as the transfer counts.
    taken: u32,
}

impl Uart {
    /// Starts both, and the transfers.
    pub(super) fn start(resets: &mut pac::RESETS, dma: &mut pac::DMA) -> [Self; 2] {
        resets.reset().modify(|_, w| w.uart0().clear_bit().uart1().clear_bit().dma().clear_bit());
        loop {
            let done = resets.reset_done().read();
            if done.uart0().bit() && done.uart1().bit() && done.dma().bit() {
                break;
            }
        }
        [0, 1].map(|number| {
            let line = Self { number, taken: 0 };
            line.start_uart();
            line.start_transfer(dma);
            line
        })
    }

    fn registers(&self) -> &'static pac::uart0::RegisterBlock {
        // SAFETY: registers of the chip for good; both UARTs are alike (data sheet, 4.2).
        unsafe { if self.number == 0 { &*pac::UART0::ptr() } else { &*pac::UART1::ptr() } }
    }

    fn channel(&self) -> &'static pac::dma::CH {
        // SAFETY: registers of the chip for good; this line's channel is nobody else's.
        unsafe { (*pac::DMA::ptr()).ch(self.number) }
    }

    fn start_uart(&self) {
        let uart = self.registers();
        // SAFETY: the values are the data sheet's, 4.2.7.
        unsafe {
            uart.uartibrd().write(|w| w.bits(DIVIDED_BY.0.into()));
            uart.uartfbrd().write(|w| w.bits(DIVIDED_BY.1.into()));
            uart.uartlcr_h().write(|w| w.wlen().bits(0b11).fen().set_bit());
        }
        uart.uartdmacr().write(|w| w.rxdmae().set_bit());
        uart.uartcr().write(|w| w.uarten().set_bit().txe().set_bit().rxe().set_bit());
    }

    fn start_transfer(&self, _: &mut pac::DMA) {
        let channel = self.channel();
        let from = self.registers().uartdr().as_ptr();
        channel.ch_read_addr().write(|w| {
            // SAFETY: the UART's data register.
            unsafe { w.bits(from as u32) }
        });
        let ring = self.ring();
        // SAFETY: the ring, which is this channel's.
        channel.ch_write_addr().write(|w| unsafe { w.bits(ring as u32) });
        self.begin();
    }

    /// Lets the channel count down from the beginning, from wherever it is in the ring.
    fn begin(&self) {
        let channel = self.channel();
        // The request lines of both receivers (data sheet, 2.5.3.1).
        let request = [21, 23][self.number];
        // SAFETY: bytes, from one address into a ring, at the pace of the receiver, chained to nothing but itself.
        unsafe {
            channel.ch_trans_count().write(|w| w.bits(TRANSFER));
            channel.ch_ctrl_trig().write(|w| {
                w.treq_sel().bits(request);
                w.chain_to().bits(self.number as u8);
                w.ring_sel().set_bit().ring_size().bits(RING_BITS);
                w.incr_write().set_bit().incr_read().clear_bit();
                w.data_size().size_byte().en().set_bit()
            });
        }
    }

    fn ring(&self) -> *mut u8 {
        (&raw mut RINGS).cast::<Ring>().wrapping_add(self.number).cast()
    }

    fn try_send(&self, byte: u8) -> bool {
        let has_room = self.registers().uartfr().read().txff().bit_is_clear();
        if has_room {
            // SAFETY: any byte may be sent.
            self.registers().uartdr().write(|w| unsafe { w.data().bits(byte) });
        }
        has_room
    }
}

impl Uart {
    fn take(&mut self, into: &mut [u8]) -> usize {
        let arrived = TRANSFER - self.channel().ch_trans_count().read().bits();
        let waiting = arrived.wrapping_sub(self.taken) as usize;
        // Bytes that the ring had no room for are lost, and the frames with it: those are sent again.
        let lost = waiting.saturating_sub(RING_BYTES);
        let count = (waiting - lost).min(into.len());
        let from = self.taken as usize + lost;
        for (index, byte) in into[..count].iter_mut().enumerate() {
            // SAFETY: inside the ring.
            *byte = unsafe { self.ring().add((from + index) % RING_BYTES).read_volatile() };
        }
        self.taken = self.taken.wrapping_add((lost + count) as u32);
        if arrived == TRANSFER && self.taken == TRANSFER {
            // The ring goes on where it is: `TRANSFER` bytes are one less than a multiple of its length.
            self.channel().ch_write_addr().write(|w| {
                // SAFETY: the ring's beginning.
                unsafe { w.bits(self.ring() as u32) }
            });
            self.taken = 0;
            self.begin();
        }
        count
    }
}

type Bus = UsbBusAllocator<UsbBus>;

/// The serial port over USB.
pub(super) struct Usb {
    port: SerialPort<'static, UsbBus>,
    device: UsbDevice<'static, UsbBus>,
}

/// Starts the USB controller. Its vendor and product are those that Raspberry Pi lets CDC-ACM devices of this chip use.
pub(super) fn start_usb(
    controller: pac::USBCTRL_REGS,
    memory: pac::USBCTRL_DPRAM,
    chip: &mut Chip,
) -> Usb {
    // SAFETY: the clock is running and stays so; nothing else takes it.
    let clocks = unsafe { core::ptr::read(&raw const chip.clocks.usb_clock) };
    let bus = UsbBus::new(controller, memory, clocks, true, &mut chip.resets);
    let bus: &'static Bus = Box::leak(Box::new(UsbBusAllocator::new(bus)));
    let port = SerialPort::new(bus);
    let words = StringDescriptors::default().manufacturer("Tenure").product("Tenure device");
    let device = UsbDeviceBuilder::new(bus, UsbVidPid(0x2E8A, 0x000A))
        .strings(&[words])
        .expect("one language")
        .device_class(usbd_serial::USB_CLASS_CDC)
        .build();
    Usb { port, device }
}

impl Usb {
    fn is_open(&self) -> bool {
        self.device.state() == UsbDeviceState::Configured && self.port.dtr()
    }
}

/// A line of this board.
#[expect(clippy::large_enum_variant, reason = "there are three of them, for good")]
pub(super) enum Wire {
    /// A UART's.
    Uart(Uart),
    /// Over USB.
    Usb(Usb),
}

impl Port for Wire {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        match self {
            Self::Uart(uart) => Ok(uart.take(into)),
            Self::Usb(usb) => {
                usb.device.poll(&mut [&mut usb.port]);
                // A host that isn't there has nothing to say.
                Ok(usb.port.read(into).unwrap_or(0))
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<usize, LinkError> {
        match self {
            Self::Uart(uart) => Ok(bytes.iter().take_while(|byte| uart.try_send(**byte)).count()),
            // Nobody is there: what is said is lost, as on any line.
            Self::Usb(usb) if !usb.is_open() => Ok(bytes.len()),
            Self::Usb(usb) => {
                let taken = usb.port.write(bytes).unwrap_or(0);
                // Bytes that the host hasn't fetched yet are offered again at the next poll.
                let _ = usb.port.flush();
                Ok(taken)
            }
        }
    }
}

/// The console: text on the second UART, between zeros, so that no frame is mistaken for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let line = Uart { number: 1, taken: 0 };
        for byte in [0].into_iter().chain(text.bytes()).chain([0]) {
            while !line.try_send(byte) {}
        }
        Ok(())
    }
}
