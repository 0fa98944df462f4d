//! Preparation: everything is checked before anything is changed.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_sandbox::Problem;
use kelos_storage::Place;

use super::bundle::Texts;
use super::change::{self, Difference, FileChange};
use super::inspect::{Definitions, Plan};
use super::site::{Site, below, shown};
use super::staging::Scripts;
use super::{Bundle, BundleScripts, DeployError, ProjectName, Step, hdfs, oozie, slots};

/// A deployment that was checked and can be carried out.
pub struct DeploymentPlan {
    pub(super) site: Site,
    pub(super) bundle: Option<Bundle>,
    pub(super) folders: Option<hdfs::Folders>,
    pub(super) steps: Vec<Step>,
    plan: Plan,
    before: Definitions,
    after: Definitions,
}

/// Checks that a project can be deployed, or, without a bundle, undeployed. Changes nothing.
///
/// # Errors
/// If it can't, with the reason and what was expected.
pub async fn prepare(
    project: ProjectName,
    bundle: Option<Bundle>,
    site: Site,
    now: Timestamp,
) -> Result<DeploymentPlan, DeployError> {
    site.require_folders().await?;
    let mut notes = site.notes.clone();
    let scripts = Scripts::fetch(&site, &mut notes).await?;
    let before = scripts.clone().inspect(&project, &site.format).await?;
    let after = scripts.with(&project, bundle.as_ref()).inspect(&project, &site.format).await?;
    refuse_errors(&project, bundle.is_none(), &before, &after)?;
    if let Some(bundle) = &bundle {
        notes.extend(oozie::check(&project, bundle, &after.workflows, &site.hdfs.path)?);
    }
    let (folders, in_hdfs) = look_at_hdfs(&project, bundle.as_ref(), &site).await?;
    if let Some(folders) = folders.as_ref().filter(|_| bundle.is_some()) {
        notes.extend(folders.missing_root().await?);
    }
    let (mut files, mut steps) = (in_hdfs, Vec::new());
    let in_hdfs = hdfs_steps(bundle.is_none(), folders.as_ref(), &files).await?;
    steps.extend(in_hdfs.iter().filter(|_| bundle.is_some()).cloned());
    script_steps(&project, bundle.as_ref(), &site, &scripts, &mut files, &mut steps);
    steps.extend(in_hdfs.into_iter().filter(|_| bundle.is_none()));
    notes.extend(defaults_go(bundle.as_ref(), &scripts, &project));
    let plan = Plan {
        undeploy: bundle.is_none(),
        files,
        workflows: change::changes_of(&before.workflows, &after.workflows),
        slots: slots::by_schedule(&before.workflows, &after.workflows, now),
        warnings: after.news(&before, &project).filter(|problem| !problem.is_error()).cloned().collect(),
        notes,
        project,
    };
    Ok(DeploymentPlan { site, bundle, folders, steps, plan, before, after })
}

impl DeploymentPlan {
    /// The changes that it would make.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The same, with more information on slots.
    pub fn set_slots(&mut self, slots: super::SlotEffect) {
        self.plan.slots = slots;
    }

    /// The same, with more warnings.
    pub fn warn(&mut self, warnings: Vec<Problem>) {
        self.plan.warnings.extend(warnings);
    }

    /// The current definitions.
    #[must_use]
    pub fn before(&self) -> &Definitions {
        &self.before
    }

    /// The definitions after the deployment.
    #[must_use]
    pub fn after(&self) -> &Definitions {
        &self.after
    }
}

fn refuse_errors(
    project: &ProjectName,
    undeploy: bool,
    before: &Definitions,
    after: &Definitions,
) -> Result<(), DeployError> {
    let problems: Vec<_> = after.news(before, project).filter(|problem| problem.is_error()).cloned().collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(DeployError::Scripts { project: project.to_string(), undeploy, problems }),
    }
}

type InHdfs = (Option<hdfs::Folders>, Vec<FileChange>);

/// HDFS is contacted only if there are files to upload, or perhaps to remove.
async fn look_at_hdfs(project: &ProjectName, bundle: Option<&Bundle>, site: &Site) -> Result<InHdfs, DeployError> {
    let files = match bundle {
        Some(bundle) => match &bundle.hdfs {
            Some(files) => Some(files),
            None => return Ok((None, Vec::new())),
        },
        None => None,
    };
    let Some(root) = site.hdfs.open().await? else { return Ok((None, Vec::new())) };
    let folders = hdfs::Folders::of(&root, project);
    let changes = match files {
        Some(files) => folders.compare(files).await?,
        None => folders.all_removed().await?,
    };
    Ok((Some(folders), changes))
}

fn differ(files: &[FileChange]) -> bool {
    files.iter().any(|file| file.difference != Difference::Same)
}

/// The steps in HDFS, which come first, or last if the project is removed.
async fn hdfs_steps(
    undeploy: bool,
    folders: Option<&hdfs::Folders>,
    files: &[FileChange],
) -> Result<Vec<Step>, DeployError> {
    let Some(folders) = folders else { return Ok(Vec::new()) };
    let place = shown(&folders.live);
    Ok(match (differ(files), undeploy) {
        (true, false) => vec![Step::PutFolder { place }],
        (true, true) => vec![Step::RemoveFolder { place }],
        (false, _) => folders.leftovers().await?.into_iter().map(|left| Step::Remove { what: left.clone() }).collect(),
    })
}

/// Defaults come before the workflows that import them, and are removed after them.
fn script_steps(
    project: &ProjectName,
    bundle: Option<&Bundle>,
    site: &Site,
    there: &Scripts,
    files: &mut Vec<FileChange>,
    steps: &mut Vec<Step>,
) {
    let (old_workflows, old_defaults) = there.of(project);
    let (workflows, defaults) = bundle.map(|bundle| bundle.named(project)).unwrap_or_default();
    let workflows = by_file(&site.workflows, &old_workflows, &workflows);
    let defaults = by_file(&site.defaults, &old_defaults, &defaults);
    let is_put = |file: &&ScriptTexts<'_>| file.new.is_some();
    let put = defaults.iter().chain(&workflows).filter(is_put);
    let removed = workflows.iter().chain(&defaults).filter(|file| !is_put(file));
    for ScriptTexts { script, old, new } in put.chain(removed) {
        let Some(change) = FileChange::of_text(shown(script), *old, *new) else { continue };
        match (change.difference, new) {
            (Difference::Same, _) => {}
            (_, Some(text)) => steps.push(Step::Write { script: script.clone(), text: (*text).to_owned() }),
            (_, None) => steps.push(Step::Remove { what: script.clone() }),
        }
        files.push(change);
    }
}

/// A script, with its text before and after.
struct ScriptTexts<'a> {
    script: Place,
    old: Option<&'a str>,
    new: Option<&'a str>,
}

fn by_file<'a>(folder: &Place, old: &'a Texts, new: &'a Texts) -> Vec<ScriptTexts<'a>> {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let text = |texts: &'a Texts, name: &str| texts.get(name).map(String::as_str);
    let of_one =
        |name: &String| ScriptTexts { script: below(folder, name), old: text(old, name), new: text(new, name) };
    names.into_iter().map(of_one).collect()
}

fn defaults_go(bundle: Option<&Bundle>, there: &Scripts, project: &ProjectName) -> Option<String> {
    let BundleScripts::Single { defaults: None, .. } = &bundle?.scripts else { return None };
    let go = there.of(project).1.contains_key(&project.script());
    go.then(|| "there is no defaults.js: the one that is deployed goes".to_owned())
}
