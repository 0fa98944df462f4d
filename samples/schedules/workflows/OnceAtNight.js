// The same, but only once each night.
importDefaults("schedules");

program("cleanupWorkflow", says("cleaning up once at night"));

schedule(buildSchedule("runOnlyAtNight", ProgramType.WORKFLOW, "cleanupWorkflow")
           .enabled()
           .withTimeWindow("22:00", "06:00").waitUntilMet()
           .withDurationSinceLastRun(6, TimeUnit.HOURS).abortIfNotMet()
           .triggerOnPartitions("myDataset", 1));
