//! Confidence in a decision from its outcomes (ADR/0037): the mean of a beta distribution. The stated confidence counts
//! as two outcomes.

/// Weight of the stated confidence, in outcomes.
const SAID: f64 = 2.0;
/// Prior confidence if none is stated.
const UNSAID: f64 = 0.5;

/// An outcome of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionOutcome {
    Done,
    Failed,
    Reverted,
    Superseded,
    Contradicted,
}

impl DecisionOutcome {
    /// Returns its weight; negative if it counts against the decision.
    pub fn counts(self) -> f64 {
        match self {
            DecisionOutcome::Done => 1.0,
            DecisionOutcome::Failed | DecisionOutcome::Contradicted => -1.0,
            DecisionOutcome::Reverted => -2.0,
            DecisionOutcome::Superseded => -3.0,
        }
    }

    /// Its description.
    pub fn name(self) -> &'static str {
        match self {
            DecisionOutcome::Done => "its task was done",
            DecisionOutcome::Failed => "its task was not finished",
            DecisionOutcome::Reverted => "its commit was reverted",
            DecisionOutcome::Superseded => "superseded by another",
            DecisionOutcome::Contradicted => "contradicted by a newer one",
        }
    }
}

/// Current confidence from 0 to 1, rounded to thousandths.
pub fn confidence(said: Option<f64>, outcomes: impl IntoIterator<Item = DecisionOutcome>) -> f64 {
    let (mut speaks_for, mut all) = (SAID * said.unwrap_or(UNSAID).clamp(0.0, 1.0), SAID);
    for outcome in outcomes {
        speaks_for += outcome.counts().max(0.0);
        all += outcome.counts().abs();
    }
    (speaks_for / all * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::DecisionOutcome::*;
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
