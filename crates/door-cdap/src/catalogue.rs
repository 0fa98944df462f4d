//! Applications, programs and schedules, found by the names that this dialect has for them.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::WorkflowId;
use kelos_model::project::{Member, ProjectName};
use kelos_model::workflow::{EventKeys, Keys, WorkflowRow};
use kelos_store::{Queries, StoreError};

use super::kind::{Kind, WORKFLOW};

/// The applications, programs and schedules, read as far as they are needed.
pub(super) struct Catalogue<'a> {
    reader: &'a dyn Queries,
    /// The owners of workflows; none for a workflow that is not defined.
    owners: RefCell<BTreeMap<WorkflowId, Option<String>>>,
    /// Everything, once it was read.
    all: OnceCell<Rc<Vec<WorkflowRow>>>,
}

/// Reads from the catalogue on a thread that may block.
pub(super) async fn look<T: Send + 'static>(
    app: &App,
    look: impl FnOnce(&Catalogue<'_>) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    app.read(move |reader| Ok(look(&Catalogue::new(reader)))).await?
}

/// A program as this dialect names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProgramName {
    pub(super) project: ProjectName,
    pub(super) kind: Kind,
    pub(super) name: String,
}

/// The keys of an event schedule; none where a row is that of another workflow.
pub(super) fn events(row: &WorkflowRow) -> Option<&EventKeys> {
    row.definition.keys.events().filter(|_| row.present)
}

impl<'a> Catalogue<'a> {
    pub(super) fn new(reader: &'a dyn Queries) -> Catalogue<'a> {
        Catalogue { reader, owners: RefCell::default(), all: OnceCell::new() }
    }

    pub(super) fn reader(&self) -> &'a dyn Queries {
        self.reader
    }

    /// Everything that is there, ascending by id: read once.
    pub(super) fn all(&self) -> Result<Rc<Vec<WorkflowRow>>, StoreError> {
        if let Some(all) = self.all.get() {
            return Ok(all.clone());
        }
        let mut rows = self.reader.workflows(None)?;
        rows.retain(|row| row.present);
        let owner = |row: &WorkflowRow| (row.id.clone(), Some(row.definition.project.clone()));
        self.owners.borrow_mut().extend(rows.iter().map(owner));
        Ok(self.all.get_or_init(|| Rc::new(rows)).clone())
    }

    /// Everything of an application, which must have something.
    pub(super) fn of_project(&self, project: &ProjectName) -> Result<Vec<WorkflowRow>, Fault> {
        let name = project.to_string();
        let own = self.all()?.iter().filter(|row| row.definition.project == name).cloned().collect::<Vec<_>>();
        if own.is_empty() { Err(plain::not_found(format!("no {}", told(project)))) } else { Ok(own) }
    }

    fn row(&self, id: &WorkflowId, project: &ProjectName) -> Result<Option<WorkflowRow>, StoreError> {
        let row = self.reader.workflow(id)?;
        Ok(row.filter(|row| row.present && row.definition.project == project.to_string()))
    }

    /// A schedule.
    pub(super) fn schedule(&self, project: &ProjectName, name: &str) -> Result<WorkflowRow, Fault> {
        let row = match project.member(None, name) {
            Ok(id) => self.row(&id, project)?.filter(|row| events(row).is_some()),
            Err(_) => None,
        };
        row.ok_or_else(|| plain::not_found(format!("no schedule \"{name}\" in {}", told(project))))
    }

    /// A program: one that waits for requests, or a workflow that a file of the project defines by its bare name.
    pub(super) fn program(&self, name: &ProgramName) -> Result<Option<WorkflowRow>, StoreError> {
        for id in name.ids() {
            let row = self.row(&id, &name.project)?;
            if let Some(row) = row.filter(|row| is_program(row, name.kind)) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// The same, which must be there.
    pub(super) fn need_program(&self, name: &ProgramName) -> Result<WorkflowRow, Fault> {
        self.program(name)?.ok_or_else(|| plain::not_found(format!("no {}", name.told())))
    }

    /// The id of a program, whether it is there or not.
    pub(super) fn program_id(&self, name: &ProgramName) -> Result<WorkflowId, Fault> {
        if let Some(row) = self.program(name)? {
            return Ok(row.id);
        }
        let id = name.project.member(name.kind.member, &name.name);
        id.map_err(|error| plain::bad_request(format!("program: {error}")))
    }

    /// The name of a program in this dialect, whether it is there or not.
    pub(super) fn program_name(&self, id: &WorkflowId) -> Result<ProgramName, StoreError> {
        if let Some(owner) = self.owner(id)? {
            let project = ProjectName::read(&owner);
            let bare = || Member { project: project.clone(), kind: None, name: id.to_string() };
            return Ok(project.member_name(id).unwrap_or_else(bare).into());
        }
        let bare = || Member { project: ProjectName::read(""), kind: None, name: id.to_string() };
        Ok(Member::read(id).unwrap_or_else(bare).into())
    }

    fn owner(&self, id: &WorkflowId) -> Result<Option<String>, StoreError> {
        if let Some(known) = self.owners.borrow().get(id) {
            return Ok(known.clone());
        }
        let row = self.reader.workflow(id)?.filter(|row| row.present);
        let owner = row.map(|row| row.definition.project.clone());
        self.owners.borrow_mut().insert(id.clone(), owner.clone());
        Ok(owner)
    }
}

impl From<Member> for ProgramName {
    fn from(Member { project, kind, name }: Member) -> ProgramName {
        ProgramName { project, kind: Kind::of_member(kind.as_deref()), name }
    }
}

impl ProgramName {
    /// The program in a message.
    pub(super) fn told(&self) -> String {
        format!("{} \"{}\" in {}", self.kind.pretty.to_ascii_lowercase(), self.name, told(&self.project))
    }

    /// The ids that a program may have in Kelos, the likeliest first.
    fn ids(&self) -> impl Iterator<Item = WorkflowId> {
        let member = self.project.member(self.kind.member, &self.name);
        let bare = if self.kind == WORKFLOW { WorkflowId::new(&self.name).ok() } else { None };
        member.ok().into_iter().chain(bare)
    }
}

fn is_program(row: &WorkflowRow, kind: Kind) -> bool {
    match &row.definition.keys {
        Keys::Requests(program) => program.kind.as_deref() == kind.member,
        Keys::Events(_) => false,
        Keys::Schedule(_) | Keys::Jobs(_) => kind == WORKFLOW,
    }
}

/// An application in a message.
pub(super) fn told(project: &ProjectName) -> String {
    let ProjectName { namespace, application, version } = project;
    format!("application \"{application}\" (version {version}) of namespace \"{namespace}\"")
}
