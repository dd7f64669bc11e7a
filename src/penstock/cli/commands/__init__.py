"""What commands do, a file per group. Loaded when one of its commands is called."""
