//! C functions over tenure-cipher: no allocation, no state between calls, no path that panics.
//!
//! `include/tenure_cipher.h` is generated from this file; its comments are these.
#![no_std]

use core::slice;

use tenure_cipher::{
    ChaCha8, ChaCha12, ChaCha20, ChaCha20Legacy, ChaCha20Poly1305, Form, Poly1305, Stream,
    XChaCha20, XChaCha20Poly1305,
};

/// What a function reports.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum TenureCipherResult {
    /// Done.
    Ok = 0,
    /// The caller asked for keystream past the end of the nonce's. Nothing was changed.
    TooLong = 1,
    /// The tag is wrong: the message was not sealed under this key. Nothing was changed.
    Forged = 2,
}

/// Linking fails if any path can panic: nothing defines this.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        fn tenure_cipher_has_a_path_that_panics() -> !;
    }
    // SAFETY: never linked, see above.
    unsafe { tenure_cipher_has_a_path_that_panics() }
}

/// Exclusive-ors `data` with the ChaCha20 keystream (RFC 8439) from byte `position` on.
///
/// `key` is 32 bytes, `nonce` 12, `data` `len`.
///
/// # Safety
/// The pointers must be valid for those lengths; `data` may be null if `len` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_chacha20_xor(
    key: *const u8,
    nonce: *const u8,
    position: u64,
    data: *mut u8,
    len: usize,
) -> TenureCipherResult {
    // SAFETY: as the caller promises.
    unsafe { xor(ChaCha20::with_key(&*key.cast(), &*nonce.cast()), position, data, len) }
}

/// The same with 12 rounds.
///
/// # Safety
/// As `tenure_chacha20_xor`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_chacha12_xor(
    key: *const u8,
    nonce: *const u8,
    position: u64,
    data: *mut u8,
    len: usize,
) -> TenureCipherResult {
    // SAFETY: as the caller promises.
    unsafe { xor(ChaCha12::with_key(&*key.cast(), &*nonce.cast()), position, data, len) }
}

/// The same with 8 rounds.
///
/// # Safety
/// As `tenure_chacha20_xor`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_chacha8_xor(
    key: *const u8,
    nonce: *const u8,
    position: u64,
    data: *mut u8,
    len: usize,
) -> TenureCipherResult {
    // SAFETY: as the caller promises.
    unsafe { xor(ChaCha8::with_key(&*key.cast(), &*nonce.cast()), position, data, len) }
}

/// The original ChaCha20, whose nonce is 8 bytes.
///
/// # Safety
/// As `tenure_chacha20_xor`, with a nonce of 8 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_chacha20_legacy_xor(
    key: *const u8,
    nonce: *const u8,
    position: u64,
    data: *mut u8,
    len: usize,
) -> TenureCipherResult {
    // SAFETY: as the caller promises.
    unsafe { xor(ChaCha20Legacy::with_key(&*key.cast(), &*nonce.cast()), position, data, len) }
}

/// XChaCha20, whose nonce is 24 bytes.
///
/// # Safety
/// As `tenure_chacha20_xor`, with a nonce of 24 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_xchacha20_xor(
    key: *const u8,
    nonce: *const u8,
    position: u64,
    data: *mut u8,
    len: usize,
) -> TenureCipherResult {
    // SAFETY: as the caller promises.
    unsafe { xor(XChaCha20::with_key(&*key.cast(), &*nonce.cast()), position, data, len) }
}

/// Encrypts `data` in place with ChaCha20-Poly1305 (RFC 8439) and writes the tag, 16 bytes, which
/// authenticates `header` too. `nonce` is 12 bytes and must never serve two messages of one key.
///
/// # Safety
/// `key` must be valid for 32 bytes, `nonce` for 12, `tag` for 16, the others for their lengths;
/// `data` and `tag` must not overlap anything else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_chacha20_poly1305_seal(
    key: *const u8,
    nonce: *const u8,
    header: *const u8,
    header_len: usize,
    data: *mut u8,
    len: usize,
    tag: *mut u8,
) -> TenureCipherResult {
    // SAFETY: as the caller promises.
    let (key, nonce, header, data) =
        unsafe { (&*key.cast(), &*nonce.cast(), bytes(header, header_len), bytes_mut(data, len)) };
    match ChaCha20Poly1305::with_key(key).seal(nonce, header, data) {
        // SAFETY: as the caller promises.
        Ok(made) => unsafe { *tag.cast() = made },
        Err(_) => return TenureCipherResult::TooLong,
    }
    TenureCipherResult::Ok
}

