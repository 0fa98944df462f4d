// Cleans up after each failure of another workflow, in the folder of its argument `src`.
importDefaults("schedules");

program("dataProcessingWorkflow", celos.commandExternalService({ shell: 'echo "no data in ${KELOS_ARG_src:-nowhere}"; exit 1' }));
program("cleanupWorkflow", celos.commandExternalService({ shell: 'echo "cleaning ${KELOS_ARG_cleanup_dir:-nothing}"' }));

schedule(buildSchedule("onDataProcessingFail", ProgramType.WORKFLOW, "cleanupWorkflow")
            .enabled()
            .withProperties(ImmutableMap.of("triggering.properties.mapping",
                                            ImmutableMap.of("cleanup_dir", "src")))
            .triggerOnProgramStatus(ProgramType.WORKFLOW, "dataProcessingWorkflow"));
