//! Machines whose code an engine compiles beside the device's turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure_kernel::{Code, Engine, EngineError, EngineInstance, Ran};
use tenure_vm::{InstanceConfig, Outcome, Value};
use tenure_wire::{CodeKind, Digest, MachineId, VerifyingKey};

use crate::world::Device;

const ECHO: &str = r#"(export "echo" (func $echo))"#;

/// A compiler that is done when it is told so.
struct Compiler(Arc<AtomicBool>);

/// A program that is done as soon as it is called.
struct Nothing;

impl Engine for Compiler {
    fn kind(&self) -> CodeKind {
        CodeKind::WebAssembly
    }

    fn is_prepared(&mut self, _: &Digest, _: &VerifyingKey, _: Code<'_>) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn start(
        &mut self,
        _: &Digest,
        _: Code<'_>,
        _: &InstanceConfig,
    ) -> Result<Box<dyn EngineInstance>, EngineError> {
        if self.0.load(Ordering::Relaxed) {
            Ok(Box::new(Nothing))
        } else {
            Err(EngineError::Compiling)
        }
    }
}

impl EngineInstance for Nothing {
    fn prepare(&mut self, _: &str) -> bool {
        true
    }

    fn run(&mut self, _: &mut u64, _: u32) -> Outcome {
        Outcome::Done
    }

    fn host_arguments(&self) -> &[u64] {
        &[]
    }

    fn finish_host_call(&mut self, _: &[Value]) -> bool {
        false
    }

    fn memory(&self) -> &[u8] {
        &[]
    }

    fn memory_mut(&mut self) -> &mut [u8] {
        &mut []
    }
}

/// A device with a machine that asks for an engine, and what says that its compiler is done.
fn device() -> (Device, MachineId, Arc<AtomicBool>) {
    let (mut device, done) = (Device::new(), Arc::new(AtomicBool::new(false)));
    device.kernel.use_engine(Box::new(Compiler(done.clone())));
    device.keeps_wasm = true;
    let fast = device.install("fast", ECHO);
    device.keeps_wasm = false;
    (device, fast, done)
}

#[test]
fn a_machine_waits_for_its_compiler_while_the_others_run() {
    let (mut device, fast, done) = device();
    let ticket = device.deliver(fast, "echo", Some(b"x")).unwrap();
    let other = device.install("other", ECHO);
    assert_eq!(device.call(other, "echo", Some(b"y")), Ok(Some(b"y".to_vec())));
    assert!(!device.replies.contains_key(&ticket));
    let Ran::Idle { until: Some(until) } = device.step() else { panic!("it runs") };
    assert!(until > device.now && until < device.now + Duration::from_secs(1), "it asks again");
    done.store(true, Ordering::Relaxed);
    device.settle(10);
    assert_eq!(device.replies.remove(&ticket), Some(Ok(None)), "the engine ran it");
    assert!(device.kernel.machines().next().unwrap().on_engine);
}

#[test]
fn a_compiler_that_takes_long_leaves_its_machine_to_the_vm_until_it_starts_again() {
    let (mut device, fast, done) = device();
    let ticket = device.deliver(fast, "echo", Some(b"x")).unwrap();
    device.settle(10);
    device.pass(Duration::from_secs(10));
    device.settle(10);
    assert_eq!(device.replies.remove(&ticket), Some(Ok(Some(b"x".to_vec()))), "the vm ran it");
    assert!(
        device.logged("until it starts again, not at native speed: it is still being compiled")
    );
    done.store(true, Ordering::Relaxed);
    device.call(fast, "echo", None).unwrap();
    assert!(!device.kernel.machines().next().unwrap().on_engine, "its memory stays where it is");
}
