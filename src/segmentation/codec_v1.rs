//! Binary form of steps up to schema 9: little-endian, lists prefixed by their length. Read only, for units that were
//! open during the upgrade.

use super::phases::{Phase, PhaseRun};
use super::prompt_features::PromptFeatures;
use super::step::Step;
use super::term_counts::TermCounts;
use crate::model::Millis;

pub const VERSION: u8 = 1;

/// Decodes a step after its version byte; `None` if it is damaged.
pub fn read(bytes: &[u8]) -> Option<Step> {
    let mut from = ByteReader(bytes);
    let (at, until, prompt_features) = (from.time()?, from.time()?, from.prompt_features()?);
    let (prompt, work, answer) = (from.term_counts()?, from.term_counts()?, from.term_counts()?);
    let files = from.list()?;
    let mut number = || from.number();
    let (tool_uses, looks, edits, failures) = (number()?, number()?, number()?, number()?);
    let (commits, pushes, passes) = (number()?, number()?, number()?);
    let [failed_last, committed_last, edited_since_check, looked_since_check, checked, passed] = from.flags()?;
    let [closed, asks, says_done] = from.flags()?;
    Some(Step {
        at,
        until,
        prompt_features,
        prompt,
        work,
        answer,
        files,
        tool_uses,
        looks,
        edits,
        failures,
        commits,
        pushes,
        passes,
        failed_last,
        committed_last,
        edited_since_check,
        looked_since_check,
        check_passed: checked.then_some(passed),
        closed,
        asks,
        says_done,
        phases: from.runs()?,
        agents: from.list()?,
    })
}

struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn time(&mut self) -> Option<Millis> {
        self.take().map(Millis::from_le_bytes)
    }

    fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn flags<const N: usize>(&mut self) -> Option<[bool; N]> {
        let [bits] = self.take()?;
        Some(std::array::from_fn(|at| bits >> at & 1 == 1))
    }

    /// Reads the features of a prompt. The outer option is `None` if they cannot be read, the inner one if the step has
    /// no prompt.
    fn prompt_features(&mut self) -> Option<Option<PromptFeatures>> {
        let [is_there] = self.take()?;
        if is_there == 0 {
            return Some(None);
        }
        let (words, content_words) = (u16::from_le_bytes(self.take()?), u16::from_le_bytes(self.take()?));
        let [shift_words, bits] = self.take()?;
        Some(Some(PromptFeatures::from_bits(words, content_words, shift_words, bits)))
    }

    fn term_counts(&mut self) -> Option<TermCounts> {
        let n = self.length()?;
        let terms = (0..n).map(|_| Some((self.number()?, self.take::<1>()?[0]))).collect::<Option<Vec<_>>>()?;
        terms.is_sorted_by(|a, b| a.0 < b.0).then(|| TermCounts::from_terms(terms))
    }

    fn list(&mut self) -> Option<Vec<u32>> {
        let n = self.length()?;
        (0..n).map(|_| self.number()).collect()
    }

    fn runs(&mut self) -> Option<Vec<PhaseRun>> {
        let n = self.length()?;
        (0..n)
            .map(|_| {
                let [phase] = self.take()?;
                Some(PhaseRun { phase: *Phase::ALL.get(usize::from(phase))?, tool_uses: self.number()?, ms: self.time()? })
            })
            .collect()
    }

    fn length(&mut self) -> Option<usize> {
        self.take().map(u16::from_le_bytes).map(usize::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of a recorded session, as an earlier nmem stored it.
    const STORED: &str = "01FF3279939B010000EB017A939B010000010F000300004003007C10878C0A3A7334E20A7EA5E4F70A0E00883D900D0ACA4ECD2A0A46427041032E36927A0AADEF65850AE471D0AF147882E4B20A54A87EC10A60BFDFD50A973E05D9032429CEE40A8005CBEC0AEA5792F60AB09085F9031400508791210AFCA5B12F0AFCD04B330AF7D6F3370A78F6B73E0A464270411496AE71460A68F2D7470A945834600AEF4347610A9E7BFF640A18737A7B0A7C10878C0AB2AF15990A3CE247A90A76C499AB0AE471D0AF0A461C71B30A48947BEE0A7EA5E4F71E01006623C56C02000000000000000100000000000000000000000000000001000000300102000101000000B7510000000000000201000000C7680000000000000000";

    #[test]
    fn a_step_of_an_older_nmem_is_read_and_stays_what_it_was() {
        let bytes: Vec<u8> =
            (0..STORED.len()).step_by(2).map(|at| u8::from_str_radix(&STORED[at..at + 2], 16).unwrap()).collect();
        let step = Step::from_bytes(&bytes).unwrap();
        assert!(step.tool_uses > 1 && step.prompt_features.is_some() && !step.prompt.terms().is_empty(), "{step:?}");
        assert_eq!(Step::from_bytes(&step.to_bytes()), Some(step));
    }
}
