//! How sure a decision is, by what became of it (ADR/0037): the mean of a beta distribution. What was said when it was made
//! counts as much as two outcomes, and each outcome that is known moves it.

/// What was said counts as so many outcomes.
const SAID: f64 = 2.0;
/// Where nothing was said.
const UNSAID: f64 = 0.5;

/// What became of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Failed,
    Reverted,
    Superseded,
    Contradicted,
}

impl Outcome {
    /// As so many outcomes for it, or, below zero, against it.
    pub fn counts(self) -> f64 {
        match self {
            Outcome::Done => 1.0,
            Outcome::Failed | Outcome::Contradicted => -1.0,
            Outcome::Reverted => -2.0,
            Outcome::Superseded => -3.0,
        }
    }

    /// What is said of it.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Done => "its task was done",
            Outcome::Failed => "its task was not finished",
            Outcome::Reverted => "its commit was reverted",
            Outcome::Superseded => "another holds instead",
            Outcome::Contradicted => "a newer one says otherwise",
        }
    }
}

/// How sure it is now, from 0 to 1, in thousandths.
pub fn confidence(said: Option<f64>, outcomes: impl IntoIterator<Item = Outcome>) -> f64 {
    let (mut speaks_for, mut all) = (SAID * said.unwrap_or(UNSAID).clamp(0.0, 1.0), SAID);
    for outcome in outcomes {
        speaks_for += outcome.counts().max(0.0);
        all += outcome.counts().abs();
    }
    (speaks_for / all * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::Outcome::*;
    use super::*;

    #[test]
    fn outcomes_move_it_and_never_out_of_bounds() {
        assert_eq!(confidence(Some(0.8), []), 0.8);
        assert_eq!(confidence(None, []), 0.5);
        assert_eq!(confidence(Some(0.8), [Done]), 0.867);
        assert_eq!(confidence(Some(0.8), [Failed]), 0.533);
        assert_eq!(confidence(Some(0.8), [Done, Reverted]), 0.52);
        assert_eq!(confidence(Some(1.0), [Superseded]), 0.4);
        for said in [None, Some(0.0), Some(1.0), Some(7.0)] {
            for outcome in [Done, Failed, Reverted, Superseded, Contradicted] {
                let (before, now) = (confidence(said, []), confidence(said, [outcome]));
                assert!(
                    (0.0..=1.0).contains(&now) && (now >= before) == (outcome == Done || before == 0.0),
                    "{said:?} {outcome:?}"
                );
            }
        }
    }
}
