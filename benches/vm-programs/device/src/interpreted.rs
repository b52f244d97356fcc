//! The program in tenure-vm.

use alloc::{boxed::Box, vec::Vec};

use tenure_vm::{
    FunctionIndex, Image, Instance, InstanceConfig, Limits, NoHostFunctions, Outcome, Value,
    translate,
};

/// The step that failed.
pub struct Failed(pub u32);

/// An instance of the program.
pub struct Subject {
    image: Image<'static>,
    instance: Instance,
    function: FunctionIndex,
    fuel: u64,
}

impl Subject {
    pub fn new(module: &'static [u8]) -> Result<Subject, Failed> {
        let mut bytes = Vec::with_capacity(module.len() * 4);
        translate(module, &NoHostFunctions, &Limits::ample(), &mut bytes).or(Err(Failed(1)))?;
        let image = Image::parse(Box::leak(bytes.into_boxed_slice())).or(Err(Failed(2)))?;
        let config = InstanceConfig { stack_bytes: 64 * 1024, memory_bytes_max: 4 << 20 };
        let instance = Instance::new(&image, &config).or(Err(Failed(3)))?;
        let function = image.function("run").ok_or(Failed(4))?.index;
        Ok(Subject { image, instance, function, fuel: 0 })
    }

    pub fn run(&mut self) -> Result<u32, Failed> {
        let mut fuel = u64::MAX;
        self.instance.prepare(&self.image, self.function, &[]).or(Err(Failed(5)))?;
        match self.instance.run(&self.image, &mut fuel) {
            Outcome::Done => {}
            _ => return Err(Failed(6)),
        }
        self.fuel = u64::MAX - fuel;
        match self.instance.results(&self.image).next() {
            Some(Value::I32(result)) => Ok(result as u32),
            _ => Err(Failed(7)),
        }
    }

    /// Units of the last run.
    pub fn fuel(&self) -> u32 {
        self.fuel as u32
    }
}
