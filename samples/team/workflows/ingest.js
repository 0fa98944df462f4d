// The project of the data engineers: fetches each hour what the shops sold.
kelos.workflow("ingest.sales", {
    schedule: "0 * * * *",
    catchUp: "latest",
    job: kelos.command(["sh", "-c", "echo fetched the sales of ${year}-${month}-${day}T${hour}"]),
    about: "fetches what the shops sold"
});
