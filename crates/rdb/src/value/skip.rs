//! Where a value ends, without building it: to cut a file into records.

use super::ValueType;
use crate::codec::{DecodeError, Reader};

/// Bytes of a stream id, and of a time.
const ID_BYTES: usize = 16;
const TIME_BYTES: usize = 8;
const DOUBLE_BYTES: usize = 8;

/// Moves `reader` behind a value of this type. Takes no memory, and no longer than the bytes that are there are many.
///
/// # Errors
/// As [`super::decode`]; a value that can be skipped need not be well-formed in its packed parts.
pub fn skip(value_type: ValueType, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    match value_type {
        ValueType::String
        | ValueType::HashZipmap
        | ValueType::ListZiplist
        | ValueType::SetIntset
        | ValueType::ZsetZiplist
        | ValueType::HashZiplist
        | ValueType::HashListpack
        | ValueType::ZsetListpack
        | ValueType::SetListpack => reader.skip_string(),
        ValueType::List | ValueType::Set | ValueType::ListQuicklist => times(reader, Reader::skip_string),
        ValueType::Hash => times(reader, |reader| {
            reader.skip_string()?;
            reader.skip_string()
        }),
        ValueType::HashTimed => {
            reader.bytes(TIME_BYTES)?;
            times(reader, |reader| {
                reader.length()?;
                reader.skip_string()?;
                reader.skip_string()
            })
        }
        ValueType::HashTimedListpack => {
            reader.bytes(TIME_BYTES)?;
            reader.skip_string()
        }
        ValueType::Zset => times(reader, |reader| {
            reader.skip_string()?;
            reader.text_double().map(drop)
        }),
        ValueType::Zset2 => times(reader, |reader| {
            reader.skip_string()?;
            reader.bytes(DOUBLE_BYTES).map(drop)
        }),
        ValueType::ListQuicklist2 => times(reader, |reader| {
            reader.length()?;
            reader.skip_string()
        }),
        ValueType::StreamListpacks => skip_stream(reader, 1),
        ValueType::StreamListpacks2 => skip_stream(reader, 2),
        ValueType::StreamListpacks3 => skip_stream(reader, 3),
        ValueType::Module2 => {
            reader.length()?;
            skip_module_parts(reader)
        }
        ValueType::ModulePreGa => Err(DecodeError::Unsupported(value_type)),
    }
}

/// Skips as many parts as a count in front says.
fn times<'a>(
    reader: &mut Reader<'a>,
    mut part: impl FnMut(&mut Reader<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let count = reader.length()?;
    for _ in 0..count {
        part(reader)?;
    }
    Ok(())
}

fn skip_numbers(reader: &mut Reader<'_>, count: usize) -> Result<(), DecodeError> {
    for _ in 0..count {
        reader.length()?;
    }
    Ok(())
}

fn skip_stream(reader: &mut Reader<'_>, form: u8) -> Result<(), DecodeError> {
    times(reader, |reader| {
        reader.skip_string()?;
        reader.skip_string()
    })?;
    // Length, last id; then first id, greatest deleted id, entries added.
    skip_numbers(reader, if form == 1 { 3 } else { 8 })?;
    times(reader, |reader| {
        reader.skip_string()?;
        skip_numbers(reader, if form == 1 { 2 } else { 3 })?;
        times(reader, |reader| {
            reader.bytes(ID_BYTES + TIME_BYTES)?;
            reader.length().map(drop)
        })?;
        times(reader, |reader| {
            reader.skip_string()?;
            reader.bytes(if form == 3 { 2 * TIME_BYTES } else { TIME_BYTES })?;
            times(reader, |reader| reader.bytes(ID_BYTES).map(drop))
        })
    })
}

/// What follows the id of a module: parts behind an opcode each, up to the one that ends them.
///
/// # Errors
/// An opcode that is none, or too few bytes.
pub fn skip_module_parts(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    loop {
        match reader.length()? {
            0 => return Ok(()),
            1 | 2 => skip_numbers(reader, 1)?,
            3 => reader.bytes(4).map(drop)?,
            4 => reader.bytes(DOUBLE_BYTES).map(drop)?,
            5 => reader.skip_string()?,
            _ => return Err(DecodeError::Malformed("module value")),
        }
    }
}

/// The name of a module type: nine characters of six bits, above ten bits of its version.
pub fn module_name(id: u64) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..9)
        .map(|place| {
            #[allow(clippy::cast_possible_truncation, reason = "six bits")]
            let letter = (id >> (58 - 6 * place) & 63) as usize;
            char::from(LETTERS.get(letter).copied().unwrap_or(b'?'))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_names_are_packed() {
        // "test-type" in base 64 of this alphabet, version 0.
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let id = b"test-type"
            .iter()
            .fold(0_u64, |id, letter| id << 6 | letters.iter().position(|other| other == letter).unwrap_or(0) as u64);
        assert_eq!(module_name(id << 10 | 3), "test-type");
    }

    #[test]
    fn counts_beyond_the_bytes_end_at_the_bytes() {
        let mut bytes = vec![0x81];
        bytes.extend_from_slice(&u64::MAX.to_be_bytes());
        for value_type in [ValueType::Set, ValueType::Hash, ValueType::StreamListpacks3, ValueType::ListQuicklist2] {
            assert_eq!(skip(value_type, &mut Reader::new(&bytes)), Err(DecodeError::Truncated));
        }
    }
}
