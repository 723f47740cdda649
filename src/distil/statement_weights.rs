//! The fitted weights: `cargo bench --bench facts -- --fit` writes this file. How they are chosen: ADR/0046.

/// Log-odds of a statement without any feature.
pub const BIAS: f32 = -1.6361;

/// The weight of each feature.
#[rustfmt::skip]
pub const WEIGHTS: [f32; 10] = [
    -0.3584, // heading_above
     0.4512, // check_above
     1.0238, // length
    -0.6791, // short
     1.3753, // names
     0.7025, // change
     1.4995, // central
     0.5626, // of_prompt
    -0.5915, // of_prompts
    -0.5632, // look_names
];
