//! The fitted weights: `cargo bench --bench units -- --fit` writes this file. How they are chosen: ADR/0018.

use super::signals::SIGNALS;

/// Log-odds of a boundary at the average place: when the prompt has come, when its turn is known, inside the work on one.
pub const BIAS: [f32; 3] = [-1.2651, -2.1991, -1.3733];

/// Of each signal: its mean, and its weight at the prompt, after the turn, inside.
#[rustfmt::skip]
pub const WEIGHTS: [[f32; 4]; SIGNALS.len()] = [
    [ 0.6615,   1.1425,   1.4116,   0.0000], // prompt_length
    [ 0.1297,   0.3730,   1.0700,   0.0000], // shift_words
    [ 0.4619,   1.2880,   1.0081,   1.0918], // pause
    [ 0.0104,  -0.2880,  -0.0581,   0.0000], // pause_relative
    [ 0.0376,   0.8707,   0.6853,   1.0446], // committed_before
    [ 0.0072,   2.2047,   2.3917,   0.0000], // pushed_before
    [ 0.3345,   0.4243,   0.5233,   0.6942], // tests_passed_before
    [ 0.3882,   0.3502,   0.2145,   0.0000], // said_done_before
    [ 0.1631,  -0.0195,   0.0000,   0.5309], // failures_before
    [ 0.7361,   1.4324,   2.0122,   1.5630], // unit_size
    [ 0.3953,  -0.1021,   0.1110,   0.0000], // new_words
    [ 0.5147,  -0.7247,   0.0000,   0.0000], // words_of_unit
    [ 0.3645,  -0.3319,  -0.3751,   0.0000], // words_of_last_step
    [ 0.2636,  -0.7216,  -0.3612,   0.0000], // words_of_last_answer
    [ 0.4700,  -1.5880,   0.0000,   0.0000], // names_of_unit
    [ 0.1803,  -0.1496,   0.0000,   0.0000], // new_names
    [ 0.2102,   0.2790,   0.0000,   0.0000], // any_new_name
    [ 0.2594,   0.1415,  -0.0211,   0.0000], // agent_asked
    [ 0.1038,  -0.0294,   0.0000,   0.0000], // agent_asked_long_reply
    [ 0.2236,  -0.5204,   0.0000,   0.0000], // talk_before
    [ 0.3363,   0.2591,   0.0000,   0.0000], // orders
    [ 0.4168,   0.0491,  -0.0251,   0.0000], // question
    [ 0.0662,  -0.7478,  -0.5889,   0.0000], // chore
    [ 0.2165,  -0.6569,  -0.6418,   0.0000], // continues
    [ 0.4430,  -0.6328,   0.0000,   0.0000], // words_of_recent_steps
    [ 0.0930,   0.3616,   0.0000,   0.0000], // opening_words
    [ 0.1288,  -0.7280,   0.0000,   0.0000], // short_answer
    [ 0.0841,   0.9074,   0.0000,   0.0000], // wish
    [ 0.3282,   0.0000,  -0.5893,   0.2219], // work_like_recent
    [ 0.5374,   0.0000,  -2.2217,  -1.1919], // work_words_known
    [ 0.3844,   0.0000,  -0.7943,  -0.2489], // work_names_known
    [ 0.3625,   0.0000,   0.3708,   0.3160], // following_like_unit
    [ 0.3483,   0.0000,  -0.2479,  -0.7344], // sides_alike
    [ 0.0947,   0.0000,   2.3624,   1.9074], // valley
    [ 0.4739,   0.0000,  -0.4901,  -0.5367], // files_known
    [ 0.0409,   0.0000,  -1.5234,  -0.0041], // work_against_usual
    [-0.0736,   0.0000,   1.6378,   0.8747], // like_earlier_unit
    [ 0.4086,   0.0000,   1.0123,   0.7441], // work_size
    [ 0.3172,   0.0000,   0.5606,   1.1277], // investigates
    [ 0.1971,   0.0000,  -2.0599,  -1.8261], // following_names_known
    [ 0.4644,   0.0000,  -0.3576,  -0.4955], // following_files_known
    [-0.0058,   0.0000,  -1.5053,  -1.6273], // sides_against_usual
    [-0.0067,   0.0000,   2.2028,  -0.4581], // following_with_it
    [ 0.3470,   0.0000,   0.2560,  -0.0124], // lowest_here
];
