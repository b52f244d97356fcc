//! Peers in C, from the shared libraries that this machine happens to have, and our own library for C, as it ships.

use std::ffi::{CString, c_int, c_uchar, c_uint, c_ulonglong, c_void};
use std::path::Path;
use std::process::Command;
use std::ptr::{null, null_mut};

use libloading::{Library, Symbol};

/// One cipher of OpenSSL 3 behind its EVP interface.
pub(crate) struct OpenSsl {
    cipher: *const c_void,
    state: *mut c_void,
    init: InitFn,
    update: UpdateFn,
    finish: FinalFn,
    control: ControlFn,
    _library: Library,
}

type InitFn = unsafe extern "C" fn(
    *mut c_void,
    *const c_void,
    *const c_void,
    *const c_uchar,
    *const c_uchar,
) -> c_int;
type UpdateFn =
    unsafe extern "C" fn(*mut c_void, *mut c_uchar, *mut c_int, *const c_uchar, c_int) -> c_int;
type FinalFn = unsafe extern "C" fn(*mut c_void, *mut c_uchar, *mut c_int) -> c_int;
type ControlFn = unsafe extern "C" fn(*mut c_void, c_int, c_int, *mut c_void) -> c_int;

impl OpenSsl {
    /// `cipher` is the function that names it.
    pub(crate) fn load(cipher: &str) -> Option<Self> {
        let name = CString::new(cipher).ok()?;
        // SAFETY: the functions have these types since OpenSSL 1.1.
        unsafe {
            let library = Library::new("libcrypto.so.3").ok()?;
            let cipher: Symbol<'_, unsafe extern "C" fn() -> *const c_void> =
                library.get(name.as_bytes_with_nul()).ok()?;
            let new: Symbol<'_, unsafe extern "C" fn() -> *mut c_void> =
                library.get(b"EVP_CIPHER_CTX_new\0").ok()?;
            let (cipher, state) = (cipher(), new());
            let init: InitFn = *library.get(b"EVP_EncryptInit_ex\0").ok()?;
            let update = *library.get(b"EVP_EncryptUpdate\0").ok()?;
            let finish = *library.get(b"EVP_EncryptFinal_ex\0").ok()?;
            let control = *library.get(b"EVP_CIPHER_CTX_ctrl\0").ok()?;
            init(state, cipher, null(), null(), null());
            Some(Self { cipher, state, init, update, finish, control, _library: library })
        }
    }

    /// Key and nonce are set, and the data encrypted; the cipher was fetched before.
    pub(crate) fn stream(&mut self, key: &[u8; 32], nonce: &[u8; 16], data: &mut [u8]) {
        let mut len = 0;
        debug_assert!(!self.cipher.is_null());
        // SAFETY: the buffers are as long as the cipher and `data` say.
        unsafe {
            (self.init)(self.state, null(), null(), key.as_ptr(), nonce.as_ptr());
            let place = data.as_mut_ptr();
            (self.update)(self.state, place, &mut len, place, data.len() as c_int);
        }
        assert_eq!(len as usize, data.len());
    }

    /// Seals the data.
    pub(crate) fn aead(&mut self, key: &[u8; 32], nonce: &[u8; 12], data: &mut [u8]) -> [u8; 16] {
        const AEAD_GET_TAG: c_int = 0x10;
        let (mut tag, mut len, mut rest) = ([0u8; 16], 0, 0);
        // SAFETY: the buffers are as long as the cipher and `data` say.
        unsafe {
            (self.init)(self.state, null(), null(), key.as_ptr(), nonce.as_ptr());
            let place = data.as_mut_ptr();
            (self.update)(self.state, place, &mut len, place, data.len() as c_int);
            (self.finish)(self.state, place.add(data.len()), &mut rest);
            (self.control)(self.state, AEAD_GET_TAG, 16, tag.as_mut_ptr().cast());
        }
        assert_eq!(len as usize, data.len());
        tag
    }
}

/// The shared library of `bindings/cipher-c`.
pub(crate) struct OurLibrary {
    xor: XorFn,
    seal: SealFn,
    _library: Library,
}

type XorFn =
    unsafe extern "C" fn(*const c_uchar, *const c_uchar, u64, *mut c_uchar, usize) -> c_int;
