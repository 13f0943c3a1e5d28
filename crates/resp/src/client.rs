//! Writing requests, as a client does.

use crate::reply::header;

/// Appends one request in the multibulk form to `out`.
pub fn write_command<I>(out: &mut Vec<u8>, arguments: I)
where
    I: IntoIterator,
    I::IntoIter: ExactSizeIterator,
    I::Item: AsRef<[u8]>,
{
    let arguments = arguments.into_iter();
    header(out, b'*', arguments.len());
    for argument in arguments {
        let argument = argument.as_ref();
        out.reserve(argument.len() + 24);
        header(out, b'$', argument.len());
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
}
