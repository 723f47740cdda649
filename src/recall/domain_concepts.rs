//! The concepts by which a project's domain marks findings, such as gotchas and fixed problems.

use crate::domains;
use crate::model::Finding;
use crate::store::Store;
use anyhow::Result;

/// The concept of each finding in a project's domain; empty for a finding that the domain has no concept for.
pub(super) fn concepts<const N: usize>(store: &Store, project: i64, findings: [Finding; N]) -> Result<[String; N]> {
    let domain = store.domain_of_project(project)?.unwrap_or_default();
    let domain = domains::of(Some(&domain.0), domain.1.as_deref());
    Ok(findings.map(|finding| domain.becomes(finding).concepts.into_iter().next().unwrap_or_default()))
}