/// Checks the tag, then decrypts `data` in place. If the tag is wrong, `data` stays as it was.
///
/// # Safety
/// As `tenure_chacha20_poly1305_seal`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_chacha20_poly1305_open(
    key: *const u8,
    nonce: *const u8,
    header: *const u8,
    header_len: usize,
    data: *mut u8,
    len: usize,
    tag: *const u8,
) -> TenureCipherResult {
    // SAFETY: as the caller promises.
    let (key, nonce, header, data, tag) = unsafe {
        let (header, data) = (bytes(header, header_len), bytes_mut(data, len));
        (&*key.cast(), &*nonce.cast(), header, data, &*tag.cast())
    };
    opened(ChaCha20Poly1305::with_key(key).open(nonce, header, data, tag))
}

/// `tenure_chacha20_poly1305_seal` with a nonce of 24 bytes, which may be drawn at random.
///
/// # Safety
/// As `tenure_chacha20_poly1305_seal`, with a nonce of 24 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_xchacha20_poly1305_seal(
    key: *const u8,
    nonce: *const u8,
    header: *const u8,
    header_len: usize,
    data: *mut u8,
    len: usize,
    tag: *mut u8,
) -> TenureCipherResult {
    // SAFETY: as the caller promises.
    let (key, nonce, header, data) =
        unsafe { (&*key.cast(), &*nonce.cast(), bytes(header, header_len), bytes_mut(data, len)) };
    match XChaCha20Poly1305::with_key(key).seal(nonce, header, data) {
        // SAFETY: as the caller promises.
        Ok(made) => unsafe { *tag.cast() = made },
        Err(_) => return TenureCipherResult::TooLong,
    }
    TenureCipherResult::Ok
}

/// `tenure_chacha20_poly1305_open` with a nonce of 24 bytes.
///
/// # Safety
/// As `tenure_chacha20_poly1305_seal`, with a nonce of 24 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_xchacha20_poly1305_open(
    key: *const u8,
    nonce: *const u8,
    header: *const u8,
    header_len: usize,
    data: *mut u8,
    len: usize,
    tag: *const u8,
) -> TenureCipherResult {
    // SAFETY: as the caller promises.
    let (key, nonce, header, data, tag) = unsafe {
        let (header, data) = (bytes(header, header_len), bytes_mut(data, len));
        (&*key.cast(), &*nonce.cast(), header, data, &*tag.cast())
    };
    opened(XChaCha20Poly1305::with_key(key).open(nonce, header, data, tag))
}

/// Poly1305 of `data` under a one-time `key` of 32 bytes: one key, one message, no more.
///
/// # Safety
/// `key` must be valid for 32 bytes, `data` for `len`, `tag` for 16.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_poly1305(
    key: *const u8,
    data: *const u8,
    len: usize,
    tag: *mut u8,
) {
    // SAFETY: as the caller promises.
    unsafe {
        let mut poly1305 = Poly1305::with_key(&*key.cast());
        poly1305.update(bytes(data, len));
        *tag.cast() = poly1305.tag();
    }
}

/// # Safety
/// `data` must be valid for `len` bytes.
unsafe fn xor<const DOUBLE_ROUNDS: usize, F: Form>(
    mut stream: Stream<DOUBLE_ROUNDS, F>,
    position: u64,
    data: *mut u8,
    len: usize,
) -> TenureCipherResult {
    // SAFETY: as the caller promises.
    let data = unsafe { bytes_mut(data, len) };
    match stream.seek_to(position.into()).and_then(|()| stream.xor(data)) {
        Ok(()) => TenureCipherResult::Ok,
        Err(_) => TenureCipherResult::TooLong,
    }
}

fn opened(result: Result<(), tenure_cipher::AeadError>) -> TenureCipherResult {
    match result {
        Ok(()) => TenureCipherResult::Ok,
        Err(tenure_cipher::AeadError::TooLong) => TenureCipherResult::TooLong,
        Err(tenure_cipher::AeadError::Forged) => TenureCipherResult::Forged,
    }
}

/// A null pointer is an empty slice.
///
/// # Safety
/// `data` must be valid for `len` bytes, or null.
unsafe fn bytes<'a>(data: *const u8, len: usize) -> &'a [u8] {
    if data.is_null() || len > isize::MAX as usize {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { slice::from_raw_parts(data, len) }
}

/// # Safety
/// `data` must be valid for `len` bytes, or null, and not be reached in any other way.
unsafe fn bytes_mut<'a>(data: *mut u8, len: usize) -> &'a mut [u8] {
    if data.is_null() || len > isize::MAX as usize {
        return &mut [];
    }
    // SAFETY: as the caller promises.
    unsafe { slice::from_raw_parts_mut(data, len) }
}
