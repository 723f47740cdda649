//! Selects lines of ranked units for a byte budget: by value per byte, without duplicates.

use crate::text::alike;

/// A candidate line of a unit.
#[derive(Clone, Debug)]
pub struct BudgetLine {
    /// Index of its unit in the ranking.
    pub group: usize,
    /// The line that names its unit; other lines require it.
    pub head: bool,
    pub text: String,
    /// Its value: the score of its unit, weighted by its content.
    pub worth: f64,
}

/// Selects lines that take at most `budget` bytes with their line ends; returns their indexes in order.
pub fn select_within(lines: &[BudgetLine], budget: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lines.len()).collect();
    // A short line also costs its frame and the reader's attention.
    let density = |line: &BudgetLine| line.worth / (line.text.len() as f64 + 60.0);
    order.sort_by(|a, b| density(&lines[*b]).total_cmp(&density(&lines[*a])).then(a.cmp(b)));
    let mut chosen: Vec<usize> = Vec::new();
    let mut size = 0;
    for at in order {
        let line = &lines[at];
        if chosen.contains(&at) || chosen.iter().any(|other| !line.head && alike(&lines[*other].text, &line.text)) {
            continue;
        }
        // Other lines of a unit need its name.
        let head = (!line.head).then(|| lines.iter().position(|other| other.head && other.group == line.group)).flatten();
        let head = head.filter(|head| !chosen.contains(head));
        let cost = line.text.len() + 1 + head.map_or(0, |head| lines[head].text.len() + 1);
        if size + cost <= budget {
            size += cost;
            chosen.extend(head);
            chosen.push(at);
        }
    }
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(group: usize, head: bool, text: &str, worth: f64) -> BudgetLine {
        BudgetLine { group, head, text: text.into(), worth }
    }

    #[test]
    fn names_come_before_details_and_nothing_appears_twice() {
        let lines = [
            line(0, true, "first work unit", 2.0),
            line(0, false, "the cause was a lock", 1.0),
            line(1, true, "second work unit", 1.5),
            line(1, false, "The cause was a lock.", 0.7),
            line(2, true, "third", 0.1),
        ];
        assert_eq!(select_within(&lines, 34), [0, 2]);
        assert_eq!(select_within(&lines, 1000), [0, 1, 2, 4]);
    }

    proptest! {
        #[test]
        fn what_is_chosen_fits_and_has_its_head(
            all in prop::collection::vec((0_usize..6, "[a-z ]{1,40}", 0.0_f64..2.0), 0..30), budget in 0_usize..600
        ) {
            let mut lines: Vec<BudgetLine> = (0..6).map(|group| line(group, true, "head", 0.5)).collect();
            lines.extend(all.iter().map(|(group, text, worth)| line(*group, false, text, *worth)));
            let chosen = select_within(&lines, budget);
            prop_assert!(chosen.iter().map(|at| lines[*at].text.len() + 1).sum::<usize>() <= budget);
            for at in &chosen {
                prop_assert!(chosen.contains(&lines[*at].group), "its head");
            }
        }
    }
}
