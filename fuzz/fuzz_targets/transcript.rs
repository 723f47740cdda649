//! Any bytes as a transcript: no panic, and what is consumed ends at a line's end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nmem::platforms::transcript_tail::{ReadOptions, read};

fuzz_target!(|data: &[u8]| {
    for from_start in [true, false] {
        let options = ReadOptions {
            from_start,
            last_message: Some("m"),
            thinking_from: Some(data.len() / 2),
            passed_over: &|at| at == Some(0),
        };
        let reading = read(data, &options, &mut |_, at| assert!(at < data.len()));
        assert!(reading.consumed <= data.len());
        assert!(reading.consumed == 0 || data[reading.consumed - 1] == b'\n');
    }
});
