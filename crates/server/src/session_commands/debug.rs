//! DEBUG.
