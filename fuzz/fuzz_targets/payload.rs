//! Any bytes on a hook's stdin: read, repaired, decoded by every adapter, redacted, and written as a spool's line, without a
//! panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nmem::platforms::payload::{self, Payload};
use nmem::platforms::{ADAPTERS, DecodeContext};
use nmem::redact::Redactor;

fuzz_target!(|data: &[u8]| {
    let Payload::Json { value, .. } = payload::parse(data) else { return };
    let around = DecodeContext { now: 1, skip_tools: &["TodoWrite".to_string()] };
    let ignored = ["**/.env*".to_string(), "*.private".to_string()];
    let redactor = Redactor::new(&[], &ignored, None).unwrap();
    for event in ADAPTERS.iter().flat_map(|adapter| adapter.decode(&value, &around).unwrap_or_default()) {
        let clean = redactor.clean(event);
        let line = serde_json::to_string(&clean).unwrap();
        let back: nmem::model::Event = serde_json::from_str(&line).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), line);
    }
});
