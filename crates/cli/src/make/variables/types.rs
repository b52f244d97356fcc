//! Types of values by DWARF, and values as text.

use gimli::{AttributeValue, DwAte, DwTag};

use super::{Entry, HOPS_MAX, Place, Program, Value, Variable, Variables, little_endian, whole};

/// How deep a value in a value is written out, how many of its parts, and how many characters of a text.
const DEPTH_MAX: usize = 3;
const PARTS_MAX: usize = 12;
const TEXT_BYTES_MAX: u64 = 200;
/// The most elements of an array that are counted up.
const ELEMENTS_MAX: u64 = 1000;

/// A type.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Base(DwAte),
    /// To what, if that is known.
    Pointer(Option<Entry>),
    /// A struct, union, tuple, or enum with values, with the entry that says its members.
    Record(Entry),
    /// Of so many elements.
    Array(Option<Entry>, u64),
    /// Of named numbers.
    Enumeration(Entry),
    Other,
}

/// A value that can be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Whole(i128),
    Float(f64),
}

impl Number {
    /// As a float, which large whole numbers aren't exactly.
    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

/// A member of a record: of which bits of which bytes it is, if it isn't whole bytes.
struct Member {
    name: String,
    of: Option<Entry>,
    at: u64,
    bits: Option<(u64, u64)>,
}

impl Variables {
    /// A type without its qualifiers and other names.
    pub(crate) fn describe(&self, entry: Entry) -> Option<Type> {
        self.described(entry, HOPS_MAX)
    }

    /// The same, with so many entries at most from one to the next.
    fn described(&self, entry: Entry, hops: usize) -> Option<Type> {
        let (mut entry, mut name) = (entry, None);
        for left in (0..hops).rev() {
            let (tag, own) = (self.tag(entry)?, self.name(entry));
            match tag {
                gimli::DW_TAG_typedef => name = name.or(own),
                gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type => {}
                _ => return Some(self.plain(entry, tag, name.or(own), left)),
            }
            entry = self.type_of(entry)?;
        }
        None
    }

    fn plain(&self, entry: Entry, tag: DwTag, name: Option<String>, hops: usize) -> Type {
        let bytes = self.number(entry, gimli::DW_AT_byte_size);
        let (kind, bytes) = match tag {
            gimli::DW_TAG_base_type => {
                let encoding = self.attribute(entry, gimli::DW_AT_encoding);
                match encoding {
                    Some((_, AttributeValue::Encoding(encoding))) => (Kind::Base(encoding), bytes),
                    _ => (Kind::Other, bytes),
                }
            }
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => {
                (Kind::Pointer(self.type_of(entry)), bytes.or(Some(4)))
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                (Kind::Record(entry), bytes)
            }
            gimli::DW_TAG_array_type => {
                let (of, count) = (self.type_of(entry), self.elements(entry));
                let element = of.and_then(|of| self.described(of, hops));
                let element = element.map_or(0, |of| of.bytes);
                (Kind::Array(of, count), bytes.or(Some(count.saturating_mul(element))))
            }
            gimli::DW_TAG_enumeration_type => (Kind::Enumeration(entry), bytes),
            _ => (Kind::Other, bytes),
        };
        let name = name.unwrap_or_else(|| match &kind {
            Kind::Pointer(to) => format!("{} *", self.type_name(*to)),
            Kind::Array(of, count) => format!("{}[{count}]", self.type_name(*of)),
            Kind::Record(_) => "struct".to_owned(),
            Kind::Enumeration(_) => "enum".to_owned(),
            Kind::Base(_) | Kind::Other => String::new(),
        });
        Type { name, bytes: bytes.unwrap_or(0), kind }
    }

    /// A type's name, or for pointers to nameless ones only that they are.
    pub(crate) fn type_name(&self, of: Option<Entry>) -> String {
        let Some(of) = of else { return "void".to_owned() };
        self.name(of).unwrap_or_else(|| match self.tag(of) {
            Some(gimli::DW_TAG_const_type | gimli::DW_TAG_volatile_type) => {
                let inner = self.type_of(of).and_then(|inner| self.name(inner));
                inner.unwrap_or_else(|| "…".to_owned())
            }
            Some(gimli::DW_TAG_pointer_type) => "… *".to_owned(),
            _ => "…".to_owned(),
        })
    }

