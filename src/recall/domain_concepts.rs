//! The concepts with which a project's domain marks findings, such as gotchas and fixed problems.

use crate::domains;
use crate::model::Finding;
use crate::store::Store;
use anyhow::Result;

/// Returns the concept of each finding in a project's domain; empty if the domain has no concept for it.
pub(super) fn concepts<const N: usize>(store: &Store, project: i64, findings: [Finding; N]) -> Result<[String; N]> {
    let domain = store.domain_of_project(project)?.unwrap_or_default();
    let domain = domains::of(Some(&domain.0), domain.1.as_deref());
    Ok(findings.map(|finding| domain.becomes(finding).concepts.into_iter().next().unwrap_or_default()))
}
