// Once there are four new partitions, and 15 minutes after the first of them, so that more may arrive.
importDefaults("schedules");

program("myWorkflow", says("four partitions or more"));

schedule(buildSchedule("onPartitionWithDelay", ProgramType.WORKFLOW, "myWorkflow")
           .enabled()
           .withDelay(15, TimeUnit.MINUTES)
           .triggerOnPartitions("myDataset", 4));