    fn number(&self, entry: Entry, name: gimli::DwAt) -> Option<u64> {
        self.attribute(entry, name)?.1.udata_value()
    }

    /// The number of an array's elements, in all its dimensions.
    fn elements(&self, array: Entry) -> u64 {
        let dimensions =
            self.children(array).into_iter().filter(|(_, tag)| *tag == gimli::DW_TAG_subrange_type);
        let count = |(entry, _): (Entry, DwTag)| {
            let count = self.number(entry, gimli::DW_AT_count);
            let last = self.number(entry, gimli::DW_AT_upper_bound);
            count.or(last.map(|last| last.saturating_add(1))).unwrap_or(0)
        };
        dimensions.map(count).fold(1, u64::saturating_mul)
    }

    fn members(&self, record: Entry) -> Vec<Member> {
        let children = self.children(record).into_iter();
        let members = children.filter(|(_, tag)| *tag == gimli::DW_TAG_member);
        let mut members: Vec<Member> = members.map(|(entry, _)| self.member(entry)).collect();
        members.sort_by_key(|member| member.at);
        members
    }

    fn member(&self, entry: Entry) -> Member {
        let name = self.name(entry).unwrap_or_default();
        let of = self.type_of(entry);
        let at = self.number(entry, gimli::DW_AT_data_member_location).unwrap_or(0);
        let size = self.number(entry, gimli::DW_AT_bit_size);
        let bit = self.number(entry, gimli::DW_AT_data_bit_offset).unwrap_or(0);
        match size {
            Some(size) => {
                let at = at.saturating_add(bit / 8);
                Member { name, of, at, bits: Some((bit % 8, size)) }
            }
            None => Member { name, of, at, bits: None },
        }
    }

    fn part(&self, member: Member, place: &Place, program: &dyn Program) -> Variable {
        let Member { name, of, at, bits } = member;
        let place = match bits {
            None => place.part(at),
            Some((from, size)) => {
                let bytes = place.read(at, from.saturating_add(size).div_ceil(8).min(8), program);
                bytes.map_or(Place::Gone, |bytes| {
                    let number = little_endian(&bytes) >> from & !(u64::MAX << size.min(63));
                    Place::Bytes(number.to_le_bytes().to_vec())
                })
            }
        };
        Variable { name, value: Value { of, place } }
    }

    /// The variant that an enum of Rust has: a member with the variant's name.
    fn variant(&self, record: Entry, place: &Place, program: &dyn Program) -> Option<Member> {
        let mut children = self.children(record).into_iter();
        let (part, _) = children.find(|(_, tag)| *tag == gimli::DW_TAG_variant_part)?;
        let tagged = self.attribute(part, gimli::DW_AT_discr).and_then(|(unit, discriminant)| {
            let member = self.member(self.referred(unit, &discriminant)?);
            let bytes = self.describe(member.of?)?.bytes;
            Some(little_endian(&place.read(member.at, bytes.min(8), program)?))
        });
        let mut default = None;
        let variants = self.children(part).into_iter();
        for (variant, _) in variants.filter(|(_, tag)| *tag == gimli::DW_TAG_variant) {
            let mut children = self.children(variant).into_iter();
            let member = children.find(|(_, tag)| *tag == gimli::DW_TAG_member);
            let Some((member, _)) = member else { continue };
            match self.attribute(variant, gimli::DW_AT_discr_value) {
                None => default = Some(member),
                Some((_, value)) => {
                    let value = whole(&value).map(|value| value as u64);
                    if value.is_some() && value == tagged {
                        return Some(self.member(member));
                    }
                }
            }
        }
        default.map(|member| self.member(member))
    }

    /// The parts of a value: members, elements, or what it points to.
    pub(crate) fn parts(&self, value: &Value, program: &dyn Program) -> Vec<Variable> {
        let Some(of) = value.of.and_then(|of| self.describe(of)) else { return Vec::new() };
        match of.kind {
            Kind::Record(record) => {
                if let Some(variant) = self.variant(record, &value.place, program) {
                    return vec![self.part(variant, &value.place, program)];
                }
                let members = self.members(record).into_iter();
                members.map(|member| self.part(member, &value.place, program)).collect()
            }
            Kind::Array(_, count) => (0..count.min(ELEMENTS_MAX))
                .filter_map(|index| {
                    let value = self.element(value, index, program)?;
                    Some(Variable { name: format!("[{index}]"), value })
                })
                .collect(),
            Kind::Pointer(_) => {
                let value = self.pointed(value, program);
                value.map(|value| Variable { name: "*".to_owned(), value }).into_iter().collect()
            }
            Kind::Base(_) | Kind::Enumeration(_) | Kind::Other => Vec::new(),
        }
    }

