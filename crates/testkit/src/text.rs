//! The text form of commands: words, quotes, and `;` between commands.

/// Splits a text into pieces at each `;` outside quotes, with surrounding blanks removed.
/// Empty pieces are dropped, so a trailing `;` does no harm.
pub fn split(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut quote, mut escaped) = (0, None, false);
    for (index, character) in text.char_indices() {
        match (quote, character) {
            (Some(_), _) if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), _) if open == character => quote = None,
            (None, '"') => quote = Some(character),
            (None, ';') => {
                pieces.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    pieces.push(&text[start..]);
    pieces.into_iter().map(str::trim).filter(|piece| !piece.is_empty()).collect()
}

/// The words of one command: separated by blanks; `"…"` takes `\n \r \t \\ \" \xNN`.
///
/// # Panics
/// On an open quote or a bad escape: the text is part of a test.
pub fn words(command: &str) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut bytes = command.bytes().peekable();
    loop {
        while bytes.next_if(u8::is_ascii_whitespace).is_some() {}
        let Some(&first) = bytes.peek() else {
            return words;
        };
        let mut word = Vec::new();
        if first == b'"' {
            bytes.next();
            loop {
                match bytes.next() {
                    Some(b'"') => break,
                    Some(b'\\') => word.push(escape(&mut bytes, command)),
                    Some(byte) => word.push(byte),
                    None => panic!("a quote is not closed in: {command}"),
                }
            }
        } else {
            while let Some(byte) = bytes.next_if(|byte| !byte.is_ascii_whitespace()) {
                word.push(byte);
            }
        }
        words.push(word);
    }
}

fn escape(bytes: &mut impl Iterator<Item = u8>, command: &str) -> u8 {
    match bytes.next() {
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'x') => {
            let digits: Vec<u8> = bytes.take(2).collect();
            let digits = String::from_utf8_lossy(&digits).into_owned();
            match u8::from_str_radix(&digits, 16) {
                Ok(byte) => byte,
                Err(_) => panic!("bad escape \\x{digits} in: {command}"),
            }
        }
        Some(byte @ (b'\\' | b'"')) => byte,
        other => panic!("bad escape {other:?} in: {command}"),
    }
}

/// A command as one line that redis-cli, or [`words`], reads back.
pub fn line<A: AsRef<[u8]>>(args: &[A]) -> String {
    let words: Vec<String> = args.iter().map(|arg| crate::reply::word(arg.as_ref())).collect();
    words.join(" ")
}

/// Appends a command to `out` as an array of bulk strings.
pub fn encode<A: AsRef<[u8]>>(args: &[A], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
    for arg in args {
        let arg = arg.as_ref();
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_lines_are_inverse() {
        let command = r#"SET "a b" "\x00\r\n\"q\"" -5 plain;"#;
        let args = words(command);
        assert_eq!(args[1], b"a b");
        assert_eq!(args[2], b"\0\r\n\"q\"");
        assert_eq!(words(&line(&args)), args);
    }

    #[test]
    fn split_respects_quotes() {
        assert_eq!(split(r#"A "x;y" ; B;"#), vec![r#"A "x;y""#, "B"]);
    }
}
