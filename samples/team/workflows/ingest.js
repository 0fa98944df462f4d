// The project of the data engineers: fetches each hour what the shops sold.
kelos.workflow("ingest.sales", {
    description: "fetches what the shops sold",
    schedule: "hourly",
    catchUp: "latest",
    shell: 'echo "fetched the sales of $hour:00 of $year-$month-$day"'
});
