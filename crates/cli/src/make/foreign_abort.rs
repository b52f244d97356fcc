//! AssemblyScript's way to stop: its programs import `env.abort`, which says why, and where in the source.
//!
//! The import becomes the host call `abort`, and a function between both makes one text of what the program says:
//! "MESSAGE in FILE:LINE:COLUMN".

use wasmparser::{BinaryReaderError, FuncType, Operator, Parser, Payload, TypeRef, ValType};

use crate::make::module::{append_number, append_section, longer};

const CALL: u8 = 0x10;

/// The import, in the section of imports: function 0, of type 0.
const HOST_CALL: &[u8] = b"\x06tenure\x05abort\x00";
/// Its type: two numbers of 32 bits, and no result.
const HOST_TYPE: [u8; 5] = [0x60, 2, 0x7f, 0x7f, 0];

/// The function between. A string of AssemblyScript is UTF-16, with its length in bytes four bytes before it. The text is
/// made below 1,024, where AssemblyScript keeps nothing unless it is told to, or else at the end of the memory; nothing
/// there is needed any more. Characters beyond ASCII become question marks.
const BETWEEN: &str = r#"(module
  (import "tenure" "abort" (func $host (param i32 i32)))
  (memory 1)
  (func (param $message i32) (param $file i32) (param $line i32) (param $column i32)
    (local $start i32) (local $to i32) (local $part i32) (local $from i32) (local $left i32)
    (local $character i32) (local $power i32) (local $number i32)
    (local.set $start (i32.const 16))
    (if (i32.or
          (i32.lt_u (i32.sub (local.get $message) (i32.const 1)) (i32.const 1023))
          (i32.lt_u (i32.sub (local.get $file) (i32.const 1)) (i32.const 1023)))
      (then (local.set $start
        (i32.sub (i32.mul (memory.size) (i32.const PAGE)) (i32.const 1024)))))
    (local.set $to (local.get $start))
    (if (i32.eqz (local.get $message))
      (then
        (i32.store align=1 (local.get $to) (i32.const 0x726f6261)) ;; "abor"
        (i32.store8 offset=4 (local.get $to) (i32.const 0x74)) ;; "t"
        (local.set $to (i32.add (local.get $to) (i32.const 5)))))
    (local.set $from (local.get $message))
    (loop $parts
      (if (local.get $from)
        (then
          (local.set $left
            (i32.shr_u (i32.load align=1 (i32.sub (local.get $from) (i32.const 4))) (i32.const 1)))
          (if (i32.gt_u (local.get $left) (i32.const 400))
            (then (local.set $left (i32.const 400))))
          (block $end
            (loop $characters
              (br_if $end (i32.eqz (local.get $left)))
              (local.set $character (i32.load16_u align=1 (local.get $from)))
              (if (i32.gt_u (i32.sub (local.get $character) (i32.const 32)) (i32.const 94))
                (then (local.set $character (i32.const 63))))
              (i32.store8 (local.get $to) (local.get $character))
              (local.set $to (i32.add (local.get $to) (i32.const 1)))
              (local.set $from (i32.add (local.get $from) (i32.const 2)))
              (local.set $left (i32.sub (local.get $left) (i32.const 1)))
              (br $characters)))))
      (if (i32.eqz (local.get $part))
        (then
          (local.set $part (i32.const 1))
          (local.set $from (local.get $file))
          (i32.store align=1 (local.get $to) (i32.const 0x206e6920)) ;; " in "
          (local.set $to (i32.add (local.get $to) (i32.const 4)))
          (br $parts))))
    (local.set $number (local.get $line))
    (loop $numbers
      (i32.store8 (local.get $to) (i32.const 58)) ;; ":"
      (local.set $to (i32.add (local.get $to) (i32.const 1)))
      (local.set $power (i32.const 1000000000))
      (block $found
        (loop $smaller
          (br_if $found (i32.le_u (local.get $power) (i32.const 1)))
          (br_if $found (i32.ge_u (local.get $number) (local.get $power)))
          (local.set $power (i32.div_u (local.get $power) (i32.const 10)))
          (br $smaller)))
      (loop $digits
        (i32.store8 (local.get $to)
          (i32.add (i32.const 48)
            (i32.rem_u (i32.div_u (local.get $number) (local.get $power)) (i32.const 10))))
        (local.set $to (i32.add (local.get $to) (i32.const 1)))
        (br_if $digits (local.tee $power (i32.div_u (local.get $power) (i32.const 10)))))
      (if (i32.eq (local.get $part) (i32.const 1))
        (then
          (local.set $part (i32.const 2))
          (local.set $number (local.get $column))
          (br $numbers))))
    (call $host (local.get $start) (i32.sub (local.get $to) (local.get $start)))
    unreachable))"#;