    /// Whether a value has parts.
    pub(crate) fn has_parts(&self, value: &Value) -> bool {
        let kind = value.of.and_then(|of| self.describe(of)).map(|of| of.kind);
        match kind {
            Some(Kind::Record(_) | Kind::Pointer(Some(_))) => value.place != Place::Gone,
            Some(Kind::Array(_, count)) => count > 0 && value.place != Place::Gone,
            _ => false,
        }
    }

    /// The value that a pointer points to, if it has a type.
    pub(crate) fn pointed(&self, value: &Value, program: &dyn Program) -> Option<Value> {
        let Kind::Pointer(Some(to)) = self.describe(value.of?)?.kind else { return None };
        let address = little_endian(&value.place.read(0, 4, program)?) as u32;
        self.describe(to)?;
        Some(Value { of: Some(to), place: Place::Memory(address) })
    }

    /// An element of an array, or of those that a pointer points to.
    pub(crate) fn element(
        &self,
        value: &Value,
        index: u64,
        program: &dyn Program,
    ) -> Option<Value> {
        let (of, place) = match self.describe(value.of?)?.kind {
            Kind::Array(Some(of), count) if index < count => (of, value.place.clone()),
            Kind::Pointer(_) => {
                let pointed = self.pointed(value, program)?;
                (pointed.of?, pointed.place)
            }
            _ => return None,
        };
        let offset = self.describe(of)?.bytes.checked_mul(index)?;
        Some(Value { of: Some(of), place: place.part(offset) })
    }

    /// The value's size, in bytes.
    pub(crate) fn size(&self, value: &Value) -> Option<u64> {
        self.describe(value.of?).map(|of| of.bytes)
    }

    /// The value as a number, if it is one.
    pub(crate) fn as_number(&self, value: &Value, program: &dyn Program) -> Option<Number> {
        let Some(of) = value.of else {
            return Some(Number::Whole(little_endian(&value.place.read(0, 8, program)?).into()));
        };
        let of = self.describe(of)?;
        if of.bytes == 0 || of.bytes > 16 {
            return None;
        }
        let bytes = value.place.read(0, of.bytes, program)?;
        let mut all = [0; 16];
        all[..bytes.len()].copy_from_slice(&bytes);
        let whole = i128::from_le_bytes(all);
        let unused = 128 - 8 * bytes.len() as u32;
        let signed = whole << unused >> unused;
        Some(match of.kind {
            Kind::Base(gimli::DW_ATE_float) => Number::Float(match bytes.len() {
                4 => f32::from_bits(whole as u32).into(),
                8 => f64::from_bits(whole as u64),
                _ => return None,
            }),
            Kind::Base(gimli::DW_ATE_signed | gimli::DW_ATE_signed_char) => Number::Whole(signed),
            Kind::Base(_) | Kind::Pointer(_) => Number::Whole(whole),
            Kind::Enumeration(entry) => {
                let is_negative = |(_, value): &(String, i128)| *value < 0;
                let is_signed = self.named_numbers(entry).iter().any(is_negative);
                Number::Whole(if is_signed { signed } else { whole })
            }
            _ => return None,
        })
    }

    fn named_numbers(&self, enumeration: Entry) -> Vec<(String, i128)> {
        let children = self.children(enumeration).into_iter();
        let names = children.filter(|(_, tag)| *tag == gimli::DW_TAG_enumerator);
        let named = |(entry, _)| {
            let (_, value) = self.attribute(entry, gimli::DW_AT_const_value)?;
            Some((self.name(entry)?, whole(&value)?))
        };
        names.filter_map(named).collect()
    }

    /// The value as text.
    pub(crate) fn show(&self, value: &Value, program: &dyn Program) -> String {
        self.show_within(value, program, DEPTH_MAX)
    }

