//! A function with the types of its input, its state and its error: of a job, or of a step.

use std::error::Error;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;

use kelos_model::FailureCode;
use serde::Serialize;
use serde_json::{Map, Value};

use super::context::Context;
use super::failure;
use super::function::{Body, BodyFuture, FailedCall};
use super::input::{Input, SlotInput};
use super::output;

/// Errors of functions, as those of `std` and most libraries are.
pub(super) type AnyError = Box<dyn Error + Send + Sync>;

type Call<I, S, E> =
    Arc<dyn Fn(Context, I, S) -> Pin<Box<dyn Future<Output = Result<Output, E>> + Send>> + Send + Sync>;
type Output = Result<Option<Map<String, Value>>, String>;
type IsFinal<E> = Arc<dyn Fn(&E) -> bool + Send + Sync>;

/// A function of an id, defined in a place.
pub(super) struct TypedFunction<I, S, E> {
    pub(super) id: String,
    place: &'static Location<'static>,
    call: Call<I, S, E>,
    is_final: Option<IsFinal<E>>,
}

impl<I, S, E> TypedFunction<I, S, E> {
    /// The function of an id, defined in a place.
    pub(super) fn new<O, F>(
        id: &str,
        place: &'static Location<'static>,
        function: impl Fn(Context, I, S) -> F + Send + Sync + 'static,
    ) -> TypedFunction<I, S, E>
    where
        I: Input,
        O: Serialize,
        F: Future<Output = Result<O, E>> + Send + 'static,
    {
        let call: Call<I, S, E> = Arc::new(move |context, input, state| {
            let slot = context.slot().clone();
            let running = function(context, input, state);
            Box::pin(async move { running.await.map(|given| output::of(&given, &slot)) })
        });
        TypedFunction { id: id.to_owned(), place, call, is_final: None }
    }
}

impl<I, S, E> TypedFunction<I, S, E>
where
    I: Input,
    S: Clone + Send + Sync + 'static,
    E: Into<AnyError> + 'static,
{
    /// The same where no retry follows an error of which this is true.
    pub(super) fn unless(self, is_final: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
        TypedFunction { is_final: Some(Arc::new(is_final)), ..self }
    }

    /// The id, the place of the definition, and the function without its types.
    pub(super) fn with_state(self, state: S) -> (String, &'static Location<'static>, Body) {
        let TypedFunction { id, place, call, is_final } = self;
        let body: Body = Arc::new(move |context, given: &SlotInput<'_>| -> BodyFuture {
            let input = match I::read(given) {
                Ok(input) => input,
                Err(reason) => {
                    let failure = FailedCall::last(format!("its input is unsound: {reason}"));
                    return Box::pin(std::future::ready(Err(failure)));
                }
            };
            let slot = context.slot().clone();
            let running = call(context, input, state.clone());
            let is_final = is_final.clone();
            Box::pin(async move {
                match running.await {
                    Ok(Ok(output)) => Ok(output),
                    Ok(Err(reason)) => Err(FailedCall::last(reason)),
                    Err(error) => {
                        let code = is_final.is_some_and(|is| is(&error)).then_some(FailureCode::FINAL);
                        let error: AnyError = error.into();
                        match failure::data_of(&*error, &slot) {
                            Ok(data) => Err(FailedCall { reason: causes(&*error), code, data }),
                            Err(reason) => Err(FailedCall::last(format!("{}: {reason}", causes(&*error)))),
                        }
                    }
                }
            })
        });
        (id, place, body)
    }
}

/// An error with its causes.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Many errors repeat their cause.
        if !words.ends_with(&text) {
            words = format!("{words}: {text}");
        }
        cause = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("read the order")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("the disk is full")]
    struct Inner;

    #[test]
    fn an_error_keeps_its_causes() {
        assert_eq!(causes(&Outer(Inner)), "read the order: the disk is full");
        assert_eq!(causes(&*AnyError::from("plain")), "plain");
    }
}
