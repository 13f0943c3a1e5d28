//! What can be wrong with a request, in Redis 7.2's words.

use std::fmt;

/// A request that breaks the protocol. The client gets the text as an `-ERR` reply and is then disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The count after `*` is no number or too big.
    InvalidMultibulkLength,
    /// More arguments than a client may send before it authenticates.
    UnauthenticatedMultibulkLength,
    /// The line of the count does not end.
    TooBigMultibulkCount,
    /// An argument starts with this byte where `$` belongs.
    ExpectedDollar(u8),
    /// The length after `$` is no number, negative or too big.
    InvalidBulkLength,
    /// A longer argument than a client may send before it authenticates.
    UnauthenticatedBulkLength,
    /// The line of a length does not end.
    TooBigBulkCount,
    /// An inline request does not end.
    TooBigInline,
    /// A quote in an inline request is not closed, or is followed by something.
    UnbalancedQuotes,
}

impl ProtocolError {
    /// The text of the error reply, without its code: `Protocol error: …`.
    pub fn text(self) -> Vec<u8> {
        let text: &[u8] = match self {
            Self::InvalidMultibulkLength => b"Protocol error: invalid multibulk length",
            Self::UnauthenticatedMultibulkLength => b"Protocol error: unauthenticated multibulk length",
            Self::TooBigMultibulkCount => b"Protocol error: too big mbulk count string",
            Self::ExpectedDollar(byte) => {
                return [&b"Protocol error: expected '$', got '"[..], &[byte], b"'"].concat();
            }
            Self::InvalidBulkLength => b"Protocol error: invalid bulk length",
            Self::UnauthenticatedBulkLength => b"Protocol error: unauthenticated bulk length",
            Self::TooBigBulkCount => b"Protocol error: too big bulk count string",
            Self::TooBigInline => b"Protocol error: too big inline request",
            Self::UnbalancedQuotes => b"Protocol error: unbalanced quotes in request",
        };
        text.to_vec()
    }

    /// The words that the log line `Protocol error (…) from client` has in its parentheses.
    pub fn log_text(self) -> &'static str {
        match self {
            Self::InvalidMultibulkLength => "invalid mbulk count",
            Self::UnauthenticatedMultibulkLength => "unauth mbulk count",
            Self::TooBigMultibulkCount => "too big mbulk count string",
            Self::ExpectedDollar(_) => "expected $ but got something else",
            Self::InvalidBulkLength => "invalid bulk length",
            Self::UnauthenticatedBulkLength => "unauth bulk length",
            Self::TooBigBulkCount => "too big bulk count string",
            Self::TooBigInline => "too big inline request",
            Self::UnbalancedQuotes => "unbalanced quotes in inline request",
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.text()))
    }
}

impl std::error::Error for ProtocolError {}
