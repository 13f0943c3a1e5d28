//! libFuzzer on the target `rdb_check` of the crate `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::run("rdb_check", bytes));
