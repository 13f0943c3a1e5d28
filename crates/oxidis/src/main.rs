//! `oxidis`: argv to subcommand.
fn main() {}
