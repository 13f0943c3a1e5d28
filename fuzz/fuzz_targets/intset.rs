//! libFuzzer on the target `intset` of the crate `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::run("intset", bytes));
