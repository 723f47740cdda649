//! Fits the weights of the choice: logistic regression with an L2 penalty on "this statement holds a fact", weighed by the
//! fact. ScoredStatements by weights that have not seen the session.

use super::Project;
use super::score::{Labels, holds};
use nmem::distil::score::{FEATURES, Features, Lexicon, ScoreWeights, ScoredStatements, features};
use nmem::distil::statements::StatementForm;
use nmem::distil::turns::{UnitStatement, turn_facts, turns, unit_statements};
use nmem::domains;
use nmem::model::UnitStory;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Strength of the penalty on a weight's square.
const PENALTY: f64 = 20.0;

/// A statement: its features, whether it holds a fact, and what it weighs.
struct Row {
    values: Features,
    is_fact: f64,
    weight: f64,
}

type Stories = BTreeMap<String, Vec<UnitStory>>;

/// The weights for each session.
pub type Fitted = BTreeMap<String, ScoreWeights>;

/// For each session the weights that were fitted on the other projects; with `without`, one feature is left out.
pub fn by_others(projects: &[Project], stories: &Stories, without: Option<usize>) -> Fitted {
    let rows_of = |project: &Project| -> Vec<Row> {
        project.labels.iter().flat_map(|(id, labels)| rows(&stories[id], labels, without)).collect()
    };
    let rows: Vec<Vec<Row>> = projects.iter().map(rows_of).collect();
    let mut fitted = Fitted::new();
    for (own, project) in projects.iter().enumerate() {
        let others = rows.iter().enumerate().filter(|(other, _)| *other != own);
        let weights = logistic(&others.flat_map(|(_, rows)| rows).collect::<Vec<_>>());
        fitted.extend(project.labels.keys().map(|id| (id.clone(), weights.clone())));
    }
    fitted
}

/// The weights fitted on all sessions.
pub fn all(projects: &[Project], stories: &Stories) -> ScoreWeights {
    let labels = projects.iter().flat_map(|project| &project.labels);
    let rows: Vec<Row> = labels.flat_map(|(id, labels)| rows(&stories[id], labels, None)).collect();
    logistic(&rows.iter().collect::<Vec<_>>())
}

fn rows(stories: &[UnitStory], labels: &Labels, without: Option<usize>) -> Vec<Row> {
    let domain = domains::of(None, None);
    let lexicon = Lexicon::compiled();
    let mut rows = Vec::new();
    for story in stories {
        let turns = turns(story, &domain);
        let (said, contexts) = (unit_statements(&turns), turn_facts(&turns));
        let features = features(&said, &contexts, &lexicon);
        for (at, mut values) in features.into_iter().enumerate().filter(|(at, _)| is_candidate(&said[*at])) {
            without.into_iter().for_each(|at| values[at] = 0.0);
            let worth = worth(&said, at, labels);
            rows.push(Row { values, is_fact: f64::from(u8::from(worth > 0.0)), weight: if worth > 0.0 { worth } else { 1.0 } });
        }
    }
    rows
}

/// The user's statements are not chosen by the score, but the weights learn from them too: without them it kept .632.
fn is_candidate(said: &UnitStatement) -> bool {
    !matches!(said.form, StatementForm::Heading | StatementForm::Shown)
}

/// The weight of the fact that a statement holds; half of it, where it needs the next statement.
fn worth(said: &[UnitStatement], at: usize, labels: &Labels) -> f64 {
    let both = said.get(at + 1).map(|next| format!("{}\n{}", said[at].text, next.text));
    let worth = labels.facts.iter().map(|fact| match &both {
        _ if holds(&said[at].text, &fact.must) => fact.weight,
        Some(both) if holds(both, &fact.must) => 0.5 * fact.weight,
        _ => 0.0,
    });
    worth.fold(0.0, f64::max)
}

/// Newton's method; the bias is not penalized.
fn logistic(rows: &[&Row]) -> ScoreWeights {
    const N: usize = FEATURES.len() + 1;
    let mut w = [0.0; N];
    for _ in 0..12 {
        let (mut gradient, mut hessian) = ([0.0; N], [[0.0; N]; N]);
        for row in rows {
            let x = |i: usize| if i == 0 { 1.0 } else { f64::from(row.values[i - 1]) };
            let p = 1.0 / (1.0 + (-(0..N).map(|i| w[i] * x(i)).sum::<f64>()).exp());
            let (slope, curve) = (row.weight * (p - row.is_fact), row.weight * (p * (1.0 - p)).max(1e-6));
            for i in 0..N {
                gradient[i] += slope * x(i);
                (0..=i).for_each(|j| hessian[i][j] += curve * x(i) * x(j));
            }
        }
        for i in 1..N {
            gradient[i] += PENALTY * w[i];
            hessian[i][i] += PENALTY;
        }
        let step = solve(hessian, gradient);
        w.iter_mut().zip(step).for_each(|(w, step)| *w -= step);
    }
    let mut of = [0.0; FEATURES.len()];
    of.iter_mut().zip(&w[1..]).for_each(|(to, from)| *to = *from as f32);
    ScoreWeights { bias: w[0] as f32, of }
}

/// Solves a symmetric positive system, given its lower half (Cholesky).
fn solve<const N: usize>(mut a: [[f64; N]; N], mut b: [f64; N]) -> [f64; N] {
    for i in 0..N {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| a[i][k] * a[j][k]).sum();
            a[i][j] = if i == j { (a[i][i] - sum).max(1e-12).sqrt() } else { (a[i][j] - sum) / a[j][j] };
        }
    }
    for i in 0..N {
        let sum: f64 = (0..i).map(|k| a[i][k] * b[k]).sum();
        b[i] = (b[i] - sum) / a[i][i];
    }
    for i in (0..N).rev() {
        let sum: f64 = (i + 1..N).map(|k| a[k][i] * b[k]).sum();
        b[i] = (b[i] - sum) / a[i][i];
    }
    b
}

/// The source of `src/distil/statement_weights.rs`.
pub fn as_source(weights: &ScoreWeights) -> String {
    let mut out = String::from(
        "//! The fitted weights: `cargo bench --bench facts -- --fit` writes this file. How they are chosen: ADR/0046.\n\n",
    );
    let _ = writeln!(out, "/// Log-odds of a statement without any feature.\npub const BIAS: f32 = {:.4};\n", weights.bias);
    out += &format!("/// The weight of each feature.\n#[rustfmt::skip]\npub const WEIGHTS: [f32; {}] = [\n", FEATURES.len());
    for (weight, name) in weights.of.iter().zip(FEATURES) {
        let _ = writeln!(out, "    {weight:7.4}, // {name}");
    }
    out + "];\n"
}

/// Statements that the score alone selects from a session, without titles, summaries and tasks, one on a line.
pub fn chosen(stories: &[UnitStory], weights: &ScoreWeights) -> String {
    let domain = domains::of(None, None);
    let mut lines = Vec::new();
    for story in stories {
        let scored = ScoredStatements::new(&turns(story, &domain), weights);
        lines.extend(scored.select(&[], &domain).into_iter().map(|at| scored.statements[at].text.clone()));
    }
    lines.join("\n")
}
