// The project of the analysts: a report for each hour, once its sales are there.
kelos.workflow("reports.hourly", {
    description: "reports on the sales of an hour",
    schedule: "hourly",
    catchUp: "latest",
    after: "ingest.sales",
    shell: 'echo "reported on $hour:00 of $year-$month-$day"'
});
