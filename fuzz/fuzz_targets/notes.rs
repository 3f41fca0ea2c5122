#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mtmkl_fuzz::notes::check(data));
