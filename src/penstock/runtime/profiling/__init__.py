"""What tasks spend their time on, found by looking at them now and then, if a job is profiled."""
