//! The fitted weights: `cargo bench --bench units -- --fit` writes this file. ADR/0018 describes how they are chosen.

use super::signals::SIGNALS;

/// Log-odds of a boundary with average signals: at the prompt, after the turn, inside the work on one prompt.
pub const BIAS: [f32; 3] = [-1.0081, -1.9214, -2.1228];

/// For each signal: its mean, and its weight at the prompt, after the turn, inside.
#[rustfmt::skip]
pub const WEIGHTS: [[f32; 4]; SIGNALS.len()] = [
    [ 0.6615,   1.1264,   1.3353,   0.0000], // prompt_length
    [ 0.1297,   0.7861,   0.9098,   0.0000], // shift_words
    [ 0.4619,   0.9528,   0.8880,   0.9010], // pause
    [ 0.0376,   0.7420,   0.8046,   1.0888], // committed_before
    [ 0.0072,   2.3945,   2.1061,   0.0000], // pushed_before
    [ 0.3345,   0.6040,   0.5683,   0.6713], // tests_passed_before
    [ 0.7287,   1.1692,   1.5228,   1.3821], // unit_size
    [ 0.3972,   0.7507,   0.2997,   0.0000], // new_words
    [ 0.2633,  -0.9719,  -0.5652,   0.0000], // words_of_last_answer
    [ 0.4661,  -1.6075,   0.0000,   0.0000], // names_of_unit
    [ 0.2165,  -0.6591,  -0.5893,   0.0000], // continues
    [ 0.5249,   0.0000,  -2.0355,  -1.0198], // work_words_known
    [ 0.0924,   0.0000,   2.4408,   1.9531], // valley
    [ 0.4745,   0.0000,  -0.7178,  -0.8455], // files_known
    [ 0.0344,   0.0000,  -1.8644,   0.1115], // work_against_usual
    [ 0.4086,   0.0000,   0.9409,   0.7953], // work_size
    [ 0.3172,   0.0000,   0.4900,   0.9383], // investigates
    [ 0.1922,   0.0000,  -2.5128,  -1.8394], // following_names_known
    [-0.0043,   0.0000,  -2.2997,  -1.5713], // sides_against_usual
    [-0.0066,   0.0000,   1.8531,  -0.3360], // following_with_it
];
