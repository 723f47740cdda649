//! Parts of a request that help where a server supports them, but that some servers and models refuse.

use crate::model::LlmError;

/// The optional parts that a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionalParts {
    /// The form of the answer as a JSON Schema.
    pub schema: bool,
    /// OpenAI only.
    pub temperature: bool,
    /// A stop sequence; OpenAI only.
    pub stop: bool,
    /// Thinking effort; Anthropic only.
    pub effort: bool,
}

impl OptionalParts {
    /// Returns all parts.
    pub const fn all() -> OptionalParts {
        OptionalParts { schema: true, temperature: true, stop: true, effort: true }
    }

    const NONE: OptionalParts = OptionalParts { schema: false, temperature: false, stop: false, effort: false };

    /// Returns the parts to send after a refusal: without those that the error names, or without any if it names none;
    /// `None` if that would change nothing, or if something else failed.
    pub fn without_what_is_refused(self, failure: &LlmError) -> Option<OptionalParts> {
        let text = failure.what.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let may_be_refusal = match failure.outcome.as_str() {
            // The excluded words point to causes other than an optional part.
            "http 400" | "http 422" => {
                says(&["support"]) || !says(&["context", "too long", "too large", "credit", "quota", "model:"])
            }
            // A router finds no server that supports all parts.
            "http 404" | "http 501" => says(&["support"]),
            _ => false,
        };
        if !may_be_refusal {
            return None;
        }
        let sent = |is_sent: bool, words: &[&str]| is_sent && !says(words);
        let next = OptionalParts {
            schema: sent(
                self.schema,
                &["response_format", "output_config.format", "output_config:", "schema", "structured", "grammar"],
            ),
            temperature: sent(self.temperature, &["temperature"]),
            stop: sent(self.stop, &["stop"]),
            effort: sent(self.effort, &["effort"]),
        };
        // An error that names none of them may still be about one.
        let next = if next == self { OptionalParts::NONE } else { next };
        (next != self).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_an_error_names_is_left_out() {
        let failure = |outcome: &str, what: &str| LlmError { outcome: outcome.into(), what: what.into(), again: None };
        let all = OptionalParts::all();
        for (outcome, what, next) in [
            ("http 400", "'response_format' of type json_schema is not supported", Some(OptionalParts { schema: false, ..all })),
            ("http 400", "'temperature' does not support 0 with this model", Some(OptionalParts { temperature: false, ..all })),
            ("http 400", "output_config.effort: not supported by this model", Some(OptionalParts { effort: false, ..all })),
            ("http 404", "No endpoints found that support the requested parameters", Some(OptionalParts::NONE)),
            ("http 422", "unprocessable", Some(OptionalParts::NONE)),
            ("http 404", "the model `x` does not exist", None),
            ("http 400", "this model's maximum context length is 4096 tokens", None),
            ("http 401", "response_format", None),
            ("timeout", "", None),
        ] {
            assert_eq!(all.without_what_is_refused(&failure(outcome, what)), next, "{what}");
        }
        assert_eq!(OptionalParts::NONE.without_what_is_refused(&failure("http 400", "no")), None, "it ends");
    }
}
