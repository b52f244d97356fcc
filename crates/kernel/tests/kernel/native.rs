//! Native machines, which an engine runs that can write down where they stand.

use std::time::Duration;

use tenure_kernel::{Code, Engine, EngineError, EngineInstance, NativeParts, Ran, SleepError};
use tenure_vm::{InstanceConfig, Outcome, Value};
use tenure_wire::host_call::TABLE;
use tenure_wire::{CodeKind, Digest, MachineId};

use crate::world::{Device, text};

/// The engine's treatment of instances that slept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nature {
    Good,
    Forgetful,
    Elsewhere,
}

/// Where a program counts its runs; at 0 would be no pointer.
const COUNT: usize = 4;

struct Processor(Nature);

/// A program that sleeps for half a second and then replies with how often it has run.
struct Program {
    nature: Nature,
    memory: Vec<u8>,
    arguments: Vec<u64>,
}

impl Processor {
    fn load(&self, memory: Vec<u8>, arguments: Vec<u64>) -> Box<dyn EngineInstance> {
        Box::new(Program { nature: self.0, memory, arguments })
    }
}

impl Engine for Processor {
    fn kind(&self) -> CodeKind {
        CodeKind::Rv32
    }

    fn start(
        &mut self,
        _: &Digest,
        code: Code<'_>,
        _: &InstanceConfig,
    ) -> Result<Box<dyn EngineInstance>, EngineError> {
        assert!(matches!(code, Code::Native(_)));
        Ok(self.load(vec![b'0'; 64], Vec::new()))
    }

    fn resume(
        &mut self,
        _: Code<'_>,
        _: &InstanceConfig,
        state: &[u8],
    ) -> Result<Box<dyn EngineInstance>, EngineError> {
        match self.0 {
            Nature::Elsewhere => Err(EngineError::Place),
            _ => Ok(self.load(state.to_vec(), vec![500])),
        }
    }
}

impl EngineInstance for Program {
    fn prepare(&mut self, function: &str) -> bool {
        self.memory[COUNT] = b'0';
        function == "work"
    }

    fn run(&mut self, fuel: &mut u64, _: u32) -> Outcome {
        *fuel -= 1;
        self.memory[COUNT] += 1;
        let call = |name: &str| {
            let function = TABLE.iter().find(|function| function.name == name).unwrap();
            Outcome::HostCall { function: function.number }
        };
        match self.memory[COUNT] {
            b'1' => {
                self.arguments = vec![500];
                call("sleep_ms")
            }
            b'2' => {
                self.arguments = vec![COUNT as u64, 1];
                call("reply")
            }
            _ => Outcome::Done,
        }
    }

    fn host_arguments(&self) -> &[u64] {
        &self.arguments
    }

    fn finish_host_call(&mut self, _: &[Value]) -> bool {
        !std::mem::take(&mut self.arguments).is_empty()
    }

    fn suspend(&self, _: usize) -> Result<Option<Vec<u8>>, EngineError> {
        Ok((self.nature != Nature::Forgetful).then(|| self.memory.clone()))
    }

    fn memory(&self) -> &[u8] {
        &self.memory
    }

    fn memory_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }
}

/// A device with a native machine that sleeps in the middle of its call.
fn device(nature: Nature) -> (Device, MachineId, u64) {
    let mut device = Device::new();
    device.kernel.use_engine(Box::new(Processor(nature)));
    let binary = NativeParts {
        kind: CodeKind::Rv32,
        code: vec![0; 16],
        stack_bytes: 16,
        data: vec![0; 16],
        zero_bytes: 0,
        relocations: Vec::new(),
        exports: vec![("work".into(), 0)],
    };
    let worker = device.install_native("worker", &binary);
    let ticket = device.deliver(worker, "work", None).unwrap();
    device.settle(100);
    (device, worker, ticket)
}

#[test]
fn a_native_machine_goes_on_in_the_middle_of_a_call_after_a_deep_sleep() {
    let (device, _, ticket) = device(Nature::Good);
    let mut device = device.sleep(Duration::from_millis(100), &[]);
    device.kernel.use_engine(Box::new(Processor(Nature::Good)));
    let neighbour = device.install("neighbour", r#"(export "echo" (func $echo))"#);
    device.deliver(neighbour, "echo", None).unwrap();
    device.settle(100);
    let machine = device.kernel.machines().next().unwrap();
    assert!(machine.on_engine && machine.memory_bytes == 64, "it is there before anybody else is");
    device.pass(Duration::from_millis(399));
    assert!(matches!(device.step(), Ran::Idle { .. }), "its time has not come");
    device.pass(Duration::from_millis(1));
    device.settle(100);
    assert_eq!(text(device.replies.remove(&ticket).unwrap()), "2");
}

#[test]
fn a_native_machine_goes_on_where_the_device_did_not_sleep_after_all() {
    let (mut device, worker, ticket) = device(Nature::Good);
    let free = device.kernel.code().free_bytes();
    for _ in 0..100 {
        device.kernel.fall_asleep().unwrap();
        assert!(!device.kernel.machines().next().unwrap().is_swapped);
    }
    device.pass(Duration::from_millis(500));
    device.settle(100);
    assert_eq!(text(device.replies.remove(&ticket).unwrap()), "2");
    assert_eq!(device.kernel.code().free_bytes(), free);
    device.deliver(worker, "work", None).unwrap();
}

#[test]
fn a_native_machine_whose_place_is_taken_is_stopped_with_that_reason_and_starts_again() {
    let (device, worker, _) = device(Nature::Good);
    let mut device = device.sleep(Duration::from_millis(500), &[]);
    device.kernel.use_engine(Box::new(Processor(Nature::Elsewhere)));
    device.settle(100);
    assert!(device.logged("its place in memory was taken while it slept"), "{:?}", device.log);
    device.pass(Duration::from_secs(5));
    let ticket = device.deliver(worker, "work", None).unwrap();
    device.settle(100);
    device.pass(Duration::from_millis(500));
    device.settle(100);
    assert_eq!(text(device.replies.remove(&ticket).unwrap()), "2");
}

#[test]
fn an_engine_that_can_write_nothing_down_keeps_the_device_awake() {
    let (mut device, _, ticket) = device(Nature::Forgetful);
    let error = device.kernel.fall_asleep().unwrap_err();
    assert!(matches!(&error, SleepError::Engine { machine } if machine.as_str() == "worker"));
    device.pass(Duration::from_millis(500));
    device.settle(100);
    assert_eq!(text(device.replies.remove(&ticket).unwrap()), "2");
}
