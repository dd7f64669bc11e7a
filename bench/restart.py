def measure(options):
    raise NotImplementedError
