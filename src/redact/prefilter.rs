//! Table of three-byte prefixes: the positions in a text where a secret may begin.

use super::assigned::HEADERS;
use super::families::KEYS;
use super::infix::INFIXES;
use super::names::BEGINNINGS;
use super::shapes::PEM;

/// Literals with their own matcher; `?` matches any byte of a word.
const SPECIAL: &[&str] = &[
    PEM,
    "-----END ",
    "---- BEGIN",
    "Private-Lines: ",
    "://",
    "eyJ",
    "eyA",
    "ewo",
    "ew0",
    " -?",
    "bearer ",
    "basic ",
    "$2a",
    "$2b",
    "$2y",
    "$1$",
    "$5$",
    "$6$",
    "$7$",
    "$y$",
    "$ar",
    "$ap",
    "$sc",
    "$pb",
    "pbkdf2_",
    "scrypt:",
    "bcrypt_",
    "{SS",
    "{SH",
    "{SM",
    "\"d\"",
    "\"k\"",
    "\"p\"",
    "\"q\"",
    "\"dp",
    "\"dq",
    "\"qi",
    "@tcp(",
    "@unix(",
    "@/?",
    "pbkdf2:",
    "SCRAM-SHA",
    "$P$",
    "$9$",
    "$krb",
    "thin:",
    "sqlplus ",
    "chpasswd",
    "AUTH ",
    "data:",
    "stringData:",
    "1/0",
    "1/1",
    "1/2",
    "1/3",
    "1/4",
    "1/5",
    "1/6",
    "1/7",
    "1/8",
    "1/9",
    "0.?",
    "auth=(",
];

/// First three characters of a number in base64, one set per position (Discord tokens).
const NUMBER: [&[u8]; 3] = [b"MNO", b"DTjz", b"AEIMQUYcgk"];

/// One bit per hash of a three-byte prefix: keys as they are written, the rest in either case.
static TRIPLES: [u64; 512] = triples();

const fn triples() -> [u64; 512] {
    let mut bits = [0; 512];
    let mut i = 0;
    while i < KEYS.len() {
        bits = with_literal(bits, KEYS[i].prefix.as_bytes(), false);
        i += 1;
    }
    let lists: [&[&str]; 4] = [&BEGINNINGS, HEADERS, SPECIAL, &INFIXES];
    let mut list = 0;
    while list < lists.len() {
        let mut i = 0;
        while i < lists[list].len() {
            bits = with_literal(bits, lists[list][i].as_bytes(), true);
            i += 1;
        }
        list += 1;
    }
    let mut i = 0;
    while i < 10 * 4 * 3 {
        bits = with(bits, [NUMBER[0][i % 3], NUMBER[1][i / 3 % 4], NUMBER[2][i / 12]]);
        i += 1;
    }
    bits
}

/// Bytes that may follow a two-byte literal.
const BEHIND: &[u8; 75] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=:\"' .~/\\]>";

/// Adds the first three bytes of a literal, or a two-byte literal with each byte that may follow.
const fn with_literal(mut bits: [u64; 512], literal: &[u8], folded: bool) -> [u64; 512] {
    let any = literal.len() < 3 || literal[2] == b'?';
    let mut cases = 0;
    while cases < if folded { 8 } else { 1 } {
        let mut three = [literal[0], literal[1], if any { 0 } else { literal[2] }];
        let mut i = 0;
        while i < 3 {
            if cases >> i & 1 == 1 {
                three[i] = three[i].to_ascii_uppercase();
            }
            i += 1;
        }
        let mut third = 0;
        while third < if any { BEHIND.len() } else { 1 } {
            bits = with(bits, if any { [three[0], three[1], BEHIND[third]] } else { three });
            third += 1;
        }
        cases += 1;
    }
    bits
}

/// Whether a secret may begin with these three bytes.
pub fn may_begin(three: [u8; 3]) -> bool {
    let bit = hash(three[0], three[1], three[2]);
    TRIPLES[bit >> 6] >> (bit & 63) & 1 == 1
}

const fn with(mut bits: [u64; 512], three: [u8; 3]) -> [u64; 512] {
    let at = hash(three[0], three[1], three[2]);
    bits[at >> 6] |= 1 << (at & 63);
    bits
}

/// Returns a 15-bit hash of three bytes that keeps letters, digits and marks apart.
const fn hash(a: u8, b: u8, c: u8) -> usize {
    let mixed = (a as u32).wrapping_mul(0x9E3B) ^ (b as u32).wrapping_mul(0x61C9) << 3 ^ (c as u32).wrapping_mul(0xB5) << 7;
    (mixed ^ mixed >> 9) as usize & 0x7FFF
}
