//! The definitions that runs of flows follow to their end, whatever becomes of the workflow meanwhile.

use std::sync::Arc;

use kelos_model::flow::{Flow, FlowFlaw, FlowGraph};
use kelos_model::repeated::RepeatedStep;
use kelos_model::{StepKey, Workflow};

/// A definition of a flow, as its runs use it.
pub(crate) struct PinnedFlow {
    whole: Arc<Workflow>,
    graph: FlowGraph,
    steps: Vec<StepDefinition>,
}

/// A step as executors see it.
struct StepDefinition {
    whole: Arc<Workflow>,
    /// One item of a list; none where the step has none.
    item: Option<Arc<Workflow>>,
}

impl PinnedFlow {
    /// Reads the flow of a definition; one that has none counts as empty.
    ///
    /// # Errors
    /// The mistakes in its graph.
    pub(crate) fn new(definition: &Arc<Workflow>) -> Result<PinnedFlow, Vec<FlowFlaw>> {
        let flow = definition.flow.clone().unwrap_or_default();
        let graph = FlowGraph::new(&flow)?;
        let one = |step| {
            let item = flow.step(step).filter(|step| step.for_each.is_some());
            let step = flow.step(step)?;
            let item = item.map(|step| Arc::new(Flow::as_workflow(definition, step, true)));
            Some(StepDefinition { whole: Arc::new(Flow::as_workflow(definition, step, false)), item })
        };
        let steps = flow.steps.iter().filter_map(|step| one(step.name.as_str())).collect();
        Ok(PinnedFlow { whole: definition.clone(), graph, steps })
    }

    /// The flow of a run that does one of its steps again.
    pub(crate) fn repeating(&self, repeated: &RepeatedStep) -> Option<PinnedFlow> {
        let flow = self.graph.flow().repeating(repeated)?;
        let alone = Workflow { flow: Some(Arc::new(flow)), ..(*self.whole).clone() };
        PinnedFlow::new(&Arc::new(alone)).ok()
    }

    /// Its graph.
    pub(crate) fn graph(&self) -> &FlowGraph {
        &self.graph
    }

    /// The definition of a step, or of one of its items.
    pub(crate) fn definition(&self, step: &StepKey) -> Option<&Arc<Workflow>> {
        self.definition_of(step.step(), step.item_number().is_some())
    }

    /// The definition of the step of a name, or of the items of its list.
    pub(crate) fn definition_of(&self, step: &str, is_item: bool) -> Option<&Arc<Workflow>> {
        let one = self.steps.get(self.graph.position(step)?)?;
        if is_item { one.item.as_ref() } else { Some(&one.whole) }
    }
}
