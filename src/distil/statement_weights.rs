//! The fitted weights: `cargo bench --bench facts -- --fit` writes this file. How they are chosen: ADR/0046.

/// Log-odds of a statement without any feature.
pub const BIAS: f32 = -1.4715;

/// The weight of each feature.
#[rustfmt::skip]
pub const WEIGHTS: [f32; 28] = [
    -0.2544, // item
    -0.0666, // heading_above
     0.3884, // change_above
     0.3711, // decision_above
     0.2611, // check_above
     0.6026, // length
    -0.5849, // short
    -0.4252, // message_statements
     0.2047, // bold
     0.3143, // parentheses
     0.2198, // quotation_marks
     0.6317, // names
     0.1574, // any_name
     0.4936, // change
     0.3432, // negation
     0.6723, // central
     0.2033, // of_prompt
    -0.3193, // of_prompts
     0.3162, // edits
     0.3542, // checked
     0.1859, // last_turn
    -0.1932, // refused_next
    -0.3605, // refused_later
     0.3996, // quoted_later
     0.4914, // agent_change
     0.3150, // edit_names
    -0.2281, // look_names
    -0.3938, // user_question
];
