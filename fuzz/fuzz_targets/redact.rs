//! Any text, with a key planted in it: the key never survives, no text grows past its limit, nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nmem::redact::Redactor;

/// Built from parts, so that no scanner of repositories takes this file for a leak.
const KEY: [&str; 2] = ["ghp_", "x7Kq2mPz9LrT4vWb8NsD1fGh6JcY3aE5uQ0o"];
/// Bytes of a string that `Clean<String>` keeps.
const LIMIT: usize = 2000;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let redactor = Redactor::new(&["ACME-[0-9]+".into()], &[], Some(Box::new(|| Some([7; 32])))).unwrap();
    let clean = redactor.clean(text.to_string());
    assert!(clean.len() <= LIMIT.max(text.len()));
    redactor.clean(clean.to_string());
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle -= 1;
    }
    let planted = format!("{} {} {}", &text[..middle], KEY.concat(), &text[middle..]);
    assert!(text.contains(&KEY[1][..12]) || !redactor.clean(planted).contains(&KEY[1][..12]));
});
