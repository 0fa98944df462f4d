// Cleans up whenever another workflow fails, in the folder that that one was given as `src`.
importDefaults("schedules");

program("dataProcessingWorkflow", celos.commandExternalService({ shell: 'echo "no data in ${KELOS_ARG_src:-nowhere}"; exit 1' }));
program("cleanupWorkflow", celos.commandExternalService({ shell: 'echo "cleaning ${KELOS_ARG_cleanup_dir:-nothing}"' }));

schedule(buildSchedule("onDataProcessingFail", ProgramType.WORKFLOW, "cleanupWorkflow")
            .enabled()
            .withProperties(ImmutableMap.of("triggering.properties.mapping",
                                            ImmutableMap.of("cleanup_dir", "src")))
            .triggerOnProgramStatus(ProgramType.WORKFLOW, "dataProcessingWorkflow"));
