//! Starts within a transaction of one's own in PostgreSQL, also by a program that runs no scheduler.

use kelos_model::key::{RunName, RunNameError};
use kelos_model::{Arguments, IdError, WorkflowId};
use serde::Serialize;
use tokio_postgres::Transaction;

use super::input::{INPUT, arguments_of};

/// The log of a scheduler in the PostgreSQL of this program: what is started within a transaction begins with its commit.
///
/// The scheduler runs elsewhere (`kelos serve --store postgres://…`). The user of the database needs the right to call the function `start` of its schema.
///
/// ```no_run
/// use kelos::embed::Inbox;
///
/// # async fn order(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let mut transaction = client.transaction().await?;
/// transaction.execute("INSERT INTO orders (id, amount) VALUES (42, 3)", &[]).await?;
/// let order = serde_json::json!({ "amount": 3 });
/// Inbox::default().flow("purchase").start_in(&mut transaction, "order-42", &order).await?;
/// transaction.commit().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Inbox {
    schema: String,
}

impl Default for Inbox {
    /// That of the schema `kelos`.
    fn default() -> Inbox {
        Inbox { schema: "kelos".to_owned() }
    }
}

impl Inbox {
    /// That of another schema, as in `postgres://db.example/shop?schema=etl`.
    ///
    /// ```
    /// let inbox = kelos::embed::Inbox::of_schema("etl");
    /// ```
    #[must_use]
    pub fn of_schema(schema: &str) -> Inbox {
        Inbox { schema: schema.to_owned() }
    }

    /// A flow, or another workflow that is started by hand and takes its input as arguments.
    ///
    /// ```
    /// let purchase = kelos::embed::Inbox::default().flow("purchase");
    /// ```
    #[must_use]
    pub fn flow(&self, id: &str) -> InboxWorkflow {
        InboxWorkflow { schema: self.schema.clone(), id: id.to_owned(), is_flow: true, priority: 0 }
    }

    /// A job on demand whose function takes one input.
    ///
    /// ```
    /// let bill = kelos::embed::Inbox::default().job("bill");
    /// ```
    #[must_use]
    pub fn job(&self, id: &str) -> InboxWorkflow {
        InboxWorkflow { is_flow: false, ..self.flow(id) }
    }
}

/// A workflow that is started within transactions.
///
/// ```
/// use kelos::embed::{Inbox, InboxWorkflow};
///
/// let urgent: InboxWorkflow = Inbox::default().flow("purchase").priority(10);
/// ```
#[derive(Debug, Clone)]
pub struct InboxWorkflow {
    schema: String,
    id: String,
    is_flow: bool,
    priority: i32,
}

impl InboxWorkflow {
    /// The priority of the runs that it starts. Larger goes first in lines.
    ///
    /// ```
    /// let urgent = kelos::embed::Inbox::default().flow("purchase").priority(10);
    /// ```
    #[must_use]
    pub fn priority(self, priority: i32) -> InboxWorkflow {
        InboxWorkflow { priority, ..self }
    }

    /// Asks for a run with the commit of a transaction; it is rolled back with it. A name is started once: one that is known is the same
    /// run, and its first input counts.
    ///
    /// A request that the scheduler refuses later, because it has no such workflow, is set aside with the reason in the table `inbox`.
    ///
    /// ```no_run
    /// # use kelos::embed::{Inbox, InboxError};
    /// async fn bill(transaction: &mut tokio_postgres::Transaction<'_>) -> Result<(), InboxError> {
    ///     Inbox::default().job("bill").start_in(transaction, "order-42", &3).await
    /// }
    /// ```
    ///
    /// # Errors
    /// When a name or the input can't be used, which is found out before anything is sent; or when the database refuses, which ends the
    /// transaction.
    pub async fn start_in(
        &self,
        transaction: &mut Transaction<'_>,
        run: &str,
        input: &impl Serialize,
    ) -> Result<(), InboxError> {
        let (workflow, key, arguments) = self.checked(run, input)?;
        // Names of schemas are quoted, whatever is in them.
        let schema = self.schema.replace('"', "\"\"");
        let text = format!("SELECT \"{schema}\".start($1, $2, $3::text::jsonb, $4)");
        let refused = |source| InboxError::Database { workflow: self.id.clone(), run: run.to_owned(), source };
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] = [&workflow, &key, &arguments, &self.priority];
        transaction.query_one(&text, &values).await.map(drop).map_err(refused)
    }

    /// The values of a request, as they are sent.
    fn checked(&self, run: &str, input: &impl Serialize) -> Result<(String, String, String), InboxError> {
        let workflow = WorkflowId::new(&self.id)?;
        let key = RunName::new(run)?;
        let unwritten = |source| InboxError::Input { workflow: self.id.clone(), source };
        let arguments = match self.is_flow {
            true => arguments_of(input).map_err(unwritten)?,
            false => Arguments::from([(INPUT.to_owned(), serde_json::to_string(input).map_err(unwritten)?.into())]),
        };
        let json = serde_json::to_string(&arguments).map_err(unwritten)?;
        Ok((workflow.to_string(), key.as_str().to_owned(), json))
    }
}

/// The reason for which a run was not asked for. Messages complete "failed to …".
///
/// ```
/// # use kelos::embed::InboxError;
/// fn is_of_database(error: &InboxError) -> bool {
///     matches!(error, InboxError::Database { .. })
/// }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// The name of the workflow is none.
    #[error("start a run in a transaction: {0}")]
    Workflow(#[from] IdError),
    /// The name of the run is none.
    #[error("start a run in a transaction: {0}")]
    Run(#[from] RunNameError),
    /// The input can't be written as JSON.
    #[error("write the input of {workflow}: {source}")]
    Input {
        /// The workflow.
        workflow: String,
        /// The error of the input.
        source: serde_json::Error,
    },
    /// The database refused, or the connection to it broke.
    #[error("ask for {workflow}@{run} in the transaction: {}; the schema needs a log that a node of this version has led, and the user USAGE of the schema and EXECUTE of its function start", source.as_db_error().map_or_else(|| source.to_string(), |refusal| refusal.message().to_owned()))]
    Database {
        /// The workflow.
        workflow: String,
        /// The name of the run.
        run: String,
        /// The error of the database.
        source: tokio_postgres::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_those_of_other_starts() {
        let inbox = Inbox::default();
        let flow = inbox.flow("purchase").checked("order-42", &serde_json::json!({ "amount": 3 })).unwrap();
        assert_eq!(flow, ("purchase".to_owned(), "order-42".to_owned(), r#"{"amount":3}"#.to_owned()));
        assert_eq!(inbox.job("bill").checked("order-42", &"Ann").unwrap().2, r#"{"input":"\"Ann\""}"#);
        assert_eq!(inbox.flow("purchase").checked("order-42", &()).unwrap().2, "{}");
    }

    #[test]
    fn names_that_are_none_are_refused_before_anything_is_sent() {
        let refused = |id: &str, run: &str| Inbox::default().flow(id).checked(run, &()).unwrap_err().to_string();
        insta::assert_snapshot!([refused("", "order-42"), refused("purchase", "order 42")].join("\n"), @r#"
        start a run in a transaction: workflow id can't be only whitespace
        start a run in a transaction: "order 42" can't name a run: expected at most 200 letters, digits, _, - or :, beginning with a letter or a digit, and no time, such as order-42
        "#);
    }
}
