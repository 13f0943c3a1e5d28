//! libFuzzer on the target `numbers` of the crate `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::run("numbers", bytes));
