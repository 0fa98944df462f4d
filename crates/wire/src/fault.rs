//! Problem details: why something was not done, as RFC 9457 has it.

use serde::{Deserialize, Serialize};

/// What went wrong (`application/problem+json`, RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Problem))]
pub struct ProblemDetailsDto {
    /// Names the kind of problem: `urn:kelos:problem:` and a word that stays the same.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "openapi", schema(examples("urn:kelos:problem:workflow-not-found")))]
    pub kind: String,
    /// The same word alone.
    #[cfg_attr(feature = "openapi", schema(examples("workflow-not-found")))]
    pub code: String,
    /// The kind of problem in words.
    #[cfg_attr(feature = "openapi", schema(examples("Not Found")))]
    pub title: String,
    /// The status of the response.
    #[cfg_attr(feature = "openapi", schema(examples(404)))]
    pub status: u16,
    /// What is wrong with this request, and what was expected.
    pub detail: String,
    /// The path of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
