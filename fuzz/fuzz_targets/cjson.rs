//! libFuzzer on the target `cjson` of the crate `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::run("cjson", bytes));
