//! The fitted weights: `cargo bench --bench facts -- --fit` writes this file. How they are chosen: ADR/0046.

/// Log-odds of a statement without any feature.
pub const BIAS: f32 = -1.6506;

/// The weight of each feature.
#[rustfmt::skip]
pub const WEIGHTS: [f32; 10] = [
    -0.3527, // heading_above
     0.4497, // check_above
     0.9836, // length
    -0.6721, // short
     1.3652, // names
     0.6920, // change
     1.5519, // central
     0.5473, // of_prompt
    -0.5776, // of_prompts
    -0.5605, // look_names
];
