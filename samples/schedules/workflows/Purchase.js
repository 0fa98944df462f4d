// A schedule that fires every day at 4:00, unless another run goes on.
importDefaults("schedules");

program("PurchaseHistoryWorkflow", says("writing the history of purchases"));

schedule(
  buildSchedule("DailySchedule", ProgramType.WORKFLOW, "PurchaseHistoryWorkflow")
    .withConcurrency(1).abortIfNotMet()
    .triggerByTime("0 4 * * *"));

// The same in short. Enabled, so that something is to be seen: every minute, in place of every day.
schedule("EveryMinute", "PurchaseHistoryWorkflow").withConcurrency(1).abortIfNotMet().enabled().triggerByTime("* * * * *");
