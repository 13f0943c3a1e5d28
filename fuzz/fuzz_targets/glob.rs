//! libFuzzer on the target `glob` of the crate `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::run("glob", bytes));
