//! C functions over tenure-cipher: no allocation, no state between calls, no path that panics.
//!
//! `include/tenure_cipher.h` is generated from this file; its comments are these.
#![no_std]

use core::slice;

use tenure_cipher::{
    Aead, AeadError, AeadForm, Extended, Form, Ietf, Legacy, Poly1305, Stream, TAG_BYTES,
};

/// The result of a function.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum TenureCipherResult {
    /// Done.
    Ok = 0,
    /// The caller asked for keystream past the end of the nonce's. Nothing was changed.
    TooLong = 1,
    /// The tag is wrong: the message was not sealed under this key. Nothing was changed.
    Forged = 2,
    /// The caller passed a null pointer for something that has bytes, a length that no object can
    /// have, or data that overlaps the header or the tag. Nothing was changed.
    BadArgument = 3,
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
/// Pointers that are not null must be valid for those lengths; `data` may be null if `len` is 0.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_chacha20_xor(
    key: *const u8,
    nonce: *const u8,
    position: u64,
    data: *mut u8,
    len: usize,
) -> TenureCipherResult {
    // SAFETY: as the caller promises.
    unsafe { xor::<10, Ietf>(key, nonce, position, data, len) }
}

/// The same with 12 rounds.
///
/// # Safety
/// As `tenure_chacha20_xor`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_chacha12_xor(
    key: *const u8,
    nonce: *const u8,
    position: u64,
    data: *mut u8,
    len: usize,
) -> TenureCipherResult {
    // SAFETY: as the caller promises.
    unsafe { xor::<6, Ietf>(key, nonce, position, data, len) }
}

/// The same with 8 rounds.
///
/// # Safety
/// As `tenure_chacha20_xor`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_chacha8_xor(
    key: *const u8,
    nonce: *const u8,
    position: u64,
    data: *mut u8,
    len: usize,
) -> TenureCipherResult {
    // SAFETY: as the caller promises.
    unsafe { xor::<4, Ietf>(key, nonce, position, data, len) }
}

/// The original ChaCha20, whose nonce is 8 bytes.
///
/// # Safety
/// As `tenure_chacha20_xor`, with a nonce of 8 bytes.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_chacha20_legacy_xor(
    key: *const u8,
    nonce: *const u8,
    position: u64,
    data: *mut u8,
    len: usize,
) -> TenureCipherResult {
    // SAFETY: as the caller promises.
    unsafe { xor::<10, Legacy>(key, nonce, position, data, len) }
}

/// XChaCha20, whose nonce is 24 bytes.
///
/// # Safety
/// As `tenure_chacha20_xor`, with a nonce of 24 bytes.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_xchacha20_xor(
    key: *const u8,
    nonce: *const u8,
    position: u64,
    data: *mut u8,
    len: usize,
) -> TenureCipherResult {
    // SAFETY: as the caller promises.
    unsafe { xor::<10, Extended>(key, nonce, position, data, len) }
}

/// Encrypts `data` in place with ChaCha20-Poly1305 (RFC 8439) and writes the tag, 16 bytes, which
/// authenticates `header` too. `nonce` is 12 bytes and must never serve two messages of one key.
///
/// # Safety
/// Pointers that are not null must be valid: `key` for 32 bytes, `nonce` for 12, `tag` for 16, the
/// others for their lengths. `header` and `data` may be null if their lengths are 0.
#[must_use]
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
    unsafe { seal::<Ietf>(key, nonce, (header, header_len), (data, len), tag) }
}

/// Checks the tag, then decrypts `data` in place. If the tag is wrong, `data` stays as it was.
///
/// # Safety
/// As `tenure_chacha20_poly1305_seal`.
#[must_use]
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
    unsafe { open::<Ietf>(key, nonce, (header, header_len), (data, len), tag) }
}

/// `tenure_chacha20_poly1305_seal` with a nonce of 24 bytes, which may be drawn at random.
///
/// # Safety
/// As `tenure_chacha20_poly1305_seal`, with a nonce of 24 bytes.
#[must_use]
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
    unsafe { seal::<Extended>(key, nonce, (header, header_len), (data, len), tag) }
}

/// `tenure_chacha20_poly1305_open` with a nonce of 24 bytes.
///
/// # Safety
/// As `tenure_chacha20_poly1305_seal`, with a nonce of 24 bytes.
#[must_use]
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
    unsafe { open::<Extended>(key, nonce, (header, header_len), (data, len), tag) }
}

/// Poly1305 of `data` under a one-time `key` of 32 bytes: one key, one message, no more.
///
/// # Safety
/// Pointers that are not null must be valid: `key` for 32 bytes, `data` for `len`, `tag` for 16.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_poly1305(
    key: *const u8,
    data: *const u8,
    len: usize,
    tag: *mut u8,
) -> TenureCipherResult {
    if key.is_null() || tag.is_null() || !is_object(data, len) {
        return TenureCipherResult::BadArgument;
    }
    // SAFETY: as the caller promises; the key is copied and the data read before the tag is written.
    unsafe {
        let mut poly1305 = Poly1305::with_key(&*key.cast());
        poly1305.update(bytes(data, len));
        *tag.cast() = poly1305.tag();
    }
    TenureCipherResult::Ok
}

