// Features beyond the document: combined triggers, zones, start and end, jitter, and facts in workflows with times.
importDefaults("schedules");
application({ namespace: "shop", name: "Mixed", version: "1.0" });

program("Report", says("reporting"));

// On working days at 7:00 in Berlin, with a jitter of five minutes, once there are sales; or on a signal.
schedule("weekdays", "Report")
  .setDescription("The report of a working day, once the sales are in.")
  .timeZone("Europe/Berlin")
  .jitter(5, TimeUnit.MINUTES)
  .catchUp("skip")
  .startTime("2026-01-01T00:00Z")
  .setTimeout(12, TimeUnit.HOURS)
  .enabled()
  .triggerOn(celos.orTrigger(
    celos.andTrigger(celos.cronTrigger("0 7 ? * MON-FRI"), celos.partitionsTrigger("sales", 1)),
    celos.signalTrigger("report-now")));

// A slot each day, which waits for a fact, and for the night.
celos.defineWorkflow({
  id: "nightly-archive",
  description: "Archives a day once the report of it is written.",
  schedule: celos.cronSchedule("0 0 18 * * ?"),
  timeZone: "Europe/Berlin",
  waitTimeoutSeconds: 12 * 3600,
  schedulingStrategy: celos.serialSchedulingStrategy(),
  trigger: celos.programStatusTrigger("Report", ProgramStatus.COMPLETED),
  constraints: [celos.timeWindow("22:00", "06:00")],
  externalService: says("archiving"),
});
