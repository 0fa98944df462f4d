// A schedule that fires every day at 4:00, unless another run is live.
importDefaults("schedules");

program("PurchaseHistoryWorkflow", says("writing the history of purchases"));

schedule(
  buildSchedule("DailySchedule", ProgramType.WORKFLOW, "PurchaseHistoryWorkflow")
    .withConcurrency(1).abortIfNotMet()
    .triggerByTime("0 4 * * *"));

// The same in short. It is enabled, and fires every minute instead of every day, so that there is something to see.
schedule("EveryMinute", "PurchaseHistoryWorkflow").withConcurrency(1).abortIfNotMet().enabled().triggerByTime("* * * * *");
