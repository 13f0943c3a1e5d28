//! The errors for requests that name no command or have the wrong number of arguments, byte for
//! byte those of Redis 7.2. The texts hold the error code and neither `-` nor line end.

use super::keys::ArgView;
use super::spec::CommandSpec;

/// Longest part of a client's text that an error repeats, in bytes.
const QUOTED_BYTES_MAX: usize = 128;

/// Nothing has the name of argument 0. Repeats the first arguments until 128 bytes are reached.
pub fn unknown_command<A: ArgView + ?Sized>(args: &A) -> Vec<u8> {
    let mut quoted = Vec::new();
    for position in 1..args.arg_count() {
        if quoted.len() >= QUOTED_BYTES_MAX {
            break;
        }
        let room = QUOTED_BYTES_MAX - quoted.len();
        quoted.push(b'\'');
        quoted.extend_from_slice(c_text(args.arg(position), room));
        quoted.extend_from_slice(b"' ");
    }
    let mut text = b"ERR unknown command '".to_vec();
    text.extend_from_slice(c_text(args.arg(0), QUOTED_BYTES_MAX));
    text.extend_from_slice(b"', with args beginning with: ");
    text.extend_from_slice(&quoted);
    without_line_ends(text)
}

/// The container of argument 0 has no subcommand of the name in argument 1.
pub fn unknown_subcommand<A: ArgView + ?Sized>(args: &A) -> Vec<u8> {
    let mut text = b"ERR unknown subcommand '".to_vec();
    text.extend_from_slice(c_text(args.arg(1), QUOTED_BYTES_MAX));
    text.extend_from_slice(b"'. Try ");
    text.extend(args.arg(0).unwrap_or_default().to_ascii_uppercase());
    text.extend_from_slice(b" HELP.");
    without_line_ends(text)
}

/// A subcommand's own arguments do not fit: commands that parse their subcommands themselves.
pub fn subcommand_syntax<A: ArgView + ?Sized>(args: &A) -> Vec<u8> {
    let mut text = b"ERR unknown subcommand or wrong number of arguments for '".to_vec();
    text.extend_from_slice(c_text(args.arg(1), QUOTED_BYTES_MAX));
    text.extend_from_slice(b"'. Try ");
    text.extend(args.arg(0).unwrap_or_default().to_ascii_uppercase());
    text.extend_from_slice(b" HELP.");
    without_line_ends(text)
}

/// The number of arguments does not fit the arity.
pub fn wrong_arity(spec: &CommandSpec) -> String {
    format!("ERR wrong number of arguments for '{}' command", spec.name)
}

/// At most `limit` bytes of an argument. Redis: its texts end at the first zero byte.
fn c_text(argument: Option<&[u8]>, limit: usize) -> &[u8] {
    let argument = argument.unwrap_or_default();
    let end = argument.iter().take(limit).position(|byte| *byte == 0);
    let end = end.unwrap_or_else(|| argument.len().min(limit));
    argument.get(..end).unwrap_or_default()
}

/// A line end would end the reply.
fn without_line_ends(mut text: Vec<u8>) -> Vec<u8> {
    for byte in &mut text {
        if matches!(byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    text
}
