//! As much of a 32-bit little-endian ELF file as running it takes.

/// An image: where its bytes go, and its symbols.
pub(crate) struct Image {
    /// Address and contents of each loaded segment.
    pub(crate) segments: Vec<(u32, Vec<u8>)>,
    symbols: Vec<(String, u32, u32)>,
}

impl Image {
    /// Parses a file; `None` if it is not such an ELF file.
    pub(crate) fn parse(file: &[u8]) -> Option<Self> {
        let u16_at = |at: usize| Some(u16::from_le_bytes(file.get(at..at + 2)?.try_into().ok()?));
        let u32_at = |at: usize| Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?));
        if file.get(..6)? != b"\x7fELF\x01\x01" {
            return None;
        }
        let mut segments = Vec::new();
        for i in 0..usize::from(u16_at(44)?) {
            const LOAD: u32 = 1;
            let header = u32_at(28)? as usize + 32 * i;
            if u32_at(header)? == LOAD {
                let (offset, size) = (u32_at(header + 4)? as usize, u32_at(header + 16)? as usize);
                segments.push((u32_at(header + 8)?, file.get(offset..offset + size)?.to_vec()));
            }
        }
        let mut symbols = Vec::new();
        for i in 0..usize::from(u16_at(48)?) {
            const SYMBOL_TABLE: u32 = 2;
            let section = |i: usize| u32_at(32).map(|start| start as usize + 40 * i);
            let header = section(i)?;
            if u32_at(header + 4)? != SYMBOL_TABLE {
                continue;
            }
            let names = u32_at(section(u32_at(header + 24)? as usize)? + 16)? as usize;
            let (offset, size) = (u32_at(header + 16)? as usize, u32_at(header + 20)? as usize);
            for symbol in (offset..offset + size).step_by(16) {
                let name = file.get(names + u32_at(symbol)? as usize..)?;
                let end = name.iter().position(|byte| *byte == 0)?;
                let name = String::from_utf8_lossy(&name[..end]).into_owned();
                symbols.push((name, u32_at(symbol + 4)?, u32_at(symbol + 8)?));
            }
        }
        Some(Self { segments, symbols })
    }

    /// The bytes from one symbol to another.
    #[allow(dead_code, reason = "for the test of the loops' sizes")]
    pub(crate) fn distance(&self, from: &str, to: &str) -> Option<u32> {
        self.address(to)?.checked_sub(self.address(from)?)
    }

    /// The address of a symbol.
    pub(crate) fn address(&self, name: &str) -> Option<u32> {
        self.symbols.iter().find(|symbol| symbol.0 == name).map(|symbol| symbol.1)
    }
}
