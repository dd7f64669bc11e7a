"""The life of a job: epochs, restarts, executors. Runs on the driver only, but for the stages."""
