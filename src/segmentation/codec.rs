//! A step as bytes: little-endian, lists with their length before them. A version byte comes first; what is of another
//! version, or damaged, is read as nothing, and the detector goes on without it.

use super::asked::Asked;
use super::bag::Bag;
use super::phases::{Phase, Run};
use crate::model::Millis;

/// Changes with whatever changes the meaning of a byte, or of a term's hash.
const VERSION: u8 = 1;

pub(super) struct Writer(Vec<u8>);

impl Default for Writer {
    fn default() -> Writer {
        Writer(vec![VERSION])
    }
}

impl Writer {
    pub fn time(&mut self, at: Millis) {
        self.0.extend(at.to_le_bytes());
    }

    pub fn number(&mut self, n: u32) {
        self.0.extend(n.to_le_bytes());
    }

    pub fn flags<const N: usize>(&mut self, flags: [bool; N]) {
        self.0.push(flags.iter().enumerate().fold(0, |bits, (at, flag)| bits | u8::from(*flag) << at));
    }

    pub fn asked(&mut self, asked: Option<&Asked>) {
        self.0.push(u8::from(asked.is_some()));
        if let Some(asked) = asked {
            self.0.extend(asked.words.to_le_bytes());
            self.0.extend(asked.meaning.to_le_bytes());
            self.0.extend([asked.shift_words, asked.bits()]);
        }
    }

    pub fn bag(&mut self, bag: &Bag) {
        self.length(bag.terms().len());
        for (term, count) in bag.terms() {
            self.number(*term);
            self.0.push(*count);
        }
    }

    pub fn list(&mut self, list: &[u32]) {
        self.length(list.len());
        list.iter().for_each(|n| self.number(*n));
    }

    pub fn runs(&mut self, runs: &[Run]) {
        self.length(runs.len());
        for run in runs {
            self.0.push(Phase::ALL.iter().position(|phase| *phase == run.phase).unwrap_or(0) as u8);
            self.number(run.tool_uses);
            self.time(run.ms);
        }
    }

    pub fn done(self) -> Vec<u8> {
        self.0
    }

    fn length(&mut self, n: usize) {
        self.0.extend((n.min(u16::MAX.into()) as u16).to_le_bytes());
    }
}

pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Option<Reader<'a>> {
        match bytes.split_first() {
            Some((&VERSION, rest)) => Some(Reader(rest)),
            _ => None,
        }
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    pub fn time(&mut self) -> Option<Millis> {
        self.take().map(Millis::from_le_bytes)
    }

    pub fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub fn flags<const N: usize>(&mut self) -> Option<[bool; N]> {
        let [bits] = self.take()?;
        Some(std::array::from_fn(|at| bits >> at & 1 == 1))
    }

    /// The outer option is whether it could be read, the inner one whether there was a prompt.
    pub fn asked(&mut self) -> Option<Option<Asked>> {
        let [is_there] = self.take()?;
        if is_there == 0 {
            return Some(None);
        }
        let (words, meaning) = (u16::from_le_bytes(self.take()?), u16::from_le_bytes(self.take()?));
        let [shift_words, bits] = self.take()?;
        Some(Some(Asked::from_bits(words, meaning, shift_words, bits)))
    }

    pub fn bag(&mut self) -> Option<Bag> {
        let n = self.length()?;
        let terms = (0..n).map(|_| Some((self.number()?, self.take::<1>()?[0]))).collect::<Option<Vec<_>>>()?;
        terms.is_sorted_by(|a, b| a.0 < b.0).then(|| Bag::from_terms(terms))
    }

    pub fn list(&mut self) -> Option<Vec<u32>> {
        let n = self.length()?;
        (0..n).map(|_| self.number()).collect()
    }

    pub fn runs(&mut self) -> Option<Vec<Run>> {
        let n = self.length()?;
        (0..n)
            .map(|_| {
                let [phase] = self.take()?;
                Some(Run { phase: *Phase::ALL.get(usize::from(phase))?, tool_uses: self.number()?, ms: self.time()? })
            })
            .collect()
    }

    fn length(&mut self) -> Option<usize> {
        self.take().map(u16::from_le_bytes).map(usize::from)
    }
}

#[cfg(test)]
mod tests {
    use super::super::step::Step;
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
            let _ = Step::from_bytes(&bytes);
            bytes.insert(0, super::VERSION);
            let _ = Step::from_bytes(&bytes);
        }
    }
}