    fn show_within(&self, value: &Value, program: &dyn Program, depth: usize) -> String {
        const GONE: &str = "(not there any more)";
        if value.place == Place::Gone {
            return GONE.to_owned();
        }
        let Some(of) = value.of.and_then(|of| self.describe(of)) else {
            let bytes = value.place.read(0, 8, program);
            return bytes.map_or_else(|| GONE.to_owned(), |it| little_endian(&it).to_string());
        };
        let number = self.as_number(value, program);
        match (of.kind, number) {
            (Kind::Base(encoding), Some(number)) => base(encoding, number, of.bytes),
            (Kind::Enumeration(entry), Some(Number::Whole(number))) => {
                let names = self.named_numbers(entry);
                let name = names.into_iter().find(|(_, value)| *value == number);
                name.map_or_else(|| number.to_string(), |(name, _)| name)
            }
            (Kind::Pointer(to), Some(Number::Whole(number))) => {
                match self.text_at(to, number as u32, program) {
                    Some(text) => format!("{number:#x} {text:?}"),
                    None => format!("{number:#x}"),
                }
            }
            (Kind::Record(_) | Kind::Array(..), _) if depth == 0 => "…".to_owned(),
            (Kind::Record(_), _) => self.show_record(value, &of.name, program, depth),
            (Kind::Array(..), _) => {
                let parts = self.parts(value, program);
                let shown = parts.iter().take(PARTS_MAX);
                let shown = shown.map(|part| self.show_within(&part.value, program, depth - 1));
                let more = if parts.len() > PARTS_MAX { ", …" } else { "" };
                format!("[{}{more}]", shown.collect::<Vec<_>>().join(", "))
            }
            _ => GONE.to_owned(),
        }
    }

    fn show_record(
        &self,
        value: &Value,
        name: &str,
        program: &dyn Program,
        depth: usize,
    ) -> String {
        let parts = self.parts(value, program);
        if name == "&str"
            && let [data, length] = &parts[..]
            && let (Some(Number::Whole(at)), Some(Number::Whole(length))) =
                (self.as_number(&data.value, program), self.as_number(&length.value, program))
        {
            let length = u64::try_from(length).unwrap_or(0).min(TEXT_BYTES_MAX);
            let bytes = program.read(at as u32, length as usize).unwrap_or_default();
            return format!("{:?}", String::from_utf8_lossy(&bytes));
        }
        let shown = parts.iter().take(PARTS_MAX).map(|part| {
            format!("{}: {}", part.name, self.show_within(&part.value, program, depth - 1))
        });
        let more = if parts.len() > PARTS_MAX { ", …" } else { "" };
        format!("{{{}{more}}}", shown.collect::<Vec<_>>().join(", "))
    }

    /// The text that a pointer of C points to.
    fn text_at(&self, to: Option<Entry>, address: u32, program: &dyn Program) -> Option<String> {
        let of = self.describe(to?)?;
        let is_character = of.bytes == 1
            && matches!(
                of.kind,
                Kind::Base(gimli::DW_ATE_signed_char | gimli::DW_ATE_unsigned_char)
            )
            && of.name.contains("char");
        if !is_character || address == 0 {
            return None;
        }
        let mut text = Vec::new();
        for offset in 0..TEXT_BYTES_MAX as u32 {
            match program.read(address.checked_add(offset)?, 1)?.first() {
                Some(0) | None => return Some(String::from_utf8_lossy(&text).into_owned()),
                Some(byte) => text.push(*byte),
            }
        }
        Some(String::from_utf8_lossy(&text).into_owned() + "…")
    }
}

/// A number of a base type, as its language writes it.
fn base(encoding: DwAte, number: Number, bytes: u64) -> String {
    match (encoding, number) {
        (_, Number::Float(number)) => number.to_string(),
        (gimli::DW_ATE_boolean, Number::Whole(number)) => (number != 0).to_string(),
        (gimli::DW_ATE_signed_char | gimli::DW_ATE_unsigned_char, Number::Whole(number))
            if bytes == 1 && (0x20..0x7F).contains(&number) =>
        {
            format!("{number} {:?}", char::from(number as u8))
        }
        (gimli::DW_ATE_UTF, Number::Whole(number)) => {
            let character = u32::try_from(number).ok().and_then(char::from_u32);
            character.map_or_else(|| number.to_string(), |character| format!("{character:?}"))
        }
        (_, Number::Whole(number)) => number.to_string(),
    }
}
