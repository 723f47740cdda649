//! Embeddings through the OpenAI API (`POST /embeddings`), which many servers offer.

use super::failure;
use super::http::post;
use crate::model::{Endpoint, LlmError, Passages, Vector};
use crate::redact::Clean;
use serde_json::{Value, json};
use std::time::Duration;

/// Returns the vectors of some texts, in order and all of one dimension.
///
/// # Errors
///
/// Returns the reason if there are none, including a wrong number of vectors or mixed dimensions.
pub fn embed(texts: &Clean<Passages>, to: &Endpoint, limit: Duration) -> Result<Vec<Vector>, LlmError> {
    let key = to.key.as_ref().map(|key| format!("Bearer {key}"));
    let headers: Vec<(&str, &str)> = key.iter().map(|key| ("authorization", key.as_str())).collect();
    let body = json!({"model": to.model, "input": texts.0, "encoding_format": "float"});
    let answer = post(&format!("{}/embeddings", to.base_url), &headers, &body, to, limit)?;
    let broken = || failure("no vectors", "the answer does not contain a vector for each text: is `model` an embedding model?");
    let data = answer["data"].as_array().filter(|data| data.len() == texts.0.len()).ok_or_else(broken)?;
    let mut vectors: Vec<Option<Vector>> = vec![None; data.len()];
    for (at, entry) in data.iter().enumerate() {
        let numbers = entry["embedding"].as_array().ok_or_else(broken)?;
        let numbers: Option<Vec<f32>> = numbers.iter().map(|n: &Value| n.as_f64().map(|n| n as f32)).collect();
        // `index` gives the order, if present.
        let place = entry["index"].as_u64().map_or(at, |index| index as usize);
        *vectors.get_mut(place).ok_or_else(broken)? = numbers.and_then(|numbers| Vector::of(&numbers));
    }
    let vectors: Vec<Vector> = vectors.into_iter().collect::<Option<_>>().ok_or_else(broken)?;
    let length = vectors.first().map_or(0, |vector| vector.numbers.len());
    if vectors.iter().any(|vector| vector.numbers.len() != length) {
        return Err(broken());
    }
    Ok(vectors)
}
