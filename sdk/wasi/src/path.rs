//! Paths in the tree, and how names of files become names in it.
//!
//! A folder's name in the tree is a file's or folder's own, in which a dot, a percent sign and control characters are written
//! as `%2E`, `%25` and so on, as in a URL: `/etc/app.conf` lies at `etc.app%2Econf`. The name `%` is thus nobody's, and below it
//! stands what a node has besides: see [`crate::node`].

use crate::errno::Errno;

/// The longest path in a tree.
pub(crate) const PATH_BYTES_MAX: usize = 128;
/// The room that a file's path leaves for those of its parts, `.%.511.1`.
const SUFFIX_BYTES_MAX: usize = 8;
/// The longest path of a file or folder.
pub(crate) const FILE_PATH_BYTES_MAX: usize = PATH_BYTES_MAX - SUFFIX_BYTES_MAX;

/// The name below which stands what a node has besides.
pub(crate) const BESIDES: &[u8] = b"%";

const HEX_DIGITS: [u8; 16] = *b"0123456789ABCDEF";

/// A path in the tree.
#[derive(Clone, Copy)]
pub(crate) struct TreePath {
    length: u8,
    bytes: [u8; PATH_BYTES_MAX],
}

impl TreePath {
    /// The tree itself.
    pub(crate) const ROOT: Self = Self { length: 0, bytes: [0; PATH_BYTES_MAX] };

    /// The path that is written so.
    pub(crate) fn new(path: &[u8]) -> Result<Self, Errno> {
        let mut new = Self::ROOT;
        for byte in path {
            new.push_byte(*byte, FILE_PATH_BYTES_MAX)?;
        }
        Ok(new)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length.into()).unwrap_or_default()
    }

    pub(crate) fn is_root(&self) -> bool {
        self.length == 0
    }

    /// Appends the name of a file or folder, as a program writes it.
    pub(crate) fn push_name(&mut self, name: &[u8]) -> Result<(), Errno> {
        let before = self.length;
        self.try_push_name(name).inspect_err(|_| self.length = before)
    }

    fn try_push_name(&mut self, name: &[u8]) -> Result<(), Errno> {
        if !self.is_root() {
            self.push_byte(b'.', FILE_PATH_BYTES_MAX)?;
        }
        for byte in name {
            if matches!(byte, b'.' | b'%' | 0..=0x1f | 0x7f) {
                for part in [b'%', hex(byte >> 4), hex(byte & 0xf)] {
                    self.push_byte(part, FILE_PATH_BYTES_MAX)?;
                }
            } else {
                self.push_byte(*byte, FILE_PATH_BYTES_MAX)?;
            }
        }
        Ok(())
    }

    /// Appends a name as the tree has it.
    pub(crate) fn push(&mut self, name: &[u8]) -> Result<(), Errno> {
        let before = self.length;
        let mut push = || {
            if before > 0 {
                self.push_byte(b'.', PATH_BYTES_MAX)?;
            }
            name.iter().try_for_each(|byte| self.push_byte(*byte, PATH_BYTES_MAX))
        };
        push().inspect_err(|_| self.length = before)
    }

    /// Appends a number.
    pub(crate) fn push_number(&mut self, number: u32) -> Result<(), Errno> {
        let mut digits = [b'0'; 10];
        let (mut rest, mut first) = (number, digits.len());
        loop {
            first -= 1;
            if let Some(digit) = digits.get_mut(first) {
                *digit = b'0' + (rest % 10) as u8;
            }
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.push(digits.get(first..).unwrap_or_default())
    }

    fn push_byte(&mut self, byte: u8, most: usize) -> Result<(), Errno> {
        let length = usize::from(self.length);
        let place = self.bytes.get_mut(length).filter(|_| length < most);
        *place.ok_or(Errno::NAMETOOLONG)? = byte;
        self.length += 1;
        Ok(())
    }

    pub(crate) fn length(&self) -> u8 {
        self.length
    }

    /// Takes off what was appended since it was that long.
    pub(crate) fn truncate(&mut self, length: u8) {
        self.length = self.length.min(length);
    }

    /// The path above it, and its own name.
    pub(crate) fn split(&self) -> (Self, &[u8]) {
        let dot = self.as_bytes().iter().rposition(|byte| *byte == b'.');
        let parent = Self { length: dot.unwrap_or(0) as u8, bytes: self.bytes };
        (parent, self.as_bytes().get(dot.map_or(0, |dot| dot + 1)..).unwrap_or_default())
    }

    /// Where what it has besides stands.
    pub(crate) fn besides(&self) -> Result<Self, Errno> {
        let mut path = *self;
        path.push(BESIDES)?;
        Ok(path)
    }

    /// The rest of the path below `above`, with the dot before it; nothing if it isn't `above` or below.
    pub(crate) fn below(&self, above: &Self) -> Option<&[u8]> {
        let rest = self.as_bytes().strip_prefix(above.as_bytes())?;
        (rest.is_empty() || above.is_root() || rest.first() == Some(&b'.')).then_some(rest)
    }

    /// The same place with `to` instead of `from`.
    pub(crate) fn moved(&self, from: &Self, to: &Self) -> Option<Self> {
        let rest = self.below(from)?;
        let mut moved = *to;
        for byte in rest {
            moved.push_byte(*byte, PATH_BYTES_MAX).ok()?;
        }
        Some(moved)
    }

    /// A number of its own for each path (FNV-1a of 64 bits).
    pub(crate) fn hash(&self) -> u64 {
        const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        self.as_bytes()
            .iter()
            .fold(BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
    }
}

impl PartialEq for TreePath {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

fn hex(digit: u8) -> u8 {
    HEX_DIGITS.get(usize::from(digit)).copied().unwrap_or(b'0')
}

/// Hands the bytes of a name in the tree to `each`, as a program knows them.
pub(crate) fn decoded(name: &[u8], mut each: impl FnMut(u8)) {
    let mut rest = name;
    while let [first, others @ ..] = rest {
        rest = others;
        if *first == b'%'
            && let [high, low, others @ ..] = rest
        {
            rest = others;
            each(digit(*high) << 4 | digit(*low));
        } else {
            each(*first);
        }
    }
}

fn digit(hex: u8) -> u8 {
    match hex {
        b'0'..=b'9' => hex - b'0',
        b'A'..=b'F' => hex - b'A' + 10,
        _ => 0,
    }
}