type SealFn = unsafe extern "C" fn(
    *const c_uchar,
    *const c_uchar,
    *const c_uchar,
    usize,
    *mut c_uchar,
    usize,
    *mut c_uchar,
) -> c_int;

impl OurLibrary {
    /// Builds it as its page says, and loads it.
    pub(crate) fn load() -> Option<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/cipher-c");
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--release", "--quiet", "--manifest-path"]);
        let built = cargo.arg(folder.join("Cargo.toml")).env_remove("CARGO_TARGET_DIR").status();
        built.ok().filter(std::process::ExitStatus::success)?;
        // SAFETY: the functions have these types in `include/tenure_cipher.h`.
        unsafe {
            let library = Library::new(folder.join("target/release/libtenure_cipher.so")).ok()?;
            let xor = *library.get(b"tenure_chacha20_xor\0").ok()?;
            let seal = *library.get(b"tenure_chacha20_poly1305_seal\0").ok()?;
            Some(Self { xor, seal, _library: library })
        }
    }

    /// Encrypts the data.
    pub(crate) fn stream(&self, key: &[u8; 32], nonce: &[u8; 12], data: &mut [u8]) {
        // SAFETY: the buffers are as long as the header says.
        let result =
            unsafe { (self.xor)(key.as_ptr(), nonce.as_ptr(), 0, data.as_mut_ptr(), data.len()) };
        assert_eq!(result, 0);
    }

    /// Seals the data.
    pub(crate) fn aead(&self, key: &[u8; 32], nonce: &[u8; 12], data: &mut [u8]) -> [u8; 16] {
        let mut tag = [0; 16];
        let (place, length) = (data.as_mut_ptr(), data.len());
        // SAFETY: the buffers are as long as the header says; there is no header.
        let result = unsafe {
            (self.seal)(key.as_ptr(), nonce.as_ptr(), null(), 0, place, length, tag.as_mut_ptr())
        };
        assert_eq!(result, 0);
        tag
    }
}

/// libsodium.
pub(crate) struct Sodium {
    stream: StreamFn,
    aead: AeadFn,
    _library: Library,
}

type StreamFn = unsafe extern "C" fn(
    *mut c_uchar,
    *const c_uchar,
    c_ulonglong,
    *const c_uchar,
    c_uint,
    *const c_uchar,
) -> c_int;
type AeadFn = unsafe extern "C" fn(
    *mut c_uchar,
    *mut c_uchar,
    *mut c_ulonglong,
    *const c_uchar,
    c_ulonglong,
    *const c_uchar,
    c_ulonglong,
    *const c_uchar,
    *const c_uchar,
    *const c_uchar,
) -> c_int;

impl Sodium {
    /// Version 1.0.18 and later.
    pub(crate) fn load() -> Option<Self> {
        // SAFETY: the functions have had these types since libsodium 1.0.
        unsafe {
            let library = Library::new("libsodium.so.26")
                .or_else(|_| Library::new("libsodium.so.23"))
                .ok()?;
            let start: Symbol<'_, unsafe extern "C" fn() -> c_int> =
                library.get(b"sodium_init\0").ok()?;
            start();
            let stream = *library.get(b"crypto_stream_chacha20_ietf_xor_ic\0").ok()?;
            let aead =
                *library.get(b"crypto_aead_chacha20poly1305_ietf_encrypt_detached\0").ok()?;
            Some(Self { stream, aead, _library: library })
        }
    }

    /// Encrypts the data.
    pub(crate) fn stream(&self, key: &[u8; 32], nonce: &[u8; 12], data: &mut [u8]) {
        let place = data.as_mut_ptr();
        // SAFETY: the buffers are as long as libsodium says; in place is allowed.
        unsafe {
            (self.stream)(place, place, data.len() as u64, nonce.as_ptr(), 0, key.as_ptr());
        }
    }

    /// Seals the data.
    pub(crate) fn aead(&self, key: &[u8; 32], nonce: &[u8; 12], data: &mut [u8]) -> [u8; 16] {
        let mut tag = [0; 16];
        let place = data.as_mut_ptr();
        // SAFETY: the buffers are as long as libsodium says; in place is allowed.
        unsafe {
            (self.aead)(
                place,
                tag.as_mut_ptr(),
                null_mut(),
                place,
                data.len() as u64,
                null(),
                0,
                null(),
                nonce.as_ptr(),
                key.as_ptr(),
            );
        }
        tag
    }
}
