//! Encrypted connections.
//!
//! A connection of a loop is encrypted when it holds a [`session::Session`]; what a service reads and writes is plain in
//! either case. [`ServerSettings`] and [`ClientSettings`] say what the directives and options of Redis say; an [`Acceptor`]
//! (for listeners) or a [`Connector`] is made of them. [`Stream`] is the same for those who block.
//!
//! TLS 1.2 and 1.3 by rustls. What OpenSSL has and rustls has not (older versions, parameters of the Diffie-Hellman
//! exchange, most old ciphers) is refused with a sentence, never passed over.

mod cache;
mod files;
pub(crate) mod session;
mod settings;
mod stream;
mod suites;
mod trust;

pub use settings::{
    Acceptor, ClientCertificates, ClientSettings, Connector, Identity, Rules, ServerSettings, SessionCache,
    SettingsError, Trusted, Verify,
};
pub use stream::Stream;
