//! INFO.
