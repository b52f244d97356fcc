//! Makes C of images, has this machine's compiler make a library of that, and loads it.

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

use tenure_compile::{C_FLAGS, Options, to_c};
use tenure_vm::Image;

/// The entry of compiled code.
pub(crate) type Enter = unsafe extern "C" fn(*mut usize);

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `RTLD_NOW` of Linux.
const NOW: c_int = 2;

/// A library, which stays loaded.
pub(crate) struct Library(*mut c_void);

impl Library {
    /// Compiles images; each gets an entry of its number.
    pub(crate) fn build<'i>(name: &str, images: impl Iterator<Item = &'i [u8]>) -> Library {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).expect("writable");
        let mut command = Command::new("cc");
        // Little native stack, so that deep calls begin anew.
        command.args(["-O1", "-w", "-shared", "-fPIC"]).args(C_FLAGS);
        for (n, bytes) in images.enumerate() {
            let image = Image::parse(bytes).expect("an image");
            let options =
                Options { entry: format!("entry{n}"), stack_bytes: 512, ..Options::default() };
            let file = folder.join(format!("{n}.c"));
            std::fs::write(&file, to_c(&image, &options).expect("known code")).expect("writable");
            command.arg(file);
        }
        let library = folder.join("all.so");
        let status = command.arg("-o").arg(&library).status().expect("cc is there");
        assert!(status.success(), "the C doesn't compile");
        let path = CString::new(library.as_os_str().as_bytes()).expect("no zero in it");
        // SAFETY: a C string; the library runs nothing when it is loaded.
        let library = unsafe { dlopen(path.as_ptr(), NOW) };
        assert!(!library.is_null(), "the library can't be loaded");
        Library(library)
    }

    pub(crate) fn entry(&self, n: usize) -> Enter {
        let name = CString::new(format!("entry{n}")).expect("no zero in it");
        // SAFETY: the library is loaded and the name a C string.
        let symbol = unsafe { dlsym(self.0, name.as_ptr()) };
        assert!(!symbol.is_null(), "no entry {n}");
        // SAFETY: that is the entry's type.
        unsafe { std::mem::transmute::<*mut c_void, Enter>(symbol) }
    }
}
