//! Binary form of a step: a version byte, then postcard. Steps of older versions are still read; damaged or unknown
//! ones are skipped.

use super::step::Step;

/// Version of the encoding. It must change whenever the meaning of a field, or a term's hash, changes.
const VERSION: u8 = 2;

impl Step {
    /// Encodes the step.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Serialisation fails only if the writer does, and a vector never does.
        postcard::to_extend(self, vec![VERSION]).unwrap_or_default()
    }

    /// Decodes a step; `None` if it is damaged or of an unknown version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Step> {
        let (version, rest) = bytes.split_first()?;
        let step: Step = match *version {
            VERSION => postcard::from_bytes(rest).ok()?,
            _ => return None,
        };
        [&step.prompt, &step.work, &step.answer].iter().all(|term_counts| term_counts.is_sound()).then_some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_step_comes_back_as_it_was_written() {
        let mut step = Step::from_prompt("Please fix parseHookInput in src/hook.rs, it loses the last line", 5);
        step.closes("Done: `src/hook.rs` keeps it. Shall I commit?", 9);
        let bytes = step.to_bytes();
        assert_eq!(Step::from_bytes(&bytes), Some(step));
        assert_eq!(Step::from_bytes(&Step::going_on(-1).to_bytes()), Some(Step::going_on(-1)));
        for cut in 0..bytes.len() {
            assert_eq!(Step::from_bytes(&bytes[..cut]), None, "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(mut bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            bytes.insert(0, VERSION);
            if let Some(step) = Step::from_bytes(&bytes) {
                prop_assert_eq!(Step::from_bytes(&step.to_bytes()), Some(step));
            }
        }
    }
}