/// # Safety
/// Each pointer that is not null must be valid, `data` for `len` bytes.
unsafe fn xor<const DOUBLE_ROUNDS: usize, F: Form>(
    key: *const u8,
    nonce: *const u8,
    position: u64,
    data: *mut u8,
    len: usize,
) -> TenureCipherResult {
    if key.is_null() || nonce.is_null() || !is_object(data, len) {
        return TenureCipherResult::BadArgument;
    }
    // SAFETY: as the caller promises; key and nonce are copied before the data is borrowed.
    let (mut stream, data) = unsafe {
        let stream = Stream::<DOUBLE_ROUNDS, F>::with_key(&*key.cast(), &*nonce.cast());
        (stream, bytes_mut(data, len))
    };
    match stream.seek_to(position.into()).and_then(|()| stream.xor(data)) {
        Ok(()) => TenureCipherResult::Ok,
        Err(_) => TenureCipherResult::TooLong,
    }
}

/// # Safety
/// Each pointer that is not null must be valid, `header` and `data` for the lengths beside them.
unsafe fn seal<F: AeadForm>(
    key: *const u8,
    nonce: *const u8,
    header: (*const u8, usize),
    data: (*mut u8, usize),
    tag: *mut u8,
) -> TenureCipherResult {
    if key.is_null() || nonce.is_null() || !are_apart(header, data, tag) {
        return TenureCipherResult::BadArgument;
    }
    // SAFETY: as the caller promises; key and nonce are copied before the data is borrowed, which
    // overlaps neither header nor tag.
    unsafe {
        let (aead, nonce) = (Aead::<F>::with_key(&*key.cast()), nonce.cast::<F::Nonce>().read());
        match aead.seal(&nonce, bytes(header.0, header.1), bytes_mut(data.0, data.1)) {
            Ok(made) => *tag.cast() = made,
            Err(_) => return TenureCipherResult::TooLong,
        }
    }
    TenureCipherResult::Ok
}

/// # Safety
/// Each pointer that is not null must be valid, `header` and `data` for the lengths beside them.
unsafe fn open<F: AeadForm>(
    key: *const u8,
    nonce: *const u8,
    header: (*const u8, usize),
    data: (*mut u8, usize),
    tag: *const u8,
) -> TenureCipherResult {
    if key.is_null() || nonce.is_null() || !are_apart(header, data, tag) {
        return TenureCipherResult::BadArgument;
    }
    // SAFETY: as in `seal`.
    let opened = unsafe {
        let (aead, nonce) = (Aead::<F>::with_key(&*key.cast()), nonce.cast::<F::Nonce>().read());
        let (header, data) = (bytes(header.0, header.1), bytes_mut(data.0, data.1));
        aead.open(&nonce, header, data, &*tag.cast())
    };
    match opened {
        Ok(()) => TenureCipherResult::Ok,
        Err(AeadError::TooLong) => TenureCipherResult::TooLong,
        Err(AeadError::Forged) => TenureCipherResult::Forged,
    }
}

/// Whether there can be such an object; null is one without bytes.
fn is_object(data: *const u8, len: usize) -> bool {
    let end = data.addr().checked_add(len);
    len == 0 || (!data.is_null() && len <= isize::MAX as usize && end.is_some())
}

/// Whether all are objects, and the data shares no byte with the others. Once, for four callers.
#[inline(never)]
fn are_apart(header: (*const u8, usize), data: (*mut u8, usize), tag: *const u8) -> bool {
    let apart = |other: *const u8, other_len: usize| {
        let (start, other_start) = (data.0.addr(), other.addr());
        let ends_before = other_start.checked_add(other_len).is_some_and(|end| end <= start);
        let begins_after = start.checked_add(data.1).is_some_and(|end| end <= other_start);
        data.1 == 0 || other_len == 0 || ends_before || begins_after
    };
    !tag.is_null()
        && is_object(header.0, header.1)
        && is_object(data.0, data.1)
        && apart(header.0, header.1)
        && apart(tag, TAG_BYTES)
}

/// No bytes, wherever the pointer points.
///
/// # Safety
/// `is_object(data, len)`, and `data` must be valid for `len` bytes.
unsafe fn bytes<'a>(data: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { slice::from_raw_parts(data, len) }
}

/// # Safety
/// As [`bytes`], and nobody else reaches these bytes meanwhile.
unsafe fn bytes_mut<'a>(data: *mut u8, len: usize) -> &'a mut [u8] {
    if len == 0 {
        return &mut [];
    }
    // SAFETY: as the caller promises.
    unsafe { slice::from_raw_parts_mut(data, len) }
}
