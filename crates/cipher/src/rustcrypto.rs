//! The traits of the RustCrypto crates `cipher` and `aead`, under the names of `chacha20` and
//! `chacha20poly1305`.

use aead::{AeadCore, AeadInOut, TagPosition};
use cipher::array::Array;
use cipher::consts::{U8, U12, U16, U24, U32};
use cipher::inout::InOutBuf;
use cipher::{
    AlgorithmName, Iv, IvSizeUser, Key, KeyInit, KeyIvInit, KeySizeUser, StreamCipher,
    StreamCipherError, StreamCipherSeek,
};

use crate::aead::{Aead, AeadForm};
use crate::chacha::{BLOCK_BYTES, Extended, Form, Ietf, Legacy};
use crate::stream::Stream;

impl<const DOUBLE_ROUNDS: usize, F: Form> KeySizeUser for Stream<DOUBLE_ROUNDS, F> {
    type KeySize = U32;
}

/// Nonce lengths as types, and the way from RustCrypto's arrays to ours.
macro_rules! nonces {
    ($($form:ident $size:ident $name:literal;)*) => {$(
        impl<const DOUBLE_ROUNDS: usize> IvSizeUser for Stream<DOUBLE_ROUNDS, $form> {
            type IvSize = $size;
        }

        impl<const DOUBLE_ROUNDS: usize> KeyIvInit for Stream<DOUBLE_ROUNDS, $form> {
            fn new(key: &Key<Self>, nonce: &Iv<Self>) -> Self {
                Self::with_key(&key.0, &nonce.0)
            }
        }

        impl<const DOUBLE_ROUNDS: usize> AlgorithmName for Stream<DOUBLE_ROUNDS, $form> {
            fn write_alg_name(f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, $name, 2 * DOUBLE_ROUNDS)
            }
        }
    )*};
}

nonces! {
    Ietf U12 "ChaCha{}";
    Legacy U8 "ChaCha{}Legacy";
    Extended U24 "XChaCha{}";
}

impl<const DOUBLE_ROUNDS: usize, F: Form> StreamCipher for Stream<DOUBLE_ROUNDS, F> {
    fn check_remaining(&self, data_len: usize) -> Result<(), StreamCipherError> {
        if data_len as u128 > self.remaining() { Err(StreamCipherError) } else { Ok(()) }
    }

    fn unchecked_apply_keystream_inout(&mut self, data: InOutBuf<'_, '_, u8>) {
        self.xor_or_panic(data.into_out_with_copied_in());
    }

    fn unchecked_write_keystream(&mut self, data: &mut [u8]) {
        data.fill(0);
        self.xor_or_panic(data);
    }
}

impl<const DOUBLE_ROUNDS: usize, F: Form> Stream<DOUBLE_ROUNDS, F> {
    /// The trait's unchecked methods may wrap the counter; these never do.
    fn xor_or_panic(&mut self, data: &mut [u8]) {
        assert!(self.check_remaining(data.len()).is_ok(), "end of keystream reached");
        self.xor_within(data);
    }
}

impl<const DOUBLE_ROUNDS: usize, F: Form> StreamCipherSeek for Stream<DOUBLE_ROUNDS, F> {
    fn try_current_pos<T: cipher::SeekNum>(&self) -> Result<T, cipher::OverflowError> {
        let position = self.position();
        let block = position.div_ceil(BLOCK_BYTES as u128);
        let byte = (position % BLOCK_BYTES as u128) as u8;
        // The trait wants the byte in 1..=64 of the block before `block`.
        let byte = if byte == 0 { BLOCK_BYTES as u8 } else { byte };
        T::from_block_byte(block, byte, BLOCK_BYTES as u8)
    }

    fn try_seek<T: cipher::SeekNum>(&mut self, position: T) -> Result<(), StreamCipherError> {
        let (block, byte) =
            position.into_block_byte::<u128>(BLOCK_BYTES as u8).map_err(|_| StreamCipherError)?;
        let position = block * BLOCK_BYTES as u128 + u128::from(byte);
        self.seek_to(position).map_err(|_| StreamCipherError)
    }
}

impl<F: AeadForm> KeySizeUser for Aead<F> {
    type KeySize = U32;
}

impl<F: AeadForm> KeyInit for Aead<F> {
    fn new(key: &Key<Self>) -> Self {
        Self::with_key(&key.0)
    }
}

/// The two AEADs' nonce lengths as types.
macro_rules! aeads {
    ($($form:ident $size:ident;)*) => {$(
        impl AeadCore for Aead<$form> {
            type NonceSize = $size;
            type TagSize = U16;
            const TAG_POSITION: TagPosition = TagPosition::Postfix;
        }

        impl AeadInOut for Aead<$form> {
            fn encrypt_inout_detached(
                &self,
                nonce: &Array<u8, $size>,
                header: &[u8],
                data: InOutBuf<'_, '_, u8>,
            ) -> aead::Result<Array<u8, U16>> {
                let sealed = self.seal(&nonce.0, header, data.into_out_with_copied_in());
                sealed.map(Array).map_err(|_| aead::Error)
            }

            fn decrypt_inout_detached(
                &self,
                nonce: &Array<u8, $size>,
                header: &[u8],
                data: InOutBuf<'_, '_, u8>,
                tag: &Array<u8, U16>,
            ) -> aead::Result<()> {
                self.open(&nonce.0, header, data.into_out_with_copied_in(), &tag.0).map_err(|_| aead::Error)
            }
        }
    )*};
}

aeads! {
    Ietf U12;
    Extended U24;
}
