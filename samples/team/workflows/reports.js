// The project of the analysts: a report for each hour, once its sales are there.
kelos.workflow("reports.hourly", {
    schedule: "0 * * * *",
    catchUp: "latest",
    after: "ingest.sales",
    job: kelos.command(["sh", "-c", "echo reported on ${year}-${month}-${day}T${hour}"]),
    about: "reports on the sales of an hour"
});
