// Triggered by data, and at least once per hour. The properties show which of the two triggered the run.
importDefaults("schedules");

program("myWorkflow", says("by data or by time"));

schedule(buildSchedule("onPartitionWithDelay", ProgramType.WORKFLOW, "myWorkflow")
           .enabled()
           .setProperties(ImmutableMap.of("triggered.by", "data"))
           .withDelay(15, TimeUnit.MINUTES)
           .withConcurrency(1).abortIfNotMet()
           .triggerOnPartitions("myDataset", 4));
schedule(buildSchedule("onceHourly", ProgramType.WORKFLOW, "myWorkflow")
           .enabled()
           .setProperties(ImmutableMap.of("triggered.by", "time"))
           .withConcurrency(1).abortIfNotMet()
           .withDurationSinceLastRun(1, TimeUnit.HOURS).abortIfNotMet()
           .triggerByTime("0 * * * *"));
