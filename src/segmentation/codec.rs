//! A step as bytes: a version, then the step as postcard has it. Steps that an older nmem stored are still read; what is of
//! another version, or damaged, is read as nothing, and the detector goes on without it.

use super::codec_v1;
use super::step::Step;

/// Changes with whatever changes the meaning of a field, or of a term's hash.
const VERSION: u8 = 2;

impl Step {
    /// Writes it as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Only a writer that is full can fail, and a vector never is.
        postcard::to_extend(self, vec![VERSION]).unwrap_or_default()
    }

    /// Reads what [`Step::to_bytes`] wrote; `None` where it is of another version or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Option<Step> {
        let (version, rest) = bytes.split_first()?;
        let step: Step = match *version {
            VERSION => postcard::from_bytes(rest).ok()?,
            codec_v1::VERSION => codec_v1::read(rest)?,
            _ => return None,
        };
        [&step.prompt, &step.work, &step.answer].iter().all(|bag| bag.is_sound()).then_some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_step_comes_back_as_it_was_written() {
        let mut step = Step::asked("Please fix parseHookInput in src/hook.rs, it loses the last line", 5);
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
            for version in [VERSION, codec_v1::VERSION] {
                bytes.insert(0, version);
                if let Some(step) = Step::from_bytes(&bytes) {
                    prop_assert_eq!(Step::from_bytes(&step.to_bytes()), Some(step));
                }
            }
        }
    }
}
