//! Archives for tests, with every field in the test's hands: the `zip` crate writes none that is hostile.

/// An entry as it is written.
#[derive(Clone)]
pub(crate) struct Raw {
    pub(crate) name: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) flags: u16,
    pub(crate) method: u16,
    /// What the heads say instead of the truth.
    pub(crate) size: Option<u32>,
    pub(crate) crc: Option<u32>,
    pub(crate) attributes: u32,
    /// Where the directory says that the entry is.
    pub(crate) place: Option<u32>,
}

impl Raw {
    pub(crate) fn new(name: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>) -> Self {
        Self {
            name: name.as_ref().to_vec(),
            bytes: bytes.as_ref().to_vec(),
            flags: 0,
            method: 0,
            size: None,
            crc: None,
            attributes: 0,
            place: None,
        }
    }

    fn head(&self) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).unwrap();
        let mut head = Vec::new();
        for number in [20, self.flags, self.method, 0, 0x21] {
            head.extend(u16::to_le_bytes(number));
        }
        let crc = self.crc.unwrap_or_else(|| crc32fast::hash(&self.bytes));
        for number in [crc, length, self.size.unwrap_or(length)] {
            head.extend(number.to_le_bytes());
        }
        head.extend(u16::try_from(self.name.len()).unwrap().to_le_bytes());
        head.extend(0_u16.to_le_bytes());
        head
    }
}

/// An archive of these entries, in their order.
pub(crate) fn archive(entries: &[Raw]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let place = entry.place.unwrap_or_else(|| u32::try_from(file.len()).unwrap());
        // Made on Unix, so that the attributes are a mode.
        directory.extend([&b"PK\x01\x02"[..], &[20, 3], &entry.head(), &[0; 6]].concat());
        directory.extend(entry.attributes.to_le_bytes());
        directory.extend(place.to_le_bytes());
        directory.extend(&entry.name);
        file.extend([&b"PK\x03\x04"[..], &entry.head(), &entry.name, &entry.bytes].concat());
    }
    let begin = u32::try_from(file.len()).unwrap();
    file.extend(&directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    let count = u16::try_from(entries.len() % 65_536).unwrap();
    file.extend(count.to_le_bytes());
    file.extend(count.to_le_bytes());
    file.extend(u32::try_from(directory.len()).unwrap().to_le_bytes());
    file.extend(begin.to_le_bytes());
    file.extend([0, 0]);
    file
}

/// An archive of texts.
pub(crate) fn texts(entries: &[(&str, &str)]) -> Vec<u8> {
    archive(&entries.iter().map(|(name, text)| Raw::new(name, text)).collect::<Vec<_>>())
}
