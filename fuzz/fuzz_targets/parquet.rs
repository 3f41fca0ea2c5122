#![no_main]

use std::sync::Once;

static QUIET: Once = Once::new();

// The reader catches the panics of the library it calls; the fuzzer's hook would end the process before it could. A panic that gets past
// the reader still ends it: `libfuzzer-sys` aborts on one.
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    mtmkl_fuzz::parquet::check(data);
});
