//! Checks for Oozie: the folder `hdfs/` is compared with the scripts.

use std::sync::Arc;

use kelos_model::Workflow;
use kelos_model::workflow::Properties;
use roxmltree::{Document, ParsingOptions};

use super::{Bundle, DeployError, ProjectName};

/// The property with the path of an Oozie workflow.
const APPLICATION: &str = "oozie.wf.application.path";

/// The file that Oozie reads in the folder of a workflow.
const WORKFLOW_XML: &str = "workflow.xml";

/// Checks the files for Oozie, and that workflows run the deployed ones; returns notes.
pub(super) fn check(
    project: &ProjectName,
    bundle: &Bundle,
    workflows: &[Arc<Workflow>],
    root: &str,
) -> Result<Vec<String>, DeployError> {
    well_formed(bundle)?;
    // Schedules run only the jobs of programs.
    let is_own = |one: &&Arc<Workflow>| project.owns(&one.source.file) && one.keys.events().is_none();
    let own: Vec<&Arc<Workflow>> = workflows.iter().filter(is_own).filter(|one| one.job.executor == "oozie").collect();
    let mut notes = Vec::new();
    for workflow in &own {
        if let Some(path) = application_path(workflow) {
            notes.extend(judge(project, bundle, workflow, path, root)?);
        }
    }
    if bundle.hdfs.is_none() {
        let why = if own.is_empty() { "no workflow uses Oozie" } else { "what is there stays" };
        notes.push(format!("there is no folder hdfs: HDFS is not touched, {why}"));
    }
    Ok(notes)
}

fn well_formed(bundle: &Bundle) -> Result<(), DeployError> {
    let files = bundle.hdfs.iter().flatten();
    for (path, file) in files.filter(|(path, _)| path.rsplit('/').next() == Some(WORKFLOW_XML)) {
        let fail = |reason: String| DeployError::Layout { folder: format!("hdfs/{path}"), reason };
        let bytes = file.read().map_err(|error| fail(format!("it can't be read: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|_| fail("it is not UTF-8 text".to_owned()))?;
        let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
        let parsed = Document::parse_with_options(&text, options);
        let document = parsed.map_err(|error| fail(format!("it is not well-formed XML: {error}")))?;
        let root = document.root_element().tag_name().name().to_owned();
        if root != "workflow-app" {
            return Err(fail(format!("its root element is <{root}>, expected <workflow-app>")));
        }
    }
    Ok(())
}

/// The path that a workflow runs, without scheme and server; none if a script's function computes it.
fn application_path(workflow: &Workflow) -> Option<&str> {
    let Properties::Fixed(properties) = &workflow.job.properties else { return None };
    let path = properties.get(APPLICATION)?.as_str()?;
    let rest =
        path.split_once(':').map_or(path, |(scheme, rest)| if scheme.contains(['/', '$']) { path } else { rest });
    Some(match rest.strip_prefix("//") {
        Some(rest) => rest.find('/').map_or("/", |start| &rest[start..]),
        None => rest,
    })
}

fn judge(
    project: &ProjectName,
    bundle: &Bundle,
    workflow: &Workflow,
    path: &str,
    root: &str,
) -> Result<Option<String>, DeployError> {
    let id = &workflow.id;
    let own = format!("{root}/{project}");
    let inside = path.strip_prefix(&own).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let Some(inside) = inside else {
        // Values that are filled in later can't be checked now.
        let known = !path.starts_with('$');
        return Ok(known.then(|| format!("workflow \"{id}\" runs {path}, which is not in {own}, where hdfs/ goes")));
    };
    let inside = inside.trim_matches('/');
    if inside.contains("${") {
        return Ok(None);
    }
    let fail = |reason: String| Err(DeployError::Oozie { project: project.to_string(), reason });
    let Some(files) = &bundle.hdfs else {
        return fail(format!(
            "workflow \"{id}\" runs {path}, which hdfs/ is to become, but there is no such folder in the deployment directory"
        ));
    };
    let below = if inside.is_empty() { WORKFLOW_XML.to_owned() } else { format!("{inside}/{WORKFLOW_XML}") };
    match files.contains_key(inside) || files.contains_key(&below) {
        true => Ok(None),
        false => fail(format!("workflow \"{id}\" runs {path}, but there is no {} in hdfs/", wanted(inside, &below))),
    }
}

fn wanted<'a>(inside: &'a str, below: &'a str) -> &'a str {
    if inside.ends_with(".xml") { inside } else { below }
}
