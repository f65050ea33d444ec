//! How messages become the bytes of a call, and messages again.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::{ProstDecoder, ProstEncoder};

/// What a call takes at once for each of the four times that it writes or reads a message; a longer message takes more. Most
/// are shorter, and the 8 KiB that tonic takes are more than an allocator gives from what a thread keeps at hand (glibc:
/// 1 032 bytes).
const BUFFER_BYTES: usize = 1_000;
/// As much of a stream is sent together, as tonic has it.
const TOGETHER_BYTES: usize = 32 * 1024;

/// The codec of every generated client and server: protobuf by prost.
#[derive(Debug)]
pub(crate) struct MessageCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for MessageCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for MessageCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = ProstDecoder<U>;

    fn encoder(&mut self) -> ProstEncoder<T> {
        ProstEncoder::new(BufferSettings::new(BUFFER_BYTES, TOGETHER_BYTES))
    }

    fn decoder(&mut self) -> ProstDecoder<U> {
        ProstDecoder::new(BufferSettings::new(BUFFER_BYTES, TOGETHER_BYTES))
    }
}
