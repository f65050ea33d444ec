//! The codec of gRPC messages.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::{ProstDecoder, ProstEncoder};

/// The initial buffer of each of the four times that a call encodes or decodes a message; it grows for longer ones. Most
/// messages fit, and tonic's default of 8 KiB is too large for the allocator's per-thread cache (glibc: 1 032 bytes).
const BUFFER_BYTES: usize = 1_000;
/// How much of a stream is batched before it is flushed; tonic's default.
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
