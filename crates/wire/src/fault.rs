//! Problem details: why a request failed, in the form of RFC 9457.

use serde::{Deserialize, Serialize};

/// The problem with a request (`application/problem+json`, RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Problem))]
pub struct ProblemDetailsDto {
    /// The kind of problem: `urn:kelos:problem:` and its stable code.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "openapi", schema(examples("urn:kelos:problem:workflow-not-found")))]
    pub kind: String,
    /// The stable code.
    #[cfg_attr(feature = "openapi", schema(examples("workflow-not-found")))]
    pub code: String,
    /// The kind of problem in words.
    #[cfg_attr(feature = "openapi", schema(examples("Not Found")))]
    pub title: String,
    /// The status of the response.
    #[cfg_attr(feature = "openapi", schema(examples(404)))]
    pub status: u16,
    /// The fault of this request in words, and what was expected.
    pub detail: String,
    /// The path of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// A hint on how to solve the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
