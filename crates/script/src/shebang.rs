//! The first line of a script: `#!lua flags=no-writes,allow-oom`, or of a library: `#!lua name=mylib`.

use std::borrow::Cow;

/// What a script says about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScriptFlags(u8);

#[allow(missing_docs)]
impl ScriptFlags {
    pub const NO_WRITES: ScriptFlags = ScriptFlags(1 << 0);
    pub const ALLOW_OOM: ScriptFlags = ScriptFlags(1 << 1);
    pub const ALLOW_STALE: ScriptFlags = ScriptFlags(1 << 2);
    pub const NO_CLUSTER: ScriptFlags = ScriptFlags(1 << 3);
    pub const ALLOW_CROSS_SLOT_KEYS: ScriptFlags = ScriptFlags(1 << 4);
    /// It has no shebang line: the rules of Redis before 7.
    pub const COMPATIBLE: ScriptFlags = ScriptFlags(1 << 5);

    /// All flags with their names, in Redis' order.
    pub const NAMED: [(&'static str, ScriptFlags); 5] = [
        ("no-writes", ScriptFlags::NO_WRITES),
        ("allow-oom", ScriptFlags::ALLOW_OOM),
        ("allow-stale", ScriptFlags::ALLOW_STALE),
        ("no-cluster", ScriptFlags::NO_CLUSTER),
        ("allow-cross-slot-keys", ScriptFlags::ALLOW_CROSS_SLOT_KEYS),
    ];

    /// Whether all bits of `other` are set.
    pub fn has(self, other: ScriptFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    #[must_use]
    pub fn with(self, other: ScriptFlags) -> ScriptFlags {
        ScriptFlags(self.0 | other.0)
    }
}

/// The flags of a script and the length of its shebang line, without the line feed (which stays, so that lines keep
/// their numbers).
///
/// # Errors
/// The text of the error reply, without `ERR `.
pub fn script_flags(body: &[u8]) -> Result<(ScriptFlags, usize), Cow<'static, str>> {
    if !body.starts_with(b"#!") {
        return Ok((ScriptFlags::COMPATIBLE, 0));
    }
    let Some(end) = line_end(body) else { return Err("Invalid script shebang".into()) };
    let parts = match resp::split_args(&body[..end]) {
        Some(parts) if !parts.is_empty() => parts,
        _ => return Err("Invalid engine in script shebang".into()),
    };
    if parts[0] != b"#!lua" {
        return Err(format!("Unexpected engine in script shebang: {}", text(&parts[0])).into());
    }
    let mut flags = ScriptFlags::default();
    for part in &parts[1..] {
        let Some(names) = part.strip_prefix(b"flags=") else {
            return Err(format!("Unknown lua shebang option: {}", text(part)).into());
        };
        if names.is_empty() {
            continue;
        }
        for name in names.split(|byte| *byte == b',') {
            match ScriptFlags::NAMED.iter().find(|(known, _)| known.as_bytes() == name) {
                Some((_, flag)) => flags = flags.with(*flag),
                None => return Err(format!("Unexpected flag in script shebang: {}", text(name)).into()),
            }
        }
    }
    Ok((flags, end))
}

/// What the first line of a library says.
pub struct LibraryLine {
    /// Its name.
    pub name: String,
    /// Length of the line, without the line feed.
    pub len: usize,
}

/// Reads the first line of a library.
///
/// # Errors
/// The text of the error reply, without `ERR `.
pub fn library_line(code: &[u8]) -> Result<LibraryLine, Cow<'static, str>> {
    if !code.starts_with(b"#!") {
        return Err("Missing library metadata".into());
    }
    let Some(end) = line_end(code) else { return Err("Invalid library metadata".into()) };
    let parts = match resp::split_args(&code[..end]) {
        Some(parts) if !parts.is_empty() => parts,
        _ => return Err("Invalid library metadata".into()),
    };
    let mut name: Option<&[u8]> = None;
    for part in &parts[1..] {
        match part.get(..5) {
            Some(word) if word.eq_ignore_ascii_case(b"name=") => {
                if name.is_some() {
                    return Err("Invalid metadata value, name argument was given multiple times".into());
                }
                name = Some(&part[5..]);
            }
            _ => return Err(format!("Invalid metadata value given: {}", text(part)).into()),
        }
    }
    let Some(name) = name else { return Err("Library name was not given".into()) };
    if !is_name(name) {
        return Err(BAD_NAME.into());
    }
    if &parts[0][2..] != b"lua" {
        return Err(format!("Engine '{}' not found", text(&parts[0][2..])).into());
    }
    Ok(LibraryLine { name: text(name), len: end })
}

/// The error for a bad name of a library or function.
pub(crate) const BAD_NAME: &str =
    "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long";

/// Whether a library or function may be called so.
pub(crate) fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Redis reads the body as a C string here: a NUL ends it.
fn line_end(body: &[u8]) -> Option<usize> {
    let end = body.iter().position(|byte| matches!(byte, b'\n' | 0))?;
    (body[end] == b'\n').then_some(end)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
