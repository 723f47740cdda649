//! The fitted weights: `cargo bench --bench units -- --fit` writes this file. ADR/0018 describes how they are chosen.

use super::signals::SIGNALS;

/// Log-odds of a boundary with average signals: at the prompt, after the turn, inside the work on one prompt.
pub const BIAS: [f32; 3] = [-1.1486, -2.0146, -2.3354];

/// For each signal: its mean, and its weight at the prompt, after the turn, inside.
#[rustfmt::skip]
pub const WEIGHTS: [[f32; 4]; SIGNALS.len()] = [
    [ 0.6615,   0.9511,   1.2237,   0.0000], // prompt_length
    [ 0.1297,   0.3759,   0.9167,   0.0000], // shift_words
    [ 0.4619,   0.9526,   0.7528,   0.9715], // pause
    [ 0.0104,  -0.1588,   0.0283,   0.0000], // pause_relative
    [ 0.0376,   0.8131,   0.6952,   0.9665], // committed_before
    [ 0.0072,   2.0335,   2.1057,   0.0000], // pushed_before
    [ 0.3345,   0.4085,   0.4857,   0.6431], // tests_passed_before
    [ 0.3882,   0.3199,   0.2461,   0.0000], // said_done_before
    [ 0.1595,   0.2048,   0.0000,   0.5386], // failures_before
    [ 0.7279,   1.1597,   1.5941,   1.3109], // unit_size
    [ 0.3984,   0.0336,   0.2141,   0.0000], // new_words
    [ 0.5062,  -0.6425,   0.0000,   0.0000], // words_of_unit
    [ 0.3590,  -0.4173,  -0.3602,   0.0000], // words_of_last_step
    [ 0.2633,  -0.5390,  -0.3582,   0.0000], // words_of_last_answer
    [ 0.4660,  -1.2629,   0.0000,   0.0000], // names_of_unit
    [ 0.1880,  -0.0163,   0.0000,   0.0000], // new_names
    [ 0.2147,   0.2778,   0.0000,   0.0000], // any_new_name
    [ 0.2594,   0.0670,   0.0088,   0.0000], // agent_asked
    [ 0.1038,   0.0171,   0.0000,   0.0000], // agent_asked_long_reply
    [ 0.2236,  -0.4100,   0.0000,   0.0000], // talk_before
    [ 0.3363,   0.2161,   0.0000,   0.0000], // orders
    [ 0.4168,   0.0389,  -0.0191,   0.0000], // question
    [ 0.0662,  -0.6312,  -0.5182,   0.0000], // chore
    [ 0.2165,  -0.5355,  -0.5437,   0.0000], // continues
    [ 0.4362,  -0.5991,   0.0000,   0.0000], // words_of_recent_steps
    [ 0.0930,   0.3407,   0.0000,   0.0000], // opening_words
    [ 0.1288,  -0.5530,   0.0000,   0.0000], // short_answer
    [ 0.0841,   0.7541,   0.0000,   0.0000], // wish
    [ 0.3124,   0.0000,  -0.7289,   0.1423], // work_like_recent
    [ 0.5227,   0.0000,  -1.5459,  -0.8970], // work_words_known
    [ 0.3753,   0.0000,  -0.8490,  -0.2497], // work_names_known
    [ 0.3467,   0.0000,   0.0498,   0.2485], // following_like_unit
    [ 0.3318,   0.0000,  -0.7960,  -0.6442], // sides_alike
    [ 0.0927,   0.0000,   2.2489,   1.8754], // valley
    [ 0.4747,   0.0000,  -0.4645,  -0.5565], // files_known
    [ 0.0334,   0.0000,  -1.3421,  -0.0134], // work_against_usual
    [-0.0815,   0.0000,   1.1695,   0.8506], // like_earlier_unit
    [ 0.4086,   0.0000,   0.8441,   0.6953], // work_size
    [ 0.3172,   0.0000,   0.4414,   0.8526], // investigates
    [ 0.1925,   0.0000,  -1.4870,  -1.3433], // following_names_known
    [ 0.4642,   0.0000,  -0.3443,  -0.4925], // following_files_known
    [-0.0039,   0.0000,  -1.5328,  -1.4768], // sides_against_usual
    [-0.0058,   0.0000,   1.6875,  -0.3308], // following_with_it
    [ 0.3453,   0.0000,   0.1766,   0.0197], // lowest_here
];
