// After each new partition, but only between 22:00 and 6:00.
importDefaults("schedules");

program("cleanupWorkflow", says("cleaning up at night"));

schedule(buildSchedule("runOnlyAtNight", ProgramType.WORKFLOW, "cleanupWorkflow")
           .enabled()
           .withTimeWindow("22:00", "06:00").waitUntilMet()
           .triggerOnPartitions("myDataset", 1));
