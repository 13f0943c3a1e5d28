//! What a command answers when it cannot do what it was asked: Redis' exact texts.

use keyspace::WrongType;
use std::borrow::Cow;

/// An error reply: the whole text with its code, without the leading `-`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CmdError(pub Cow<'static, str>);

/// What a command function returns: `Ok` when the reply is written.
pub type CmdResult = Result<(), CmdError>;

impl CmdError {
    /// A fixed text.
    pub const fn new(text: &'static str) -> CmdError {
        CmdError(Cow::Borrowed(text))
    }

    /// A text made for the occasion.
    pub fn text(text: String) -> CmdError {
        CmdError(Cow::Owned(text))
    }
}

impl From<WrongType> for CmdError {
    fn from(_: WrongType) -> CmdError {
        WRONG_TYPE
    }
}

/// The key holds another type.
pub const WRONG_TYPE: CmdError = CmdError::new("WRONGTYPE Operation against a key holding the wrong kind of value");
/// Options that do not go together, or unknown ones.
pub const SYNTAX: CmdError = CmdError::new("ERR syntax error");
/// Not a 64-bit integer.
pub const NOT_AN_INTEGER: CmdError = CmdError::new("ERR value is not an integer or out of range");
/// Not a float.
pub const NOT_A_FLOAT: CmdError = CmdError::new("ERR value is not a valid float");
/// No such key (RENAME, LSET, …).
pub const NO_SUCH_KEY: CmdError = CmdError::new("ERR no such key");
/// Index beyond the ends.
pub const INDEX_OUT_OF_RANGE: CmdError = CmdError::new("ERR index out of range");
/// Database number beyond `databases`.
pub const DB_OUT_OF_RANGE: CmdError = CmdError::new("ERR DB index is out of range");
/// Positive number wanted.
pub const MUST_BE_POSITIVE: CmdError = CmdError::new("ERR value is out of range, must be positive");
/// Timeout of a blocking command.
pub const TIMEOUT_NOT_A_FLOAT: CmdError = CmdError::new("ERR timeout is not a float or out of range");
/// Negative timeout of a blocking command.
pub const TIMEOUT_NEGATIVE: CmdError = CmdError::new("ERR timeout is negative");
/// Timeout of a blocking command beyond what fits.
pub const TIMEOUT_OUT_OF_RANGE: CmdError = CmdError::new("ERR timeout is out of range");
