"""What a profiled job spent its time on: summed up on the driver, and written when the job ends."""
