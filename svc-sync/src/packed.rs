//! Compressed blobs: eight bytes of uncompressed size, then a zstd frame.

use cairn_chassis::sql;
use serde::Serialize;
use serde::de::DeserializeOwned;

const LEVEL: i32 = 1;
/// Uncompressed size of any blob: twice that of a manifest of 5 000 long paths.
const MAX_BYTES: usize = 128 * 1024 * 1024;
const SIZE_BYTES: usize = 8;

/// Compresses bytes.
pub(crate) fn pack(bytes: &[u8]) -> Result<Vec<u8>, sql::Error> {
    let frame =
        zstd::bulk::compress(bytes, LEVEL).map_err(|_| sql::Error::corrupt("a blob cannot be packed"))?;
    let mut packed = (bytes.len() as u64).to_le_bytes().to_vec();
    packed.extend(frame);
    Ok(packed)
}

/// Decompresses a blob. A size other than the recorded one is corruption, so that a decompression bomb cannot exhaust memory.
pub(crate) fn unpack(packed: &[u8]) -> Result<Vec<u8>, sql::Error> {
    let damaged = || sql::Error::corrupt("a blob of a sync run is damaged");
    let (size, frame) = packed.split_first_chunk::<SIZE_BYTES>().ok_or_else(damaged)?;
    let size = usize::try_from(u64::from_le_bytes(*size)).ok().filter(|size| *size <= MAX_BYTES);
    let size = size.ok_or_else(damaged)?;
    let bytes = zstd::bulk::decompress(frame, size).map_err(|_| damaged())?;
    if bytes.len() == size { Ok(bytes) } else { Err(damaged()) }
}

/// Serializes a value as compressed JSON.
pub(crate) fn pack_json<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, sql::Error> {
    let json = serde_json::to_vec(value).map_err(|_| sql::Error::corrupt("a value cannot be written"))?;
    pack(&json)
}

/// Deserializes a value from compressed JSON.
pub(crate) fn unpack_json<T: DeserializeOwned>(packed: &[u8]) -> Result<T, sql::Error> {
    let json = unpack(packed)?;
    serde_json::from_slice(&json)
        .map_err(|_| sql::Error::corrupt("a blob of a sync run holds something else"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_and_what_is_damaged_is_said() {
        let text = "again and ".repeat(1_000);
        let packed = pack_json(&text).unwrap();
        assert!(packed.len() < 200);
        assert_eq!(unpack_json::<String>(&packed).unwrap(), text);
        assert!(unpack_json::<u64>(&packed).is_err());
        let mut short = packed.clone();
        short.truncate(4);
        let mut huge = packed.clone();
        huge[..SIZE_BYTES].copy_from_slice(&u64::MAX.to_le_bytes());
        let mut larger = packed;
        larger[0] += 1;
        for odd in [short, huge, larger] {
            assert!(unpack(&odd).is_err());
        }
    }
}
