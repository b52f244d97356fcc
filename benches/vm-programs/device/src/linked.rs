//! What is linked with this library runs the program: its own code, or another interpreter.

/// The step that failed.
pub struct Failed(pub u32);

unsafe extern "C" {
    fn subject_prepare(module: *const u8, length: u32) -> i32;
    fn subject_run() -> u32;
}

/// The one that is linked.
pub struct Subject;

impl Subject {
    pub fn new(module: &'static [u8]) -> Result<Subject, Failed> {
        // SAFETY: the module stays where it is.
        match unsafe { subject_prepare(module.as_ptr(), module.len() as u32) } {
            0 => Ok(Subject),
            step => Err(Failed(step as u32)),
        }
    }

    pub fn run(&mut self) -> Result<u32, Failed> {
        // SAFETY: it is prepared.
        Ok(unsafe { subject_run() })
    }

    /// It counts none.
    pub fn fuel(&self) -> u32 {
        0
    }
}
