// A workflow that runs once two others have succeeded, in any order.
importDefaults("schedules");

program("Workflow1", says("the first"));
program("Workflow2", says("the second"));
program("TriggeredWorkflow", says("both are done"));

schedule(
  buildSchedule("Workflow1AndWorkflow2CompletedSchedule", ProgramType.WORKFLOW, "TriggeredWorkflow")
    .enabled()
    .triggerOn(getTriggerFactory().and(getTriggerFactory().onProgramStatus(ProgramType.WORKFLOW, "Workflow1",
                                                                           ProgramStatus.COMPLETED),
                                       getTriggerFactory().onProgramStatus(ProgramType.WORKFLOW, "Workflow2",
                                                                           ProgramStatus.COMPLETED))));
