//! Number texts.

/// Appends the text of a double: `inf`, `-inf`, `nan`, or the shortest decimal text that reads back as `value`.
pub fn write_double(out: &mut Vec<u8>, value: f64) {
    use std::io::Write as _;
    // Writing to a Vec cannot fail.
    let _ = if value.is_nan() {
        write!(out, "nan")
    } else {
        write!(out, "{value}")
    };
}