/// The module with `env.abort` replaced; nothing if it has no such import.
///
/// # Errors
/// It isn't well formed.
pub(crate) fn replace(bytes: &[u8]) -> Result<Option<Vec<u8>>, BinaryReaderError> {
    let Some(found) = Found::read(bytes)? else { return Ok(None) };
    let mut code = bytes.get(..8).unwrap_or(bytes).to_vec();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload?;
        let Some((id, range)) = payload.as_section() else { continue };
        let mut content = bytes.get(range.clone()).unwrap_or_default().to_vec();
        match payload {
            Payload::TypeSection(section) => {
                content = longer(&content, section.count() as usize, &HOST_TYPE);
            }
            Payload::ImportSection(section) => {
                let mut starts = Vec::new();
                for item in section.into_iter_with_offsets() {
                    starts.push(item?.0);
                }
                let end = starts.get(found.item + 1).copied().unwrap_or(range.end);
                if let Some(start) = starts.get(found.item) {
                    let mut import = HOST_CALL.to_vec();
                    append_number(&mut import, found.types);
                    content.splice(start - range.start..end - range.start, import);
                }
            }
            Payload::FunctionSection(section) => {
                let mut kind = Vec::new();
                append_number(&mut kind, found.kind as usize);
                content = longer(&content, section.count() as usize, &kind);
            }
            Payload::CodeSectionStart { .. } => content = found.code(bytes)?,
            _ => {}
        }
        append_section(&mut code, id, &content);
    }
    Ok(Some(code))
}

/// Where a module's `env.abort` is.
struct Found {
    /// Its place among the imports.
    item: usize,
    /// Its index as a function.
    function: u32,
    /// Its type's index.
    kind: u32,
    /// The number of types.
    types: usize,
    /// The number of functions.
    functions: usize,
    /// The bytes of a page of memory.
    page_bytes: u64,
}

impl Found {
    fn read(bytes: &[u8]) -> Result<Option<Self>, BinaryReaderError> {
        let mut found: Option<Self> = None;
        let (mut fitting, mut types, mut functions, mut page_bytes) = (Vec::new(), 0, 0, 65_536);
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::TypeSection(section) => {
                    types = section.count() as usize;
                    for (index, kind) in section.into_iter_err_on_gc_types().enumerate() {
                        if is_abort(&kind?) {
                            fitting.push(index as u32);
                        }
                    }
                }
                Payload::ImportSection(section) => {
                    for (item, import) in section.into_iter().enumerate() {
                        let import = import?;
                        let TypeRef::Func(kind) = import.ty else { continue };
                        if (import.module, import.name) == ("env", "abort")
                            && fitting.contains(&kind)
                        {
                            let function = functions as u32;
                            found =
                                Some(Self { item, function, kind, types, functions, page_bytes });
                        }
                        functions += 1;
                    }
                }
                Payload::FunctionSection(section) => functions += section.count() as usize,
                Payload::MemorySection(section) => {
                    for memory in section {
                        page_bytes = 1 << memory?.page_size_log2.unwrap_or(16);
                    }
                }
                _ => {}
            }
        }
        Ok(found.map(|found| Self { functions, page_bytes, ..found }))
    }

    /// The content of the code section, in which the function between is called, and comes last.
    fn code(&self, bytes: &[u8]) -> Result<Vec<u8>, BinaryReaderError> {
        let between = BETWEEN.replace("PAGE", &self.page_bytes.to_string());
        let between = wat::parse_str(between).unwrap_or_default();
        let of_module = |body: &_| calls_replaced(bytes, body, self.function, self.functions);
        let of_between = |body: &_| calls_replaced(&between, body, 0, self.function as usize);
        let mut bodies = Vec::new();
        for payload in Parser::new(0).parse_all(bytes) {
            if let Payload::CodeSectionEntry(body) = payload? {
                bodies.push(of_module(&body)?);
            }
        }
        for payload in Parser::new(0).parse_all(&between) {
            if let Payload::CodeSectionEntry(body) = payload? {
                bodies.push(of_between(&body)?);
            }
        }
        let mut content = Vec::new();
        append_number(&mut content, bodies.len());
        for body in bodies {
            append_number(&mut content, body.len());
            content.extend(body);
        }
        Ok(content)
    }
}

/// Whether that is the type of `env.abort`: message, file, line, column.
fn is_abort(kind: &FuncType) -> bool {
    kind.params() == [ValType::I32; 4] && kind.results().is_empty()
}

/// A function's body, with calls of `to` in the place of those of `from`.
fn calls_replaced(
    bytes: &[u8],
    body: &wasmparser::FunctionBody<'_>,
    from: u32,
    to: usize,
) -> Result<Vec<u8>, BinaryReaderError> {
    let range = body.range();
    let mut replaced = Vec::new();
    let mut copied = range.start;
    let mut operators = body.get_operators_reader()?;
    while !operators.eof() {
        let (operator, start) = operators.read_with_offset()?;
        if matches!(operator, Operator::Call { function_index } if function_index == from) {
            replaced.extend(bytes.get(copied..start).unwrap_or_default());
            replaced.push(CALL);
            append_number(&mut replaced, to);
            copied = operators.original_position();
        }
    }
    replaced.extend(bytes.get(copied..range.end).unwrap_or_default());
    Ok(replaced)
}
