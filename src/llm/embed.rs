//! Embeddings, as OpenAI has them and many servers with it (`POST /embeddings`).

use super::http::post;
use super::refusal;
use crate::model::{Endpoint, Passages, Refusal, Vector};
use crate::redact::Clean;
use serde_json::{Value, json};
use std::time::Duration;

/// The vectors of some texts, in their order, all of one length.
///
/// # Errors
/// Why there are none: also where they are not as many as the texts, or of several lengths.
pub fn embed(texts: &Clean<Passages>, to: &Endpoint, limit: Duration) -> Result<Vec<Vector>, Refusal> {
    let key = to.key.as_ref().map(|key| format!("Bearer {key}"));
    let headers: Vec<(&str, &str)> = key.iter().map(|key| ("authorization", key.as_str())).collect();
    let body = json!({"model": to.model, "input": texts.0, "encoding_format": "float"});
    let answer = post(&format!("{}/embeddings", to.base_url), &headers, &body, to, limit)?;
    let broken = || refusal("no vectors", "the answer does not hold a vector for each text: is `model` an embedding model?");
    let data = answer["data"].as_array().filter(|data| data.len() == texts.0.len()).ok_or_else(broken)?;
    let mut vectors: Vec<Option<Vector>> = vec![None; data.len()];
    for (at, entry) in data.iter().enumerate() {
        let numbers = entry["embedding"].as_array().ok_or_else(broken)?;
        let numbers: Option<Vec<f32>> = numbers.iter().map(|n: &Value| n.as_f64().map(|n| n as f32)).collect();
        // The order is what `index` says, where it says anything.
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
